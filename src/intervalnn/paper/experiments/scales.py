"""Scales: how large an experiment is, each number with its source."""

from __future__ import annotations

from dataclasses import dataclass, replace

from intervalnn.paper.models import deconv_net

__all__ = ["DECONVOLUTION", "IMAGES", "DeconvolutionScale", "ImageScale"]


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
        members: Of the ensemble; 0 leaves it out.
        published_lr: Learning rate of the published interval training; None leaves out the published recipes.
        noises: Standard deviations of the noise, for the comparison of methods.
        sweep: The same for the figure of noise behaviour.
        seeds: How many runs.
        sweep_seeds: How many of these the figure of noise behaviour has.
        examples: How many test signals to draw.
        longer: How many times the steps the longer fit of quantile heads has; 0 leaves it out.
        timed: Whether run time is measured by itself.
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
    published_lr: float | None
    noises: tuple[float, ...]
    sweep: tuple[float, ...]
    seeds: int
    sweep_seeds: int
    examples: int = 4
    longer: int = 4
    timed: bool = True


# The whole story on two cores in under three minutes; a smaller network takes larger steps.
QUICK_SIGNALS = DeconvolutionScale(
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
)

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
    "quick": QUICK_SIGNALS,
    # Full fits of a small network on the CPU: 2000 steps each. What is costly and known from larger scales is left out.
    "small": replace(
        QUICK_SIGNALS,
        name="small",
        size=128,
        samples=2000,
        epochs=80,
        fit_epochs=80,
        members=0,
        published_lr=None,
        sweep=(),
        seeds=3,
        sweep_seeds=0,
        timed=False,
    ),
}


@dataclass(frozen=True, slots=True)
class ImageScale:
    """Size of an experiment on images.

    Attributes:
        name: What it is called.
        size: Rows and columns of the images.
        base: Channels of the first level of the U-Net.
        dropout: Of the U-Net.
        batch: Images per step.
        epochs: Of the underlying model and the ensemble.
        lr: Learning rate of the underlying model.
        fit_epochs: Of our own fits; None for the library's default.
        passes: Of MC dropout.
        members: Of the ensemble; 0 leaves it out.
        published_epochs: Of the published interval training; 0 leaves it out.
        published_lr: Its learning rate.
        published_batch: Its images per step.
        probout_epochs: Of the published ProbOut; 0 leaves it out.
        probout_lr: Its learning rate.
        patients: How many made-up patients train, validation and test have where there are no data.
        slices: Of each made-up patient.
        most: How many slices of a split to take of given data at most, evenly chosen; None for all.
        artefacts: How many test images get artefacts; 0 leaves them out.
        steps: Of the search for a perturbation that paints one.
        seeds: How many runs.
        examples: How many test images to draw.
        longer: How many times the steps the longer fit of quantile heads has; 0 leaves it out.
        timed: Whether run time is measured by itself.
        folds: How many parts the subjects of given data are cut into, so that each run tests another one; 0 takes the
            splits of a manifest, or 8 : 1 : 1.
        slices_each: How many slices of a subject to test and to calibrate on at most, with folds.
    """

    name: str
    size: int
    base: int
    dropout: float
    batch: int
    epochs: int
    lr: float
    fit_epochs: int | None
    passes: int
    members: int
    published_epochs: int
    published_lr: float
    published_batch: int
    probout_epochs: int
    probout_lr: float
    patients: tuple[int, int, int]
    slices: int
    most: int | None
    artefacts: int
    steps: int
    seeds: int
    examples: int = 4
    longer: int = 4
    timed: bool = True
    folds: int = 0
    slices_each: int | None = None


# The whole story on two cores in minutes; small networks take larger steps.
QUICK_IMAGES = ImageScale(
    name="quick",
    size=64,
    base=8,
    dropout=0.1,
    batch=12,
    epochs=40,
    lr=2e-3,
    fit_epochs=12,
    passes=32,
    members=0,
    published_epochs=4,
    published_lr=1e-4,
    published_batch=6,
    probout_epochs=12,
    probout_lr=1e-5,
    patients=(40, 12, 12),
    slices=5,
    most=200,
    artefacts=12,
    steps=60,
    seeds=1,
)

IMAGES = {
    "paper": ImageScale(
        name="paper",
        size=512,  # Sec. 5
        base=64,  # Sec. 5, as in Ronneberger et al.
        dropout=0.7,  # Sec. 5
        batch=12,  # Sec. 5
        epochs=400,  # Sec. 5
        lr=7.5e-5,  # Sec. 5
        fit_epochs=None,
        passes=128,  # Sec. 5
        members=5,
        published_epochs=15,  # Sec. 5
        published_lr=1e-6,  # Sec. 5
        published_batch=6,  # Sec. 5
        probout_epochs=400,  # Sec. 5
        probout_lr=1e-7,  # Sec. 5
        patients=(80, 10, 10),
        slices=25,
        most=None,
        artefacts=64,
        steps=200,
        seeds=4,  # Sec. 5
    ),
    # Minutes a run on one GPU: a quarter of the pixels and of the weights. Narrower layers bear less dropout.
    "medium": ImageScale(
        name="medium",
        size=256,
        base=32,
        dropout=0.5,
        batch=12,
        epochs=120,
        lr=3e-4,
        fit_epochs=None,
        passes=128,
        members=0,  # each would cost as much as the underlying network again
        published_epochs=15,
        published_lr=1e-6,
        published_batch=6,
        probout_epochs=60,
        probout_lr=1e-7,
        patients=(80, 20, 20),
        slices=10,
        most=None,
        artefacts=32,
        steps=200,
        seeds=4,
    ),
    "quick": QUICK_IMAGES,
    # Full fits of a small network on the CPU, about 1000 steps each, with many subjects to test: each of them once in
    # three runs. What is costly and known from larger scales is left out.
    "small": replace(
        QUICK_IMAGES,
        name="small",
        epochs=30,
        fit_epochs=22,
        published_epochs=0,
        published_lr=0.0,
        published_batch=0,
        probout_epochs=0,
        probout_lr=0.0,
        patients=(60, 12, 24),
        slices=10,
        most=None,
        artefacts=0,
        steps=0,
        seeds=3,
        timed=False,
        folds=3,
        slices_each=20,
    ),
}
