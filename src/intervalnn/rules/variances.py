"""Variances and standard deviations."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut
from intervalnn.rules.arithmetic import around
from intervalnn.rules.kinks import norm_beyond
from intervalnn.table import apply, aten, rule


def widened(x: Interval) -> Interval:
    """Return ``x`` in a dtype that holds squares, as torch does inside these layers.

    Point and gaps become contiguous, so that sums over the point and over the middle are rounded alike.
    """
    dtype = torch.promote_types(x.dtype, torch.float32)
    return x.map(lambda part: part.to(dtype).contiguous())


@rule(aten.var.correction, aten.var.dim, sign="nonnegative")
def var(fn: Any, x: Interval, dims: Any = None, *args: Any, **kwargs: Any) -> Interval:
    """Bound a variance: its tangent from below, its expansion from above."""
    point, correction = fn(x.point, dims, *args, **kwargs), int(bool(args[0])) if args else 1
    wide, axes, scale = _spread(x, dims, kwargs.get("correction", correction))
    radius, off = _around_mean(wide, axes)
    middle = (off**2).sum(axes, keepdim=True)
    at_point = ((wide.point - wide.point.mean(axes, keepdim=True)) ** 2).sum(axes, keepdim=True)
    slope = 2 * (off.abs() * radius).sum(axes, keepdim=True)
    rise = slope + (radius**2).sum(axes, keepdim=True)
    bounds = Interval.around(at_point, cut(middle - slope), middle + rise)
    below, above = ((gap * scale).reshape(point.shape) for gap in (bounds.below, bounds.above))
    return around(point, below, above, x)


def _spread(x: Interval, dims: Any, correction: float | None) -> tuple[Interval, tuple[int, ...], float]:
    """Return what a variance is taken of, over which dimensions, and what its sum of squares is multiplied by."""
    wide = widened(x.map(torch.atleast_1d))
    axes = tuple(d % wide.dim() for d in dims or range(wide.dim()))
    count = math.prod(wide.size(axis) for axis in axes) - (1 if correction is None else correction)
    return wide, axes, 1.0 / count if count > 0 else math.nan


def _around_mean(x: Interval, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return how far each entry reaches around its middle, and how far the middle lies from the mean of all."""
    middle = x.point + (x.above - x.below) / 2
    return x.width / 2, middle - middle.mean(axes, keepdim=True)


@rule(aten.var_mean.correction)
def var_mean(fn: Any, x: Interval, dims: Any = None, **kwargs: Any) -> tuple[Interval, Interval]:
    """Bound a variance and a mean."""
    points = fn(x.point, dims, **kwargs)
    spread, keep = var(aten.var.correction, x, dims, **kwargs), kwargs.get("keepdim", False)
    gaps = (torch.mean(gap, dims or None, keep) for gap in (x.below, x.above))
    return Interval(points[0], spread.below, spread.above), Interval(points[1], *gaps)


@rule(aten.std.correction, sign="nonnegative")
def std(fn: Any, x: Interval, dims: Any = None, *, correction: float | None = 1, **kwargs: Any) -> Interval:
    """Bound a standard deviation: from below by the root of the variance, from above by a norm.

    The sum of squares of a variance is at most that of ``|off| + radius``, so its root is at most their norm. A root
    magnifies rounding errors near zero, so those of the variance are added to its gap.
    """
    point = fn(x.point, dims, correction=correction, **kwargs)
    spread = var(aten.var.correction, x, dims, correction=correction, **kwargs)
    rounded = _ROUNDINGS * torch.finfo(spread.dtype).eps * spread.upper
    below = torch.where(spread.below > 0, spread.below + rounded, spread.below)
    root = apply(aten.sqrt.default, Interval(spread.point, torch.minimum(below, spread.point), spread.above))
    wide, axes, scale = _spread(x, dims, correction)
    radius, off = _around_mean(wide, axes)

    def norm(sizes: Tensor) -> Tensor:
        root: Tensor = torch.linalg.vector_norm(sizes, dim=axes).reshape(point.shape) * scale**0.5
        return root

    at_point = norm((wide.point - wide.point.mean(axes, keepdim=True)).abs())
    above = Interval.around(at_point, at_point, norm_beyond(norm, off.abs() + radius, axes)).above
    return Interval(point, root.below, above.to(root.above.dtype))


_ROUNDINGS = 8


@rule(aten.std_mean.correction)
def std_mean(fn: Any, x: Interval, dims: Any = None, **kwargs: Any) -> tuple[Interval, Interval]:
    """Bound a standard deviation and a mean."""
    points, root = fn(x.point, dims, **kwargs), std(aten.std.correction, x, dims, **kwargs)
    mean = var_mean(aten.var_mean.correction, x, dims, **kwargs)[1]
    return Interval(points[0], root.below, root.above), Interval(points[1], mean.below, mean.above)
