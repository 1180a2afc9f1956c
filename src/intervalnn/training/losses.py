"""Losses: how far targets lie outside of bounds, and how wide the bounds are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut

__all__ = ["Loss", "error", "gaussian", "interval", "mae", "mse", "pinball"]

Loss = Callable[[Any, Tensor], Tensor]


def mse(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean squared error."""
    return (output - target).square().mean()


def mae(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean absolute error."""
    return (output - target).abs().mean()


def gaussian(output: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
    """Return the mean negative log-likelihood of normal densities, in nats.

    Args:
        output: The means and the logarithms of the variances.
        target: Of the same shape as either.

    Example:
        >>> gaussian((torch.zeros(1), torch.zeros(1)), torch.ones(1))  # (1 + log 2 pi) / 2
        tensor(1.4189)
    """
    mean, log_variance = output
    squares = (target - mean).square() * torch.exp(-log_variance)
    return (squares + log_variance + math.log(2 * math.pi)).mean() / 2


def interval(*, beta: float) -> Loss:
    """Penalise targets outside the bounds, and the width of the bounds (Eq. 2).

    Averages over the components where the paper sums, so that ``beta`` does not depend
    on the size of the batch or of the signal.

    Args:
        beta: The price of width. At ``beta`` near the mean absolute error of the underlying
            model, which the paper recommends, the best width is zero; see
            :func:`intervalnn.guarantee.beta_from_residuals` for one that gives a coverage.
    """
    if not beta > 0:
        raise ValueError(f"beta must be positive, got {beta}")

    def loss(bounds: Interval, target: Tensor) -> Tensor:
        missed_above = cut(target - bounds.upper)
        missed_below = cut(bounds.lower - target)
        return (missed_above**2 + missed_below**2 + beta * bounds.width).mean()

    return loss


def pinball(*, coverage: float) -> Loss:
    """Make the bounds the two quantiles between which a share of ``coverage`` of the targets lies.

    Not in the paper. At the minimum of this loss the bounds have the wanted coverage. At the minimum of the interval
    loss the coverage depends on the shape of the errors.

    Args:
        coverage: Share of the targets between the bounds, half of the others on either side.
    """
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage}")
    tail = (1 - coverage) / 2

    def loss(bounds: Interval, target: Tensor) -> Tensor:
        above, below = target - bounds.upper, bounds.lower - target
        # The pinball loss of a quantile q at level t is max(t (y - q), (t - 1)(y - q)). A target that lies on a
        # bound counts as inside, which it is.
        up, down = (torch.where(out > 0, (1 - tail) * out, -tail * out) for out in (above, below))
        return (up + down).mean()

    return loss


def error(*, coverage: float, unit: float) -> Loss:
    """Learn how far off a prediction is: the expected error, and the distance that a share of them stays within.

    Args:
        coverage: Share of the targets between the bounds, which are at one distance on both sides.
        unit: Size of the errors, which makes the squares comparable to the distances.
    """
    quantile = pinball(coverage=coverage)  # of bounds at one distance: that of the absolute error

    def loss(output: tuple[Interval, Tensor], target: Tensor) -> Tensor:
        bounds, expected = output
        return quantile(bounds, target) + mse(expected, (target - bounds.point).abs()) / unit

    return loss
