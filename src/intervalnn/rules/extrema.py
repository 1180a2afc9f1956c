"""Functions with known extrema: the ends, and the extrema that the interval contains."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from intervalnn.interval import Interval, capped
from intervalnn.rules.arithmetic import known_ends, least, most, still
from intervalnn.rules.kinks import ahead
from intervalnn.table import aten, rule

Function = Callable[..., Tensor]

# Where each function has its only minimum; from solving f'(x) = 0 to 20 digits with mpmath.
MINIMUM = {
    aten.silu: -1.2784645427610737951,
    aten.mish: -1.1924312145154952121,
    aten.hardswish: -1.5,
    aten.cosh: 0.0,
}
GELU_MINIMUM = {"none": -0.75179152469356445746, "tanh": -0.75246142207101625849}


@rule(aten.silu, aten.mish)
def falling_then_rising(fn: Function, x: Interval) -> Interval:
    """Bound a function that falls up to its minimum and rises from there."""
    return valley(fn, x, MINIMUM[fn.overloadpacket])  # type: ignore[attr-defined]


@rule(aten.hardswish)
def hardswish(fn: Function, x: Interval) -> Interval:
    """Bound a function that falls, then rises, and bends on the way."""
    ends = ahead(lambda x: _valley_ends(fn, x, MINIMUM[aten.hardswish]), x)
    return still(x, Interval.around(fn(x.point), *ends, x.gap_dtype))


@rule(aten.cosh, sign="nonnegative")
def cosh(fn: Function, x: Interval) -> Interval:
    """Bound a hyperbolic cosine, least at zero."""
    return valley(fn, x, 0.0)


@rule(aten.gelu)
def gelu(fn: Function, x: Interval, approximate: str = "none") -> Interval:
    """Bound either form of the GELU, each with its own minimum."""
    return valley(lambda z: fn(z, approximate=approximate), x, GELU_MINIMUM[approximate])


def valley(fn: Function, x: Interval, argmin: float) -> Interval:
    """Bound a function that falls up to ``argmin`` and rises from there."""
    return still(x, Interval.around(fn(x.point), *_valley_ends(fn, x, argmin), x.gap_dtype))


def _valley_ends(fn: Function, x: Interval, argmin: float) -> tuple[Tensor, Tensor]:
    deepest = torch.where(x.lower > argmin, x.lower, capped(x.upper, argmin))
    lower, upper = fn(x.lower), fn(x.upper)
    return fn(deepest), most(torch.where(x.point >= argmin, upper, lower), lower, upper)


@rule(aten.sin)
def sin(fn: Function, x: Interval) -> Interval:
    """Bound a sine: 1 and -1 where the interval reaches a quarter or three quarters of a turn."""
    return _wave(fn, x, top=math.pi / 2)


@rule(aten.cos)
def cos(fn: Function, x: Interval) -> Interval:
    """Bound a cosine: 1 and -1 where the interval reaches a whole or half a turn."""
    return _wave(fn, x, top=0.0)


def _wave(fn: Function, x: Interval, top: float) -> Interval:
    lower, upper = x.lower, x.upper
    ends = fn(lower), fn(upper)
    rising = fn(x.point + math.pi / 2) >= 0  # the derivative of either wave is itself, a quarter of a turn ahead
    high = most(torch.where(rising, ends[1], ends[0]), *ends)
    low = least(torch.where(rising, ends[0], ends[1]), *ends)
    high = torch.where(reaches(lower, upper, top, 2 * math.pi), 1.0, high)
    low = torch.where(reaches(lower, upper, top + math.pi, 2 * math.pi), -1.0, low)
    return still(x, Interval.around(fn(x.point), low, high, x.gap_dtype))


def reaches(lower: Tensor, upper: Tensor, where: float | Tensor, period: float) -> Tensor:
    """Say whether ``where``, or a multiple of the period away from it, lies in the interval."""
    first = torch.floor((upper - where) / period)  # of the last such place at or below the upper end
    slack = 4 * torch.finfo(lower.dtype).eps * torch.maximum(lower.abs(), upper.abs())
    near_above = where + (first + 1) * period <= upper + slack  # missed by rounding alone
    return (first * period + where >= lower - slack) & (upper > lower) | near_above & (upper > lower)


@rule(aten.tan)
def tan(fn: Function, x: Interval) -> Interval:
    """Bound a tangent by its ends; without bounds where it may jump."""
    lower, upper = known_ends(x)
    jumps = reaches(lower, upper, math.pi / 2, math.pi)
    low, high = torch.where(jumps, -torch.inf, fn(lower)), torch.where(jumps, torch.inf, fn(upper))
    return still(x, Interval.around(fn(x.point), low, high, x.gap_dtype))
