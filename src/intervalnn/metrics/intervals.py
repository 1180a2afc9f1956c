"""Intervals: how often bounds hold, and how wide they are."""

from __future__ import annotations

import torch
from torch import Tensor

from intervalnn.metrics.checks import compared, share
from intervalnn.prediction import Prediction

__all__ = ["coverage", "mean_width", "median_width", "pinball", "winkler"]


def coverage(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the share of each sample's components with ``lower <= target <= upper``, ``(batch,)``.

    Example:
        >>> point, gap = torch.zeros(1, 4), torch.ones(1, 4)
        >>> coverage(Prediction(point, gap, gap, gap), torch.tensor([[-2.0, -1.0, 0.5, 1.0]]))
        tensor([0.7500], dtype=torch.float64)
    """
    return compared(prediction, target).inside.double().mean(1)


def mean_width(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the mean width of each sample's bounds, ``(batch,)``."""
    return compared(prediction, target).width.mean(1)


def median_width(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the median width of each sample's bounds, ``(batch,)``; of an even number, the mean of the middle two."""
    ordered = compared(prediction, target).width.sort(1).values
    n = ordered.shape[1]
    return (ordered[:, (n - 1) // 2] + ordered[:, n // 2]) / 2


def winkler(prediction: Prediction, target: Tensor, *, coverage: float = 0.9) -> Tensor:
    """Return the interval score of each sample, ``(batch,)``: width, and a price for what is missed (Winkler, 1972).

    Proper for the central interval: least, on average, for the two quantiles between which the
    share of ``coverage`` lies. Compare methods at equal coverage all the same.

    Args:
        prediction: What was predicted.
        target: The truth.
        coverage: The share that the bounds should cover; a unit missed costs ``2 / (1 - coverage)``.
    """
    parts = compared(prediction, target)
    return (parts.width + 2 / (1 - share("coverage", coverage)) * parts.missed).mean(1)


def pinball(prediction: Prediction, target: Tensor, *, coverage: float = 0.9) -> Tensor:
    """Return the pinball losses of both bounds as quantiles, added, for each sample, ``(batch,)``.

    As in :func:`intervalnn.losses.pinball`. It is ``(1 - coverage) / 2`` times the interval score.

    Args:
        prediction: What was predicted.
        target: The truth.
        coverage: The share between the two quantiles, half of the rest on either side.
    """
    parts, tail = compared(prediction, target), (1 - share("coverage", coverage)) / 2
    above, below = parts.distance - parts.above, -parts.distance - parts.below
    losses = [torch.maximum((1 - tail) * beyond, -tail * beyond) for beyond in (above, below)]
    return (losses[0] + losses[1]).mean(1)
