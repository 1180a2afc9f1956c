"""Norm layers: affine with fixed statistics, else tight bounds that use how value and spread depend on each other.

A value enters its own mean and variance. The bounds below take it out: with the other
``n - 1`` values' mean ``m'`` and variance ``v'``, and ``t = x_i - m'``, the normalised value is

    F(t, v') = k t / sqrt(k v' + k t^2 / n + eps),   k = (n - 1) / n,

non-decreasing in ``t`` and, by the sign of ``t``, monotone in ``v'``. So bounds on ``t`` and ``v'``,
which no longer share a variable with ``x_i``, bound it; and they never exceed ``sqrt(n - 1)``.
The point goes through the same formula with zero gaps, so that zero gaps give zero width.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut
from intervalnn.rules.arithmetic import add, around, mul, point_of, square, sub
from intervalnn.rules.variances import widened
from intervalnn.table import aten, rule

Value = Interval | Tensor


def _loo(x: Tensor, dim: int) -> Tensor:
    """Return the sum over all other entries along ``dim``, for entries that are not negative.

    Subtracting an entry from the whole sum cancels where the entry is most of the sum; there the others are summed
    directly.
    """
    total = x.sum(dim, keepdim=True)
    most = x > total / 2
    return torch.where(most, torch.where(most, 0.0, x).sum(dim, keepdim=True), cut(total - x))


def _loo_spread(mid: Tensor, radius: Tensor, n: int, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return variance of the others' midpoints, and how far it can fall and rise inside their radii.

    The rise is the exact expansion. The fall is the tangent of the convex variance or, where it says
    less, the triangle inequality of its root.
    """
    off = mid - mid.mean(dim, keepdim=True)
    others = _loo_variance(mid, off**2, n, dim)
    mean = _loo(radius, dim) / (n - 1)
    slope = (_loo(off.abs() * radius, dim) / (n - 1) + off.abs() / (n - 1) * mean) * 2
    squares = _loo(radius**2, dim) / (n - 1)
    near = (squares > 0) & (squares < others)
    triangle = 2 * torch.sqrt(torch.where(near, others * squares, 1.0)) - squares
    fall = torch.where(near & (triangle < slope), triangle, slope)
    if radius.requires_grad and torch.is_grad_enabled():
        fall = _closed_fall(fall, off, others, mean, dim)
    return others, fall, slope + squares


def _closed_fall(fall: Tensor, off: Tensor, others: Tensor, mean: Tensor, dim: int) -> Tensor:
    """Give the fall, which is zero at zero radii, the slope of the triangle inequality where this slope is smaller.

    As the radii open alike, the root of the mean of their squares is their mean.
    """
    spread = torch.sqrt(torch.where(others > 0, others, 1.0))
    less = (others > 0) & (spread < off.abs().sum(dim, keepdim=True) / (off.size(dim) - 1))
    return torch.where((mean == 0) & less, 2 * spread * mean, fall)


def _loo_variance(x: Tensor, squares: Tensor, n: int, dim: int) -> Tensor:
    """Return the variance of all other entries along ``dim``, from the squares of the distances from the mean."""
    total = squares.sum(dim, keepdim=True)
    most = squares > total / 2  # of that one, all that is left would be rounding
    mean = torch.where(most, 0.0, x).sum(dim, keepdim=True) / (n - 1)
    apart = torch.where(most, 0.0, x - mean).square().sum(dim, keepdim=True)
    return torch.where(most, apart, cut(total - squares * (n / (n - 1)))) / (n - 1)


def _standardise(x: Interval, eps: float, dim: int) -> Interval:
    """Bound ``(x - mean) / sqrt(var + eps)`` along ``dim``."""
    _refuse_negative(eps)
    n: int = x.size(dim)
    x = widened(x)
    c, below, above = x.point, x.below, x.above
    if n <= 1:
        return Interval.of(torch.zeros_like(c))
    k = (n - 1) / n
    radius, mid = (below + above) / 2, c + (above - below) / 2
    variance, fall, rise = _loo_spread(mid, radius, n, dim)
    at_point = _loo_spread(c, torch.zeros_like(c), n, dim)[0]
    t = (c - c.mean(dim, keepdim=True)) / k  # x_i less the mean of the others
    t_high, t_low = t + above + _loo(below, dim) / (n - 1), t - below - _loo(above, dim) / (n - 1)
    least, most = torch.where(variance > fall, variance - fall, 0.0), variance + rise

    def value(t: Tensor, v: Tensor) -> Tensor:
        root = torch.sqrt(k * v + k * t.square() / n + eps)
        return k * t / root

    upper = value(t_high, torch.where(t_high >= 0, least, most))
    lower = value(t_low, torch.where(t_low >= 0, most, least))
    return Interval.around(value(t, at_point), lower, upper)


