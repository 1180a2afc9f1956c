"""Sums, products and quotients of intervals, tensors and numbers."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut, plus
from intervalnn.rules.discrete_values import Discrete
from intervalnn.table import apply, aten, rule

Operand = Interval | Tensor | float


def point_of(x: Any) -> Any:
    """Return the point of an interval or of a discrete value, and anything else as it is."""
    return x.point if isinstance(x, Interval | Discrete) else x


def gap_dtype_for(point: Tensor, *values: Any) -> torch.dtype:
    """Return the data type of gaps around a result: one chosen by the user for ``values``, else their widest."""
    given = [v for v in values if isinstance(v, Interval)]
    chosen = (v.gap_dtype for v in given if v.gap_dtype != v.dtype)
    widest = functools.reduce(torch.promote_types, (v.gap_dtype for v in given), point.dtype)
    found = next(chosen, widest)
    return found if found.is_complex == point.is_complex() else point.dtype


def around(point: Tensor, below: Tensor, above: Tensor, *like: Any) -> Interval:
    """Return an interval with gaps of the shape of ``point`` and a dtype that follows from ``like``."""
    dtype = gap_dtype_for(point, *like)
    return Interval(point, *(as_gap(gap, dtype).expand(point.shape) for gap in (below, above)))


def as_gap(gap: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a gap in another dtype; a real dtype takes the real part of a complex gap."""
    return (gap.real if gap.is_complex() and not dtype.is_complex else gap).to(dtype)


def most(first: Tensor, *others: Tensor) -> Tensor:
    """Return the largest; where some are equal, the gradient goes to the first.

    At zero gaps all candidates are equal, and ``torch.maximum`` would share the gradient out
    among them. Put the one first that will be the largest as the gaps grow.
    """
    for other in others:
        first = torch.where((other > first) | other.isnan(), other, first)
    return first


def least(first: Tensor, *others: Tensor) -> Tensor:
    """Return the smallest; where some are equal, the gradient goes to the first."""
    for other in others:
        first = torch.where((other < first) | other.isnan(), other, first)
    return first


def known_ends(x: Interval) -> tuple[Tensor, Tensor]:
    """Return both ends, infinite ones instead of those that are not numbers."""
    lower, upper = x.lower, x.upper
    return torch.where(lower.isnan(), -torch.inf, lower), torch.where(upper.isnan(), torch.inf, upper)


def still(x: Interval | list[Any], bounds: Interval) -> Interval:
    """Remove the gaps of an elementwise result where ``x``, or every interval in a list, has none."""
    several = [v for v in x if isinstance(v, Interval)] if isinstance(x, list) else [x]
    return unmoved(functools.reduce(torch.logical_and, (v.width == 0 for v in several)), bounds)


def unmoved(where: Tensor, bounds: Interval) -> Interval:
    """Remove the gaps where no input moves; gradients stay as they are.

    A kernel may round the ends and the point differently, because rounding depends on the memory layout.
    """
    gaps = (gap - torch.where(where, gap.detach(), 0.0) for gap in (bounds.below, bounds.above))
    return Interval(bounds.point, *gaps)


