"""Norm layers: affine with fixed statistics, or tight bounds that use how value and spread hang together.

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
from intervalnn.rules.arithmetic import add, around, mul, point_of, square, sub, unmoved
from intervalnn.rules.kinks import norm_beyond
from intervalnn.table import apply, aten, rule

Value = Interval | Tensor


def _loo(x: Tensor, dim: int) -> Tensor:
    """Return the sum over all other entries along ``dim``, for entries that are not negative.

    Taking an entry out of the whole sum cancels where it is most of it, so the others of that one are added up.
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
    """Give the fall, zero where all radii are, the slope of the triangle inequality if that says less as they open.

    Where they all are alike, the root of the mean of their squares is their mean.
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


def _wide(x: Interval) -> Interval:
    """Return ``x`` in a dtype that holds squares, as torch itself takes one for these layers.

    All of it lies in memory alike, so that sums over the point and over the middle are rounded alike.
    """
    dtype = torch.promote_types(x.dtype, torch.float32)
    return x.map(lambda part: part.to(dtype).contiguous())


def _standardise(x: Interval, eps: float, dim: int) -> Interval:
    """Bound ``(x - mean) / sqrt(var + eps)`` along ``dim``."""
    _refuse_negative(eps)
    n: int = x.size(dim)
    x = _wide(x)
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
    n, x = x.size(dim), _wide(x)
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
        bounds = _wide(bounds)
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
    wide = _wide(x.map(torch.atleast_1d))
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
    makes roundings near zero large, so the variance's are added to its gap.
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


@rule(aten.linalg_vector_norm, sign="nonnegative", complexes=True)
def vector_norm(fn: Any, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a norm, non-decreasing in the size of every entry."""
    size = abs(x)
    if x.dtype.is_complex:  # which torch rounds otherwise than their moduli
        dtype = kwargs.get("dtype")
        bounds = vector_norm(fn, size, *args, **kwargs | {"dtype": dtype and dtype.to_real()})
        return Interval(fn(x.point, *args, **kwargs), bounds.below, bounds.above)
    nearest = torch.where(size.lower > 0, size.lower, 0.0)  # also where it is not a number
    lower = fn(nearest, *args, **kwargs)
    upper = norm_beyond(lambda sizes: fn(sizes, *args, **kwargs), size.upper, kwargs.get("dim", [*args, None, None][1]))
    bounds = Interval.around(fn(x.point, *args, **kwargs), lower, upper, size.gap_dtype)
    return unmoved(size.width.sum(*_axes(x, *args[1:])) == 0, bounds)


def _axes(x: Interval, dims: Any = None, keepdim: bool = False) -> tuple[list[int], bool]:
    """Return over which dimensions a norm is taken, and whether they are kept."""
    if isinstance(dims, int):
        return [dims], keepdim
    return list(dims or range(x.dim())), keepdim


@rule(aten.dist, takes=(0, 1), sign="nonnegative")
def dist(fn: Any, x: Value, y: Value, p: float = 2) -> Interval:
    """Bound the distance between two tensors, each taken as one vector."""
    distance = vector_norm(torch.linalg.vector_norm, Interval.of(x) - y, p)
    return around(fn(point_of(x), point_of(y), p), distance.below, distance.above, x, y)


@rule(aten._cdist_forward, takes=(0, 1), sign="nonnegative")
def cdist(fn: Any, x: Value, y: Value, p: float, mode: int | None) -> Interval:
    """Bound the distances between all rows of ``x`` and of ``y``."""
    rows = Interval.of(x).map(lambda part: part.unsqueeze(-2))
    columns = Interval.of(y).map(lambda part: part.unsqueeze(-3))
    distance = vector_norm(torch.linalg.vector_norm, rows - columns, p, -1)
    return around(fn(point_of(x), point_of(y), p, mode), distance.below, distance.above, x, y)


@rule(aten._pdist_forward, sign="nonnegative")
def pdist(fn: Any, x: Interval, p: float = 2) -> Interval:
    """Bound the distances between all pairs of rows."""
    first, second = torch.triu_indices(x.size(0), x.size(0), 1, device=x.device)
    distance = vector_norm(torch.linalg.vector_norm, x[first] - x[second], p, -1)
    return around(fn(x.point, p), distance.below, distance.above, x)