def _refuse_negative(eps: float) -> None:
    if eps < 0:
        raise NotImplementedError(f"a norm with eps {eps} divides by the root of a difference; it must not be negative")


def _rms_standardise(x: Interval, eps: float, dim: int) -> Interval:
    """Bound ``x / sqrt(mean(x^2) + eps)`` along ``dim``, exactly."""
    _refuse_negative(eps)
    n, x = x.size(dim), widened(x)
    squares = square(aten.square.default, x)

    def value(t: Tensor, others: Tensor, at_zero: float = 1.0) -> Tensor:
        mean = t.square() / n + others / n + eps
        return t / torch.sqrt(mean if eps else torch.where(mean == 0, at_zero, mean))

    least, most = _loo(squares.lower, dim), _loo(squares.upper, dim)
    upper = value(x.upper, torch.where(x.upper >= 0, least, most))
    lower = value(x.lower, torch.where(x.lower >= 0, most, least))
    return Interval.around(value(x.point, _loo(squares.point, dim), 0.0), lower, upper)  # 0 / 0 is no number


def _affine(point: Tensor, z: Interval, weight: Value | None, bias: Value | None, *like: Any) -> Interval:
    """Scale and shift the gaps around ``point``, the model's own result."""
    if weight is not None:
        z = mul(aten.mul.Tensor, z, weight)
    if bias is not None:
        z = add(aten.add.Tensor, z, bias)
    return around(point, z.below, z.above, *like)


@rule(aten.layer_norm, takes=(0, 2, 3))
def layer_norm(
    fn: Any, x: Value, shape: list[int], weight: Value | None = None, bias: Value | None = None,
    eps: float = 1e-5, *rest: Any,
) -> Interval:  # fmt: skip
    """Bound a layer norm."""
    point = fn(point_of(x), shape, point_of(weight), point_of(bias), eps, *rest)
    flat = Interval.of(x).map(lambda part: part.flatten(-len(shape)))
    z = _standardise(flat, eps, -1).map(lambda part: part.reshape(point.shape))
    return _affine(point, z, weight, bias, x, weight, bias)


@rule(aten.native_layer_norm, takes=(0, 2, 3), hidden={1: "is a statistic", 2: "is a statistic"})
def native_layer_norm(
    fn: Any, x: Value, shape: list[int], weight: Value | None, bias: Value | None, eps: float
) -> tuple[Interval, None, None]:
    """Bound a layer norm that also returns its statistics, which are hidden."""
    whole = layer_norm(aten.layer_norm.default, x, shape, weight, bias, eps)
    point = fn(point_of(x), shape, point_of(weight), point_of(bias), eps)[0]
    return Interval(point, whole.below, whole.above), None, None


@rule(aten.rms_norm, takes=(0, 2))
def rms_norm(fn: Any, x: Value, shape: list[int], weight: Value | None = None, eps: float | None = None) -> Interval:
    """Bound a root-mean-square norm."""
    point = fn(point_of(x), shape, point_of(weight), eps)
    tiny = torch.finfo(torch.promote_types(point.dtype, torch.float32)).eps if eps is None else eps  # as torch does
    flat = Interval.of(x).map(lambda part: part.flatten(-len(shape)))
    z = _rms_standardise(flat, tiny, -1).map(lambda part: part.reshape(point.shape))
    return _affine(point, z, weight, None, x, weight)


@rule(aten._weight_norm, takes=(0, 1))
def weight_norm(fn: Any, v: Value, g: Value, dim: int = 0) -> Interval:
    """Bound ``g * v / |v|``, where each entry is divided by a norm that it is part of."""
    point = fn(point_of(v), point_of(g), dim)
    rows = Interval.of(v).map(lambda part: (part if dim == -1 else part.movedim(dim, 0)).flatten(0 if dim == -1 else 1))
    shape = point.shape if dim == -1 else point.movedim(dim, 0).shape
    z = _rms_standardise(rows, 0.0, -1)
    root = math.sqrt(rows.size(-1))
    unit = z.map(lambda part: (part / root).reshape(shape))
    return _affine(point, unit if dim == -1 else unit.map(lambda part: part.movedim(0, dim)), g, None, v, g)


def _along_channels(dims: int) -> list[int]:
    return [1, -1] + [1] * (dims - 2)


def _by_channel(value: Value | None, dims: int) -> Value | None:
    """Give a value per channel the shape that multiplies ``(batch, channel, *signal)``."""
    if value is None:
        return None
    shape = _along_channels(dims)
    return value.map(lambda part: part.reshape(shape)) if isinstance(value, Interval) else value.reshape(shape)


