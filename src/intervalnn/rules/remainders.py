"""Remainders and angles, which start anew where they wrap."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut
from intervalnn.rules.arithmetic import corners, ends_of, gap_dtype_for, point_of, still
from intervalnn.rules.kinks import ahead
from intervalnn.table import aten, rule


@rule(aten.frac)
def frac(fn: Any, x: Interval) -> Interval:
    """Bound what follows the point of a number: a remainder of one."""
    return _remainder(lambda z, _: fn(z), x, 1.0, torch.trunc)


@rule(aten.fmod)
def fmod(fn: Any, x: Interval, divisor: Tensor | float) -> Interval:
    """Bound a remainder with the sign of ``x``: the ends, or all remainders where it wraps."""
    return _remainder(fn, x, divisor, torch.trunc)


@rule(aten.remainder)
def remainder(fn: Any, x: Interval, divisor: Tensor | float) -> Interval:
    """Bound a remainder with the sign of the divisor: the ends, or all remainders where it wraps."""
    return _remainder(fn, x, divisor, torch.floor)


def _remainder(fn: Any, x: Interval, divisor: Tensor | float, step: Any) -> Interval:
    ends = ahead(lambda x: _remainders(fn, x, divisor, step), x)
    return still(x, Interval.around(fn(x.point, divisor), *ends, x.gap_dtype))


def _remainders(fn: Any, x: Interval, divisor: Tensor | float, step: Any) -> tuple[Tensor, Tensor]:
    lower, upper = x.lower, x.upper
    low, high = fn(lower, divisor), fn(upper, divisor)
    wraps = (step(lower / divisor) != step(upper / divisor)) | (low > high)  # the quotient may have been rounded
    size = torch.as_tensor(divisor, dtype=low.dtype, device=x.device)
    if step is torch.floor:
        smallest, largest = size.clamp(max=0.0), cut(size)
    else:
        smallest, largest = torch.where(lower >= 0, 0.0, -size.abs()), torch.where(upper <= 0, 0.0, size.abs())
    return torch.where(wraps, smallest, low), torch.where(wraps, largest, high)


@rule(aten.atan2, takes=(0, 1))
def atan2(fn: Any, y: Interval | Tensor, x: Interval | Tensor) -> Interval:
    """Bound an angle by its corners, or by the full turn where it may jump."""
    point = fn(point_of(y), point_of(x))
    ends = ahead(lambda y, x: _angles(fn, y, x), y, x)
    return still([y, x], Interval.around(point, *ends, gap_dtype_for(point, y, x)))


def _angles(fn: Any, y: Interval | Tensor, x: Interval | Tensor) -> tuple[Tensor, Tensor]:
    (y_low, *y_high), (x_low, *_) = ends_of(y), ends_of(x)
    lower, upper = corners(fn, [ends_of(y), ends_of(x)], [point_of(x) >= 0, point_of(y) <= 0])
    jumps = (x_low <= 0) & (y_low <= 0) & ((*y_high, y_low)[0] >= 0) & (lower != upper)
    return torch.where(jumps, -torch.pi, lower), torch.where(jumps, torch.pi, upper)
