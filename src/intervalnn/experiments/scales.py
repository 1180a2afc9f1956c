"""Scales: how large an experiment is, each number with its source."""

from __future__ import annotations

from dataclasses import dataclass

from intervalnn.models import deconv_net

__all__ = ["DECONVOLUTION", "DeconvolutionScale"]


@dataclass(frozen=True, slots=True)
class DeconvolutionScale:
    """Size of the 1D experiment.

    Attributes:
        name: What it is called.
        size: Length of the signals.
        samples: How many signals there are.
        channels: Of the convolutions of the network.
        batch: Signals per step.
        epochs: Of the underlying model, the ensemble, and all published recipes.
        lr: Learning rate of the underlying model.
        fit_epochs: Of our own fits; None for the library's default.
        passes: Of MC dropout.
        members: Of the ensemble.
        published_lr: Learning rate of the published interval training.
        noises: Standard deviations of the noise, for the comparison of methods.
        sweep: The same for the figure of noise behaviour.
        seeds: How many runs.
        sweep_seeds: How many of these the figure of noise behaviour has.
        examples: How many test signals to draw.
    """

    name: str
    size: int
    samples: int
    channels: tuple[int, ...]
    batch: int
    epochs: int
    lr: float
    fit_epochs: int | None
    passes: int
    members: int
    published_lr: float
    noises: tuple[float, ...]
    sweep: tuple[float, ...]
    seeds: int
    sweep_seeds: int
    examples: int = 4


DECONVOLUTION = {
    "paper": DeconvolutionScale(
        name="paper",
        size=512,  # Sec. 4
        samples=2000,  # Sec. 4
        channels=deconv_net.CHANNELS,
        batch=256,  # Sec. 4
        epochs=100,  # Sec. 4
        lr=1e-3,  # Sec. 4
        fit_epochs=None,
        passes=64,  # Sec. 4
        members=5,
        published_lr=1e-5,  # Sec. 4
        noises=(0.0, 0.05),  # Fig. 2
        sweep=(0.0, 0.02, 0.05, 0.08, 0.11, 0.14),  # Fig. 3
        seeds=4,  # as the paper has for CT
        sweep_seeds=1,
    ),
    # Why methods that train a network of their own gain without noise: here the underlying model was trained as
    # long as it and they together at paper scale, 100 epochs and 1500 steps.
    "longer": DeconvolutionScale(
        name="longer",
        size=512,
        samples=2000,
        channels=deconv_net.CHANNELS,
        batch=256,
        epochs=314,
        lr=1e-3,
        fit_epochs=None,
        passes=64,
        members=5,
        published_lr=1e-5,
        noises=(0.0,),
        sweep=(),
        seeds=1,
        sweep_seeds=0,
    ),
    # The whole story on two cores in under three minutes; a smaller network takes larger steps.
    "quick": DeconvolutionScale(
        name="quick",
        size=96,
        samples=600,
        channels=(16, 16, 16, 16, 16, 16, 16, 16, 16),
        batch=64,
        epochs=24,
        lr=3e-3,
        fit_epochs=24,
        passes=32,
        members=3,
        published_lr=1e-4,
        noises=(0.0, 0.05),
        sweep=(0.0, 0.05, 0.14),
        seeds=1,
        sweep_seeds=1,
    ),
}