@rule(aten.group_norm, takes=(0, 2, 3))
def group_norm(
    fn: Any, x: Value, groups: int, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5,
    *rest: Any,
) -> Interval:  # fmt: skip
    """Bound a group norm."""
    point = fn(point_of(x), groups, point_of(weight), point_of(bias), eps, *rest)
    flat = Interval.of(x).map(lambda part: part.unflatten(1, (groups, -1)).flatten(2))
    z = _standardise(flat, eps, -1).map(lambda part: part.reshape(point.shape))
    dims = point.dim()
    return _affine(point, z, _by_channel(weight, dims), _by_channel(bias, dims), x, weight, bias)


@rule(aten.native_group_norm, takes=(0, 1, 2), hidden={1: "is a statistic", 2: "is a statistic"})
def native_group_norm(
    fn: Any, x: Value, weight: Value | None, bias: Value | None, batch: int, channels: int, size: int, groups: int,
    eps: float,
) -> tuple[Interval, None, None]:  # fmt: skip
    """Bound a group norm that also returns its statistics, which are hidden."""
    whole = group_norm(aten.group_norm.default, x, groups, weight, bias, eps)
    point = fn(point_of(x), point_of(weight), point_of(bias), batch, channels, size, groups, eps)[0]
    return Interval(point, whole.below, whole.above), None, None


@rule(aten._native_batch_norm_legit.no_stats, takes=(0, 1, 2), hidden={1: "is a statistic", 2: "is a statistic"})
def batch_statistics(
    fn: Any, x: Value, weight: Value | None, bias: Value | None, training: bool, momentum: float, eps: float
) -> tuple[Interval, None, None]:
    """Bound a norm over all of a channel: instance norm, or batch norm that keeps no statistics."""
    point = fn(point_of(x), point_of(weight), point_of(bias), training, momentum, eps)[0]
    swapped = Interval.of(x).map(lambda part: part.transpose(0, 1))
    flat = swapped.map(lambda part: part.flatten(1))
    z = _standardise(flat, eps, -1).map(lambda part: part.reshape(swapped.shape).transpose(0, 1))
    dims = point.dim()
    return _affine(point, z, _by_channel(weight, dims), _by_channel(bias, dims), x, weight, bias), None, None


def _fixed_statistics(
    point: Tensor, x: Value, weight: Value | None, bias: Value | None, mean: Tensor, var: Tensor, eps: float
) -> Interval:
    """Bound an affine map per channel."""
    dims = point.dim()
    bounds = Interval.of(x)
    if point.dtype in (torch.float16, torch.bfloat16):
        bounds = widened(bounds)
    mean, var = (value.to(bounds.dtype) for value in (mean, var))
    scale, shift = (part.reshape(_along_channels(dims)) for part in (torch.rsqrt(var + eps), mean))
    z = mul(aten.mul.Tensor, sub(aten.sub.Tensor, bounds, shift), scale)
    return _affine(point, z, _by_channel(weight, dims), _by_channel(bias, dims), x, weight, bias)


@rule(aten._native_batch_norm_legit_no_training, takes=(0, 1, 2), hidden={1: "is a statistic", 2: "is a statistic"})
def batch_norm(
    fn: Any, x: Value, weight: Value | None, bias: Value | None, mean: Tensor, var: Tensor, momentum: float, eps: float
) -> tuple[Interval, None, None]:
    """Bound a batch norm in eval mode."""
    point = fn(point_of(x), point_of(weight), point_of(bias), mean, var, momentum, eps)[0]
    return _fixed_statistics(point, x, weight, bias, mean, var, eps), None, None


@rule(aten.instance_norm, takes=(0, 1, 2))
def instance_norm(
    fn: Any, x: Value, weight: Value | None, bias: Value | None, mean: Tensor | None, var: Tensor | None,
    use_input_stats: bool, momentum: float, eps: float, *rest: Any,
) -> Interval:  # fmt: skip
    """Bound an instance norm, with statistics of each image or, where it has kept some, with these."""
    point = fn(point_of(x), point_of(weight), point_of(bias), mean, var, use_input_stats, momentum, eps, *rest)
    if not use_input_stats:
        assert mean is not None and var is not None
        return _fixed_statistics(point, x, weight, bias, mean, var, eps)
    flat = Interval.of(x).map(lambda part: part.flatten(2))
    z = _standardise(flat, eps, -1).map(lambda part: part.reshape(point.shape))
    dims = point.dim()
    return _affine(point, z, _by_channel(weight, dims), _by_channel(bias, dims), x, weight, bias)
