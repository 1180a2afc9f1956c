"""Powers of intervals, with exponents that may be intervals too."""

from __future__ import annotations

from typing import Any

import torch

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import (
    Operand,
    absolute,
    around,
    corners,
    ends_of,
    gap_dtype_for,
    mul,
    point_of,
    reciprocal,
    square,
    still,
    unbounded_where,
)
from intervalnn.table import apply, aten, rule


@rule(aten.pow, takes=(0, 1))
def power(fn: Any, base: Operand, exponent: Operand) -> Interval:
    """Bound a power; without bounds where a fractional power may see a negative base."""
    if isinstance(base, Interval) and isinstance(exponent, int | float):
        return _fixed_power(fn, base, exponent)
    point = fn(point_of(base), point_of(exponent))
    rises = [torch.as_tensor(v, device=point.device) for v in (point_of(exponent) >= 0, point_of(base) >= 1)]
    lower, upper = corners(fn, [ends_of(base), ends_of(exponent)], rises)  # monotone in either, for a positive base
    bounds = still([base, exponent], Interval.around(point, lower, upper, gap_dtype_for(point, base, exponent)))
    moves = sum(v.width for v in (base, exponent) if isinstance(v, Interval)) > 0
    return unbounded_where((ends_of(base)[0] < 0) & moves, bounds)


def _fixed_power(fn: Any, x: Interval, exponent: float) -> Interval:
    if exponent == 1:
        return x
    if exponent == 2:
        bounds = square(aten.square.default, x)
        return Interval(fn(x.point, exponent), bounds.below, bounds.above)
    if exponent == -1:
        bounds = reciprocal(aten.reciprocal.default, x)
        return Interval(fn(x.point, exponent), bounds.below, bounds.above)
    whole = float(exponent).is_integer()
    even = whole and int(exponent) % 2 == 0
    full = Interval(x.point, x.below.to(x.dtype), x.above.to(x.dtype))  # so that zero stays zero
    base = absolute(aten.abs.default, full) if even else full
    ends = fn(base.lower, exponent), fn(base.upper, exponent)
    lower, upper = ends if exponent >= 0 else ends[::-1]
    bounds = still(x, Interval.around(fn(x.point, exponent), lower, upper, x.gap_dtype))
    if not whole:
        return unbounded_where(x.lower < 0, bounds)
    if even or exponent > 0:
        return bounds
    return unbounded_where((x.lower <= 0) & (x.upper >= 0) & (x.width > 0), bounds)


@rule(aten.ldexp, takes=(0, 1))
def ldexp(fn: Any, x: Operand, exponent: Operand) -> Interval:
    """Bound a product with a power of two."""
    power = apply(aten.exp2.default, exponent) if isinstance(exponent, Interval) else torch.exp2(exponent)  # type: ignore[arg-type]
    product = mul(aten.mul.Tensor, x, power)
    return around(fn(point_of(x), point_of(exponent)), product.below, product.above, x, exponent)
