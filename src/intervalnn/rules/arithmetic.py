"""Sums, products, quotients and powers of intervals, tensors and numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.complexes import complex_abs, complex_product, has_complex
from intervalnn.table import apply, aten, rule

Operand = Interval | Tensor | float


def point_of(x: Any) -> Any:
    """Return the point of an interval, and anything else as it is."""
    return x.point if isinstance(x, Interval) else x


def gap_dtype_of(*values: Any) -> torch.dtype:
    """Return the data type of the gaps of the first interval among ``values``."""
    return next(v.gap_dtype for v in values if isinstance(v, Interval))


def around(point: Tensor, below: Tensor, above: Tensor, *like: Any) -> Interval:
    """Return an interval with gaps of the shape of ``point`` and the dtype of those in ``like``."""
    dtype = gap_dtype_of(*like)
    if (dtype.is_complex and not point.is_complex()) or (point.is_complex() and not dtype.is_complex):
        dtype = point.dtype
    return Interval(point, below.to(dtype).expand(point.shape), above.to(dtype).expand(point.shape))


def _gaps(x: Any) -> tuple[Any, Any]:
    return (x.below, x.above) if isinstance(x, Interval) else (0.0, 0.0)


@rule(aten.add, takes=(0, 1), sign="keeps")
def add(fn: Any, x: Operand, y: Operand, alpha: float = 1) -> Interval:
    """Add the gaps; those of ``y`` change places if ``alpha`` is negative."""
    point = point_of(x) + point_of(y) if alpha == 1 else torch.add(point_of(x), point_of(y), alpha=alpha)
    (x_below, x_above), (y_below, y_above) = _gaps(x), _gaps(y)
    if alpha < 0:
        y_below, y_above = y_above, y_below
    if alpha not in (1, -1):
        y_below, y_above = abs(alpha) * y_below, abs(alpha) * y_above
    return around(point, x_below + y_below, x_above + y_above, x, y)


@rule(aten.sub, takes=(0, 1))
def sub(fn: Any, x: Operand, y: Operand, alpha: float = 1) -> Interval:
    """Add the gaps, those of ``y`` swapped."""
    difference = add(fn, x, y, alpha=-alpha)
    point = point_of(x) - point_of(y) if alpha == 1 else torch.sub(point_of(x), point_of(y), alpha=alpha)
    return Interval(point, difference.below, difference.above)


@rule(aten.rsub, takes=(0, 1))
def rsub(fn: Any, x: Operand, y: Operand, alpha: float = 1) -> Interval:
    """Bound ``y - alpha * x``."""
    return sub(fn, y, x, alpha)


@rule(aten.neg)
def neg(fn: Any, x: Interval) -> Interval:
    """Let the gaps change places."""
    return -x


@rule(aten.mul, takes=(0, 1), sign="keeps")
def mul(fn: Any, x: Operand, y: Operand) -> Interval:
    """Bound a product by its corners, each as a step from the point, so that nothing cancels."""
    point = point_of(x) * point_of(y)
    if has_complex(x, y):
        box = complex_product(lambda a, b: mul(fn, a, b) if _any_interval(a, b) else a * b, x, y)
        return Interval(point, box.below, box.above)
    if not isinstance(x, Interval):
        x, y = y, x
    assert isinstance(x, Interval)
    if not isinstance(y, Interval):
        return _scale(x, y, point)
    steps = [
        x.point * dy + y.point * dx + dx * dy
        for dx in (-x.below.to(x.dtype), x.above)
        for dy in (-y.below.to(y.dtype), y.above)
    ]
    return _from_steps(point, steps, x)


def _any_interval(*values: Any) -> bool:
    return any(isinstance(v, Interval) for v in values)


def _from_steps(point: Tensor, steps: list[Tensor], *like: Any) -> Interval:
    """Return the interval around ``point`` that reaches all of the steps."""
    most, least = steps[0], steps[0]
    for step in steps[1:]:
        most, least = torch.maximum(most, step), torch.minimum(least, step)
    return around(point, (-least).clamp(min=0.0), most.clamp(min=0.0), *like)


def _scale(x: Interval, factor: Tensor | float, point: Tensor) -> Interval:
    """Scale the gaps, and swap them where the factor is negative."""
    if not isinstance(factor, Tensor):
        size = abs(factor)
        below, above = (x.below, x.above) if factor >= 0 else (x.above, x.below)
        return around(point, size * below, size * above, x)
    positive, negative = factor.clamp(min=0), (-factor).clamp(min=0)
    return around(point, positive * x.below + negative * x.above, positive * x.above + negative * x.below, x)


@rule(aten.square, sign="nonnegative")
def square(fn: Any, x: Interval) -> Interval:
    """Bound a square, which is zero at the least where the interval contains zero."""
    c, below, above = x.point, x.below, x.above
    rise = torch.maximum(above * (2 * c + above), below * (below - 2 * c))
    toward_zero = torch.where(c >= 0, torch.minimum(below, c), -torch.minimum(above, -c))
    fall = toward_zero * (2 * c - toward_zero)
    return around(fn(c), fall.clamp(min=0.0), rise.clamp(min=0.0), x)


@rule(aten.abs, sign="nonnegative")
def absolute(fn: Any, x: Interval) -> Interval:
    """Bound a size, which is zero at the least where the interval contains zero."""
    if has_complex(x):
        return complex_abs(x)
    point, negative = fn(x.point), x.point < 0
    toward, away = torch.where(negative, x.above, x.below), torch.where(negative, x.below, x.above)
    across = (toward - 2 * point).clamp(min=0.0)  # the far end lies beyond zero and is larger still
    return around(point, torch.minimum(toward, point), torch.maximum(away, across), x)


@rule(aten.reciprocal)
def reciprocal(fn: Any, x: Interval) -> Interval:
    """Bound one over ``x``; without bounds (infinite gaps) where ``x`` may be zero."""
    c, point = x.point, fn(x.point)
    lower, upper = x.lower, x.upper
    apart = (lower > 0) | (upper < 0)
    endless = torch.full_like(point, torch.inf)
    below = torch.where(apart, x.above / (c * torch.where(apart, upper, 1.0)), endless)
    above = torch.where(apart, x.below / (c * torch.where(apart, lower, 1.0)), endless)
    still = (x.below == 0) & (x.above == 0)  # 1/0 is what the model computes, without gaps
    below, above = (torch.where(still, torch.zeros_like(gap), gap) for gap in (below, above))
    return around(point, below, above, x)


@rule(aten.div, takes=(0, 1), sign="keeps")
def div(fn: Any, x: Operand, y: Operand, rounding_mode: str | None = None) -> Interval:
    """Bound a quotient; without bounds where the divisor may be zero."""
    if rounding_mode is not None:
        whole = div(aten.div.Tensor, x, y)
        step = torch.floor if rounding_mode == "floor" else torch.trunc
        point = torch.div(point_of(x), point_of(y), rounding_mode=rounding_mode)
        return Interval.around(point, step(whole.lower), step(whole.upper), whole.gap_dtype)
    point = point_of(x) / point_of(y)
    if not isinstance(y, Interval):
        assert isinstance(x, Interval)
        if isinstance(y, Tensor) and not has_complex(x, y):
            return _divide(x, y, point)
        scaled = mul(fn, x, 1 / y)
        return Interval(point, scaled.below, scaled.above)
    quotient = mul(fn, x, reciprocal(aten.reciprocal.default, y))
    return Interval(point, _no_nan(quotient.below), _no_nan(quotient.above))


def _divide(x: Interval, y: Tensor, point: Tensor) -> Interval:
    size, negative = y.abs(), y < 0
    below, above = torch.where(negative, x.above, x.below), torch.where(negative, x.below, x.above)
    return around(point, _no_nan(below / size, 0.0), _no_nan(above / size, 0.0), x)


def _no_nan(gap: Tensor, value: float = torch.inf) -> Tensor:
    return torch.where(gap.isnan(), torch.full_like(gap, value), gap)


@rule(aten.pow, takes=(0, 1))
def power(fn: Any, base: Operand, exponent: Operand) -> Interval:
    """Bound a power; without bounds where a fractional power may see a negative base."""
    if isinstance(base, Interval) and isinstance(exponent, int | float):
        return _fixed_power(fn, base, exponent)
    point = fn(point_of(base), point_of(exponent))
    bases, exponents = _ends(base), _ends(exponent)
    corners = [fn(b, e) for b in bases for e in exponents]
    lower, upper = corners[0], corners[0]
    for corner in corners[1:]:  # monotone in either argument for a positive base
        lower, upper = torch.minimum(lower, corner), torch.maximum(upper, corner)
    dtype = gap_dtype_of(base, exponent)
    bounds = Interval.around(point, lower, upper, dtype)
    negative = bases[0] < 0 if isinstance(bases[0], float | int) else (bases[0] < 0).expand(point.shape)
    negative = torch.as_tensor(negative, device=point.device)
    below, above = (torch.where(negative, torch.inf, gap) for gap in (bounds.below, bounds.above))
    return Interval(point, below, above)


def _ends(x: Operand) -> tuple[Any, ...]:
    return (x.lower, x.upper) if isinstance(x, Interval) else (x,)


def _fixed_power(fn: Any, x: Interval, exponent: float) -> Interval:
    if exponent == 1:
        return x
    if exponent == 2:
        bounds = square(aten.square.default, x)
        return Interval(fn(x.point, exponent), bounds.below, bounds.above)
    if exponent < 0 and float(exponent).is_integer():
        whole = reciprocal(aten.reciprocal.default, _fixed_power(fn, x, -exponent))
        return Interval(fn(x.point, exponent), whole.below, whole.above)
    even = float(exponent).is_integer() and int(exponent) % 2 == 0
    base = absolute(aten.abs.default, x) if even else x
    ends = fn(base.lower, exponent), fn(base.upper, exponent)
    lower, upper = ends if exponent >= 0 else ends[::-1]
    bounds = Interval.around(fn(x.point, exponent), lower, upper, x.gap_dtype)
    if float(exponent).is_integer():
        return bounds
    below, above = (torch.where(x.lower < 0, torch.inf, gap) for gap in (bounds.below, bounds.above))
    return Interval(bounds.point, below, above)


@rule(aten.fmod)
def fmod(fn: Any, x: Interval, divisor: Tensor | float) -> Interval:
    """Bound a remainder with the sign of ``x``: the ends, or all remainders where it wraps."""
    return _remainder(fn, x, divisor, torch.trunc)


@rule(aten.remainder)
def remainder(fn: Any, x: Interval, divisor: Tensor | float) -> Interval:
    """Bound a remainder with the sign of the divisor: the ends, or all remainders where it wraps."""
    return _remainder(fn, x, divisor, torch.floor)


def _remainder(fn: Any, x: Interval, divisor: Tensor | float, step: Any) -> Interval:
    divisor = torch.as_tensor(divisor, dtype=x.dtype, device=x.device)
    lower, upper = x.lower, x.upper
    wraps = step(lower / divisor) != step(upper / divisor)
    low, high = fn(lower, divisor), fn(upper, divisor)
    zero, size = torch.zeros_like(low), divisor.abs()
    if step is torch.floor:
        least, most = torch.minimum(divisor, zero), torch.maximum(divisor, zero)
    else:
        least = torch.where(lower < 0, -size, zero)
        most = torch.where(upper > 0, size, zero)
    low, high = torch.where(wraps, least, low), torch.where(wraps, most, high)
    return Interval.around(fn(x.point, divisor), low, high, x.gap_dtype)


@rule(aten.atan2, takes=(0, 1))
def atan2(fn: Any, y: Interval | Tensor, x: Interval | Tensor) -> Interval:
    """Bound an angle by its corners, or by the full turn where it may jump."""
    point = fn(point_of(y), point_of(x))
    corners = [fn(b, a) for b in _ends(y) for a in _ends(x)]
    lower, upper = corners[0], corners[0]
    for corner in corners[1:]:
        lower, upper = torch.minimum(lower, corner), torch.maximum(upper, corner)
    (y_low, y_high), (x_low, _) = ((_ends(v) * 2)[:2] if not isinstance(v, Interval) else _ends(v) for v in (y, x))
    jumps = (x_low <= 0) & (y_low <= 0) & (y_high >= 0)
    jumps = jumps & ~((y_low == y_high) & (corners[0] == corners[-1]))
    lower, upper = torch.where(jumps, -torch.pi, lower), torch.where(jumps, torch.pi, upper)
    return Interval.around(point, lower, upper, gap_dtype_of(y, x))


@rule(aten.cumprod, aten.prod)
def prod(fn: Any, x: Interval, dim: int | None = None, *rest: Any, **kwargs: Any) -> Interval:
    """Multiply one factor after the other; exact, since the factors are independent."""
    point = fn(x.point, *(() if dim is None else (dim,)), *rest, **kwargs)
    flat, axis = (x.map(torch.flatten), 0) if dim is None else (x, dim)
    total = Interval.of(torch.ones_like(flat.point.select(axis, 0)))
    total = Interval(total.point, total.below.to(x.gap_dtype), total.above.to(x.gap_dtype))
    running = []
    for k in range(flat.size(axis)):
        total = mul(aten.mul.Tensor, total, flat.map(lambda part, k=k: part.select(axis, k)))  # type: ignore[misc]
        running.append(total)
    if fn.overloadpacket is aten.cumprod:
        below, above = (torch.stack(parts, axis) for parts in zip(*((t.below, t.above) for t in running), strict=True))
        return Interval(point, below, above)
    below, above = total.below, total.above
    if rest and rest[0]:  # keepdim
        below, above = below.unsqueeze(axis), above.unsqueeze(axis)
    return Interval(point, below.reshape(point.shape), above.reshape(point.shape))


@rule(aten.addcmul, takes=(0, 1, 2))
def addcmul(fn: Any, x: Operand, y: Operand, z: Operand, *, value: float = 1) -> Interval:
    """Bound ``x + value * y * z``."""
    total = Interval.of(x) + apply(aten.mul.Tensor, Interval.of(y), z) * value  # type: ignore[arg-type]
    return around(fn(point_of(x), point_of(y), point_of(z), value=value), total.below, total.above, x, y, z)


@rule(aten.lerp, takes=(0, 1))
def lerp(fn: Any, x: Interval | Tensor, y: Interval | Tensor, weight: Tensor | float) -> Interval:
    """Bound a mean of two values, with a weight that is a point."""
    total = Interval.of(x) * (1 - weight) + Interval.of(y) * weight
    return around(fn(point_of(x), point_of(y), weight), total.below, total.above, x, y)