def corners(fn: Any, args: list[tuple[Any, ...]], rises: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the least and the largest value of ``fn`` at the corners of its arguments.

    Args:
        fn: A function of one value from each of ``args``.
        args: The lower and the upper end of each argument, or its one value.
        rises: Whether ``fn`` rises with each argument, around the point.
    """

    def along(upward: bool) -> Tensor:
        pairs = zip(args, rises, strict=True)
        result: Tensor = fn(
            *(torch.where(r if upward else r.logical_not(), e[1], e[0]) if len(e) > 1 else e[0] for e, r in pairs)
        )
        return result

    values = [fn(*corner) for corner in itertools.product(*args)]
    return least(along(False), *values), most(along(True), *values)


def _gaps(x: Any) -> tuple[Any, Any]:
    return (x.below, x.above) if isinstance(x, Interval) else (0.0, 0.0)


@rule(aten.add, takes=(0, 1, 2), sign="keeps", complexes=True)  # the third is alpha, where it has a position
def add(fn: Any, x: Operand, y: Operand, alpha: float = 1) -> Interval:
    """Add the gaps; those of ``y`` change places if ``alpha`` is negative."""
    point = point_of(x) + point_of(y) if alpha == 1 else torch.add(point_of(x), point_of(y), alpha=alpha)
    (x_below, x_above), (y_below, y_above) = _gaps(x), _gaps(y)
    if isinstance(alpha, complex):
        return around(point, *_gaps(Interval.of(x) + apply(aten.mul.Tensor, Interval.of(y), alpha)), x, y)  # type: ignore[arg-type]
    if alpha < 0:
        y_below, y_above = y_above, y_below
    if alpha not in (1, -1):
        y_below, y_above = abs(alpha) * y_below, abs(alpha) * y_above
    return around(point, _sum(x_below, y_below), _sum(x_above, y_above), x, y)


def _sum(x: Any, y: Any) -> Any:
    return plus(x, y) if isinstance(x, Tensor) and isinstance(y, Tensor) else x + y


@rule(aten.sub, takes=(0, 1), complexes=True)
def sub(fn: Any, x: Operand, y: Operand, alpha: float = 1) -> Interval:
    """Add the gaps, those of ``y`` swapped."""
    difference = add(fn, x, y, alpha=-alpha)
    point = point_of(x) - point_of(y) if alpha == 1 else torch.sub(point_of(x), point_of(y), alpha=alpha)
    return Interval(point, difference.below, difference.above)


@rule(aten.rsub, takes=(0, 1), complexes=True)
def rsub(fn: Any, x: Operand, y: Operand, alpha: float = 1) -> Interval:
    """Bound ``y - alpha * x``."""
    return sub(fn, y, x, alpha)


@rule(aten.neg, aten._neg_view, complexes=True)
def neg(fn: Any, x: Interval) -> Interval:
    """Let the gaps change places."""
    return -x


@rule(aten.mul, takes=(0, 1), sign="keeps")
def mul(fn: Any, x: Operand, y: Operand) -> Interval:
    """Bound a product by its corners, each as a step from the point, so that nothing cancels."""
    point = point_of(x) * point_of(y)
    if not isinstance(x, Interval):
        x, y = y, x
    assert isinstance(x, Interval)
    if not isinstance(y, Interval):
        return _scale(x, y, point)

    def step(dx: Tensor, dy: Tensor) -> Tensor:
        """Return ``(x + dx)(y + dy) - xy`` as ``x dy + dx (y + dy)``, or with the factors swapped, by size."""
        end_x, end_y = x.point + dx, y.point + dy
        return torch.where(x.point.abs() <= end_x.abs(), x.point * dy + dx * end_y, y.point * dx + dy * end_x)

    below, above = corners(
        step,
        [(-v.below.to(point.dtype), v.above.to(point.dtype)) for v in (x, y)],
        [y.point >= 0, x.point >= 0],
    )
    return around(point, cut(-below), cut(above), x, y)


def _scale(x: Interval, factor: Tensor | float, point: Tensor) -> Interval:
    """Scale the gaps, and swap them where the factor is negative."""
    if not isinstance(factor, Tensor):
        size = abs(factor)
        below, above = (x.below, x.above) if factor >= 0 else (x.above, x.below)
        return around(point, size * below, size * above, x)
    factor = factor.to(point.dtype)  # a mask or a count may be one too
    positive, negative = cut(factor), cut(-factor)
    return around(point, positive * x.below + negative * x.above, positive * x.above + negative * x.below, x)


@rule(aten.square, sign="nonnegative")
def square(fn: Any, x: Interval) -> Interval:
    """Bound a square, which is zero at the least where the interval contains zero."""
    c, below, above = x.point, x.below, x.above
    up, down = above * (2 * c + above), below * (below - 2 * c)
    rise = most(torch.where(c >= 0, up, down), up, down)
    toward_zero = torch.where(c >= 0, least(c, below), -least(-c, above))
    fall = toward_zero * (2 * c - toward_zero)
    return around(fn(c), cut(fall), cut(rise), x)


@rule(aten.abs, sign="nonnegative")
def absolute(fn: Any, x: Interval) -> Interval:
    """Bound an absolute value, which is at least zero where the interval contains zero."""
    point, negative = fn(x.point), x.point < 0
    toward, away = torch.where(negative, x.above, x.below), torch.where(negative, x.below, x.above)
    across = cut(toward - 2 * point)  # the far end lies beyond zero and is larger still
    return around(point, least(point, toward), most(away, across), x)


@rule(aten.reciprocal)
def reciprocal(fn: Any, x: Interval) -> Interval:
    """Bound one over ``x``; without bounds (infinite gaps) where ``x`` may be zero."""
    c, point = x.point, fn(x.point)
    lower, upper = x.lower, x.upper
    apart = (lower > 0) | (upper < 0)
    still = (x.below == 0) & (x.above == 0)  # 1/0 is what the model computes, without gaps
    endless = torch.where(still, 0.0, torch.inf)
    c, lower, upper = (torch.where(apart, v, 1.0) for v in (c, lower, upper))
    below, above = x.above / upper / c, x.below / lower / c  # one after the other: their product may not be a number
    return around(point, torch.where(apart, below, endless), torch.where(apart, above, endless), x)


@rule(aten.div, takes=(0, 1), sign="keeps")
def div(fn: Any, x: Operand, y: Operand, rounding_mode: str | None = None) -> Interval:
    """Bound a quotient; without bounds where the divisor may be zero."""
    if rounding_mode is not None:
        return _whole_quotient(x, y, rounding_mode)
    point = point_of(x) / point_of(y)
    if isinstance(y, Interval):
        quotient = mul(fn, x, reciprocal(aten.reciprocal.default, y))
        below, above = (_or_infinite(gap) for gap in (quotient.below, quotient.above))
        return Interval(point, below, above)
    assert isinstance(x, Interval)
    if isinstance(y, Tensor):
        return _divide(x, y, point)
    inverse = 1 / y if y != 0 else math.inf
    scaled = mul(fn, x, inverse)
    return Interval(point, scaled.below, scaled.above)


def _divide(x: Interval, y: Tensor, point: Tensor) -> Interval:
    y = y.to(point.dtype)  # a mask or a count may be a divisor too
    negative, zero = y < 0, y == 0
    size = torch.where(zero, 1, y.abs())
    below, above = (
        torch.where(zero & (gap != 0), torch.inf, gap / size)
        for gap in (torch.where(negative, x.above, x.below), torch.where(negative, x.below, x.above))
    )
    return around(point, below, above, x)


def _or_infinite(gap: Tensor) -> Tensor:
    """Replace what is not a number, as zero times infinity is not."""
    return torch.where(gap.isnan(), torch.inf, gap)


def _whole_quotient(x: Operand, y: Operand, rounding_mode: str) -> Interval:
    """Bound a rounded quotient, monotone in either argument, by its corners."""

    def whole(a: Any, b: Any) -> Tensor:
        return torch.div(a, b, rounding_mode=rounding_mode)

    point = whole(point_of(x), point_of(y))
    lower, upper = corners(whole, [ends_of(x), ends_of(y)], [point >= 0, point >= 0])
    bounds = Interval.around(point, lower, upper, gap_dtype_for(point, x, y))
    if not isinstance(y, Interval):
        return bounds
    endless = (y.lower <= 0) & (y.upper >= 0) & (y.width > 0)
    return unbounded_where(endless, bounds)


def unbounded_where(endless: Tensor, bounds: Interval) -> Interval:
    """Give infinite gaps where the function has no bounds."""
    below, above = (torch.where(endless, torch.inf, gap) for gap in (bounds.below, bounds.above))
    return Interval(bounds.point, below, above)


def ends_of(x: Operand) -> tuple[Any, ...]:
    """Return both ends of an interval, and of anything else its one value."""
    return (x.lower, x.upper) if isinstance(x, Interval) else (x,)


@rule(aten.cumprod, aten.prod, complexes=True)
def prod(fn: Any, x: Interval, dim: int | None = None, *rest: Any, **kwargs: Any) -> Interval:
    """Multiply one factor after the other; exact, since the factors are independent."""
    point = fn(x.point, *(() if dim is None else (dim,)), *rest, **kwargs)
    dtype = torch.promote_types(torch.promote_types(x.dtype, point.dtype), torch.float32)
    wide = x.map(lambda part: part.to(dtype))  # lest many small gaps are lost one by one
    flat, axis = (wide.map(torch.flatten), 0) if dim is None or x.dim() == 0 else (wide, dim)
    factors = [flat.map(lambda part, k=k: part.select(axis, k)) for k in range(flat.size(axis))]  # type: ignore[misc]
    running = list(itertools.accumulate(factors, operator.mul))
    if not running:
        gap = torch.zeros_like(point, dtype=gap_dtype_for(point, x))
        return Interval(point, gap, gap)
    if fn.overloadpacket is aten.cumprod:
        below, above = (torch.stack([getattr(t, side) for t in running], axis) for side in ("below", "above"))
    else:
        below, above = running[-1].below, running[-1].above
    return around(point, below.reshape(point.shape), above.reshape(point.shape), x)


@rule(aten.addcmul, takes=(0, 1, 2), complexes=True)
def addcmul(fn: Any, x: Operand, y: Operand, z: Operand, *, value: float = 1) -> Interval:
    """Bound ``x + value * y * z``."""
    total = Interval.of(x) + apply(aten.mul.Tensor, Interval.of(y), z) * value  # type: ignore[arg-type]
    return around(fn(point_of(x), point_of(y), point_of(z), value=value), total.below, total.above, x, y, z)


@rule(aten.lerp, takes=(0, 1, 2), complexes=True)
def lerp(fn: Any, x: Operand, y: Operand, weight: Operand) -> Interval:
    """Bound a mean of two values, linear in each of them and in its weight."""
    point = fn(point_of(x), point_of(y), point_of(weight))
    if isinstance(weight, Interval):
        if point.is_complex():
            raise NotImplementedError(f"{fn} of complex numbers, with a weight that is an interval")
        share = weight.point
        rises = [torch.as_tensor(r, device=point.device) for r in (share <= 1, share >= 0, point_of(y) >= point_of(x))]
        lower, upper = corners(fn, [ends_of(v) for v in (x, y, weight)], rises)
        return Interval.around(point, lower, upper, gap_dtype_for(point, x, y, weight))
    first, second = apply(aten.mul.Tensor, Interval.of(x), 1 - weight), apply(aten.mul.Tensor, Interval.of(y), weight)  # type: ignore[arg-type]
    return around(point, first.below + second.below, first.above + second.above, x, y)
