"""Bayes: interval weights as a family of posteriors, and what holds for all of them (App. B).

Weights that are random inside their intervals, in whatever way, make a variational family
``q``. Given the weights, targets are Gaussian around the output with a standard deviation of
one over the precision. The bounds of the output then bound the density of the target, whatever
``q`` is: it is highest where the output comes closest to the target, and lowest where it stays
farthest away.

Three things differ from the paper. Its exponent ``tau**(2 d)`` should be ``tau**2``: the
density of ``d`` independent components has ``tau**d`` in front and ``tau**2 / 2`` in the
exponent. Its bounds take the weights that come closest and stay farthest, here the ends of the
bounds stand for them, which hold more outputs than the weights reach; so these are wider,
and sound. And the loss with ``beta = 1`` bounds the likelihood only while widths are at most
1, for what enters is the square of the width: see :func:`log_likelihood_from_loss`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from intervalnn.interval import Interval

__all__ = ["log_density", "log_likelihood", "log_likelihood_from_loss", "predictive_density"]


def log_density(bounds: Interval, target: Tensor, *, precision: float) -> Interval:
    """Return bounds on the log density of each component of the target (App. B).

    Both for one choice of weights, ``log p(y | x, W)``, and for the predictive density (Eq. 6),
    the average over ``q`` of ``p(y | x, W)``. The point is that of the underlying model.

    Args:
        bounds: Bounds of the output, of any shape.
        target: The target, of the same shape.
        precision: The paper's tau, one over the standard deviation of the target around the output.

    Example:
        >>> gap = torch.ones(1)
        >>> density = log_density(Interval(torch.zeros(1), gap, gap), torch.tensor([2.0]), precision=1.0)
        >>> density.lower, density.point, density.upper  # at distances 3, 2 and 1
        (tensor([-5.4189]), tensor([-2.9189]), tensor([-1.4189]))
    """
    nearest, at_point, farthest = _distances(bounds, target, precision)
    point = math.log(precision) - 0.5 * math.log(2 * math.pi) - at_point**2 / 2
    below = (farthest - at_point) * (farthest + at_point) / 2
    above = (at_point - nearest) * (at_point + nearest) / 2
    return Interval(point, below, above)


def log_likelihood(bounds: Interval, target: Tensor, *, precision: float) -> Interval:
    """Return bounds on the log likelihood of each sample, for any weights inside their intervals (App. B).

    Summed over samples they bound the first term of the evidence lower bound (Eq. 5), whatever
    the distribution of the weights is. The second term, the divergence from the prior, depends
    on that distribution, and the bounds of the output say nothing about it.

    Args:
        bounds: Bounds of the output, ``(batch, *signal)``.
        target: The target, of the same shape.
        precision: The paper's tau.

    Returns:
        An interval of shape ``(batch,)``.
    """
    return log_density(bounds, target, precision=precision).map(lambda part: part.reshape(len(target), -1).sum(1))


def log_likelihood_from_loss(bounds: Interval, target: Tensor, *, precision: float) -> Tensor:
    """Return the paper's lower bound on the log likelihood of each sample, by which it explains the loss (App. B).

    It is ``-log C - tau**2 * sum(missed**2 + width**2)``, where ``missed`` is how far the target
    lies outside: like the interval loss (Eq. 2), but with the square of the width. The loss itself
    is as large, and gives a bound too, where ``beta`` is at least the largest width. Never above
    the lower end of :func:`log_likelihood`, which is the one to use.
    """
    missed = _distances(bounds, target, precision)[0]
    each = (missed**2 + (precision * bounds.width) ** 2).reshape(len(target), -1)
    return each.shape[1] * (math.log(precision) - 0.5 * math.log(2 * math.pi)) - each.sum(1)


def predictive_density(bounds: Interval, target: Tensor, *, precision: float) -> Interval:
    """Return bounds on the predictive density of each component, whatever the distribution of the weights (Eq. 6).

    Args:
        bounds: Bounds of the output, of any shape.
        target: Where to evaluate the density, of the same shape.
        precision: The paper's tau.
    """
    log = log_density(bounds, target, precision=precision)
    return Interval.around(log.point.exp(), log.lower.exp(), log.upper.exp())


def _distances(bounds: Interval, target: Tensor, precision: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return how near the output may come to the target, where its point is, and how far it may be off, times tau."""
    if not precision > 0:
        raise ValueError(f"precision must be positive, got {precision}")
    if target.shape != bounds.shape:
        raise ValueError(f"target must have shape {tuple(bounds.shape)}, like the bounds, got {tuple(target.shape)}")
    distance = target - bounds.point
    nearest = (torch.where(distance > 0, distance - bounds.above, -distance - bounds.below)).clamp(min=0.0)
    farthest = torch.maximum(distance + bounds.below, bounds.above - distance)
    return precision * nearest, precision * distance.abs(), precision * farthest
