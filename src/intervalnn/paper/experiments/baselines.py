"""The baselines that learn bounds, and those that every experiment has, each fitted as our own methods are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import nn
from torch.utils.data import DataLoader

from intervalnn import methods
from intervalnn.paper.experiments.comparison import COVERAGE, Make, longer_fit, longer_heads
from intervalnn.paper.experiments.scales import DeconvolutionScale, ImageScale

__all__ = ["learned"]


def learned(
    model: nn.Module,
    train: DataLoader[Any],
    scale: DeconvolutionScale | ImageScale,
    seed: int,
    fitted: Callable[..., Any],
) -> Iterator[tuple[str, Make]]:
    """Yield how each baseline is made that learns bounds from data, then the ensemble and the constant width.

    Args:
        model: The underlying model.
        train: What all methods are fitted on.
        scale: How long, and how many members an ensemble has.
        seed: That of the run.
        fitted: Fits a method with the options of :func:`intervalnn.fit`, and returns it.
    """
    ours: dict[str, Any] = {"coverage": COVERAGE, "epochs": scale.fit_epochs}
    yield "quantile heads", lambda: fitted(methods.QuantileHeads(model), **ours)
    if scale.longer:
        yield (
            longer_heads(scale.longer),
            lambda: fitted(
                methods.QuantileHeads(model),
                coverage=COVERAGE,
                epochs=longer_fit(scale.fit_epochs, train, scale.longer),
            ),
        )
    yield "interval-loss heads", lambda: fitted(methods.IntervalLossHeads(model), **ours)
    yield "error predictor", lambda: fitted(methods.ErrorPredictor(model), **ours)
    if scale.members:
        yield (
            "ensemble",
            lambda: fitted(
                methods.Ensemble.like(model, scale.members, seed=seed + 1), epochs=scale.epochs, lr=scale.lr
            ),
        )
    yield "constant width", lambda: methods.ConstantWidth(model)
