"""Functions that never decrease, or never increase, in any of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import gap_dtype_for, point_of, still, unmoved
from intervalnn.rules.discrete_values import Discrete
from intervalnn.table import aten, rule

Function = Callable[..., Tensor]


@rule(
    aten.tanh, aten.log, aten.log2, aten.log10, aten.log1p,
    aten.asin, aten.atan, aten.sinh, aten.asinh, aten.atanh, aten.erf, aten.erfinv, aten.expm1,
    aten.hardshrink, aten.log_sigmoid, aten.floor, aten.ceil, aten.round,
    aten.trunc, aten.special_ndtr, aten.special_ndtri, aten.special_log_ndtr, aten.special_i1,
)  # fmt: skip
def monotone(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a function of each entry alone that is non-decreasing."""
    return still(x, by_ends(fn, x, *args, **kwargs))


@rule(aten.logit)
def logit(fn: Function, x: Interval, eps: float | None = None) -> Interval:
    """Bound the inverse of a sigmoid, of values cut to lie between ``eps`` and ``1 - eps``."""
    if eps is not None and eps > 0.5:
        raise NotImplementedError(f"{fn} with eps {eps} falls in places; logit has bounds for eps up to a half")
    return monotone(fn, x, eps)


def by_ends(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a non-decreasing function by its values at both ends."""
    lower, upper = fn(x.lower, *args, **kwargs), fn(x.upper, *args, **kwargs)
    return Interval.around(fn(x.point, *args, **kwargs), lower, upper, x.gap_dtype)


@rule(
    aten.sigmoid, aten.exp, aten.exp2, aten.acosh,
    sign="nonnegative",
)  # fmt: skip
def nonnegative(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a non-decreasing function whose values are never negative."""
    return monotone(fn, x, *args, **kwargs)


@rule(aten.sqrt, sign="nonnegative")
def sqrt(fn: Function, x: Interval) -> Interval:
    """Bound a square root; at zero the derivative is one, since the infinite slope times a gradient of zero is NaN."""

    def root(end: Tensor) -> Tensor:
        return torch.where(end == 0, end, fn(torch.where(end == 0, 1.0, end)))

    return still(x, Interval.around(fn(x.point), root(x.lower), root(x.upper), x.gap_dtype))


@rule(aten.logsumexp, aten.logcumsumexp, sign="keeps")
def log_of_sum(fn: Function, x: Interval, *args: Any) -> Interval:
    """Bound the logarithm of a sum of exponentials along a dimension."""
    moves = x.width.cumsum(*args) if fn.overloadpacket is aten.logcumsumexp else x.width.sum(*args)  # type: ignore[attr-defined]
    return unmoved(moves == 0, by_ends(fn, x, *args))


@rule(aten.acos, aten.erfc, aten.rsqrt, aten.special_erfcx)
def decreasing(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a function that is non-increasing: the ends change places."""
    lower, upper = fn(x.upper, *args, **kwargs), fn(x.lower, *args, **kwargs)
    return still(x, Interval.around(fn(x.point, *args, **kwargs), lower, upper, x.gap_dtype))


@rule(aten.sign, aten.sgn)
def sign(fn: Function, x: Interval) -> Interval:
    """Bound a sign; of an end that is not a number, either one."""
    lower, upper = x.lower, x.upper
    low, high = torch.where(lower.isnan(), -1.0, fn(lower)), torch.where(upper.isnan(), 1.0, fn(upper))
    return Interval.around(fn(x.point), low, high, x.gap_dtype)


@rule(aten.nan_to_num)
def nan_to_num(fn: Function, x: Interval, *values: float | None) -> Interval:
    """Carry finite intervals; other intervals may contain a replaced value, and get infinite gaps."""
    finite = x.lower.isfinite() & x.upper.isfinite() | (x.width == 0)
    below, above = (torch.where(finite, gap, torch.inf) for gap in (x.below, x.above))
    return Interval(fn(x.point, *values), below, above)


@rule(aten.logaddexp, aten.logaddexp2, takes=(0, 1))
def logaddexp(fn: Function, x: Any, y: Any) -> Interval:
    """Bound the logarithm of a sum of exponentials."""
    point = fn(point_of(x), point_of(y))
    return Interval.around(point, *ends_of_all(fn, x, y), gap_dtype_for(point, x, y))


def ends_of_all(fn: Function, *args: Any) -> tuple[Tensor, Tensor]:
    """Return both ends of a function that is non-decreasing in every argument."""
    lower = fn(*(a.lower if isinstance(a, Interval) else a for a in args))
    upper = fn(*(a.upper if isinstance(a, Interval) else a for a in args))
    for x in (a for a in args if isinstance(a, Interval)):  # fmax and fmin would lose what is not a number
        lower, upper = torch.where(x.below.isnan(), torch.nan, lower), torch.where(x.above.isnan(), torch.nan, upper)
    return lower, upper


@rule(aten._to_copy, aten.to, sign="keeps", complexes=True)
def convert(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval | Discrete:
    """Bound a change of dtype or device; rounding is monotone."""
    point = fn(x.point, *args, **kwargs)
    if not (point.is_floating_point() or point.is_complex()):
        return _whole(point, x, lambda end: fn(end, *args, **kwargs))
    if x.dtype.is_complex and not point.is_complex():  # which drops the imaginary part
        x = x.map(torch.real)
    if point.dtype == x.dtype or point.is_complex():
        gap_dtype = point.dtype if point.is_complex() else x.gap_dtype
        return Interval(point, x.below.to(point.device, gap_dtype), x.above.to(point.device, gap_dtype))
    bounds = Interval.around(point, fn(x.lower, *args, **kwargs), fn(x.upper, *args, **kwargs))
    if point.dtype.itemsize > x.dtype.itemsize:  # exact, and the gaps keep their digits
        bounds = Interval(point, x.below.to(point.device), x.above.to(point.device))
    dtype = x.gap_dtype if x.gap_dtype != x.dtype else point.dtype
    return Interval(point, bounds.below.to(dtype), bounds.above.to(dtype))


def _whole(point: Tensor, x: Interval, fn: Function) -> Discrete:
    """Bound a cast to whole numbers, which may be any where an end is not a number or out of their range."""
    if point.dtype == torch.bool:
        return Discrete.around(point, *((x.lower > 0) | (x.upper < 0), (x.lower != 0) | (x.upper != 0)))
    least, largest = torch.iinfo(point.dtype).min, torch.iinfo(point.dtype).max
    lower, upper = x.lower, x.upper
    inside = (lower > least) & (upper < largest) | (x.width == 0)
    lower, upper = (fn(torch.where(inside, end, 0.0)) for end in (lower, upper))
    return Discrete.around(point, torch.where(inside, lower, least), torch.where(inside, upper, largest))
