"""Odd functions of one variable, whose size falls as another one rises that does not depend on it.

Their largest value over both intervals is at an end of the first, or at a peak inside. There the second has its least
value, or its largest where the function is negative. The least value follows, since the function is odd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import least, most
from intervalnn.rules.kinks import beyond

Function = Callable[[Tensor], Tensor]


class Ends(NamedTuple):
    """A value at the point and at both ends, each computed by itself, so that small ones keep their digits."""

    point: Tensor
    low: Tensor
    high: Tensor


def ends(x: Interval, fn: Function = torch.clone) -> Ends:
    """Return a function at the point and at the ends of an interval."""
    return Ends(fn(x.point), fn(x.lower), fn(x.upper))


def size(v: Ends, rises: Tensor, zero: Tensor) -> Ends:
    """Return the ends of an absolute value, given whether it rises at the point and whether it reaches zero."""
    point, low, high = v.point.abs(), beyond(torch.abs, v.low, "lower"), beyond(torch.abs, v.high, "upper")
    smallest = least(torch.where(rises, low, high), low, high)
    largest = most(torch.where(rises, high, low), low, high)
    return Ends(point, torch.where(zero, 0.0, smallest), largest)


def sizes(x: Interval) -> Ends:
    """Return the ends of the absolute value of an interval."""
    return size(ends(x), x.point >= 0, (x.lower <= 0) & (x.upper >= 0))


def over(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x / y``, and ``x`` where ``y`` is zero."""
    return x / torch.where(y == 0, 1.0, y)


def height(fn: Function, q: Tensor, reached: Tensor) -> Tensor:
    """Return the height of a peak where it is reached: ``fn(q)``, and infinite where ``q`` is zero."""
    safe = torch.where(reached & (q > 0), q, 0.25)  # whose derivative is a number
    return torch.where(reached, torch.where(q > 0, fn(safe), torch.inf), -torch.inf)


def odd(
    value: Callable[[Tensor, Tensor], Tensor], v: Ends, q: Ends, rises: Tensor, *,
    positive: Function = lambda v: v >= 0, peak: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Interval:  # fmt: skip
    """Bound an odd function of ``v``, whose size falls with ``q``.

    Args:
        value: The function.
        v: The first variable.
        q: The second one.
        rises: Whether the function rises with ``v`` at the point.
        positive: Whether it is positive at a value of ``v``.
        peak: Its largest value inside an interval of ``v``, minus infinity where it has no peak there.
    """

    def top(low: Tensor, high: Tensor) -> Tensor:
        at_high, at_low = (value(end, torch.where(positive(end), q.low, q.high)) for end in (high, low))
        highest = most(torch.where(rises, at_high, at_low), at_high, at_low)
        return highest if peak is None else most(highest, peak(low, high))

    return Interval.around(value(v.point, q.point), -top(-v.high, -v.low), top(v.low, v.high))
