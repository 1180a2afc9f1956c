"""Values by their rank: sorted ones, medians, the largest and the smallest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import gap_dtype_for, known_ends, point_of
from intervalnn.rules.kinks import ahead
from intervalnn.rules.monotone import Function, by_ends, ends_of_all
from intervalnn.table import aten, rule

INDICES = "is an index, which an interval does not have: which entry is largest may change inside it"


@rule(
    aten.amax, aten.amin, aten.median.default, aten.max.default, aten.min.default, sign="keeps",
)  # fmt: skip
def keeps_sign(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a function of many entries that is non-decreasing in each, and no less than the least of them."""
    return by_ends(fn, x, *args, **kwargs)


@rule(aten.nanmedian.default, sign="keeps")
def nanmedian(fn: Function, x: Interval) -> Interval:
    """Bound a median that passes over what is not a number; an end that is none may lie anywhere."""
    point, lower, upper = (fn(part) for part in (x.point, *known_ends(x)))
    return Interval.around(point, lower, upper, x.gap_dtype)


@rule(aten.maximum, aten.minimum, aten.fmax, aten.fmin, aten.max.other, aten.min.other, takes=(0, 1), sign="keeps")
def extremum_of_two(fn: Function, x: Any, y: Any) -> Interval:
    """Bound the larger or the smaller of two values."""
    point = fn(point_of(x), point_of(y))
    ends = ahead(lambda x, y: ends_of_all(fn, x, y), x, y)
    return Interval.around(point, *ends, gap_dtype_for(point, x, y))


@rule(
    aten.cummax, aten.cummin, aten.median.dim, aten.nanmedian.dim, aten.sort, aten.kthvalue,
    sign="keeps", hidden={1: INDICES},
)  # fmt: skip
def values_and_indices(fn: Callable[..., Any], x: Interval, *args: Any, **kwargs: Any) -> tuple[Interval, None]:
    """Bound the values, each of which is non-decreasing in every input; the indices are hidden.

    An end that is not a number, which torch ranks last, may have any rank.
    """
    point, lower, upper = (fn(part, *args, **kwargs)[0] for part in (x.point, *known_ends(x)))
    return Interval.around(point, lower, upper, x.gap_dtype), None


@rule(aten.topk, sign="keeps", hidden={1: INDICES})
def topk(
    fn: Callable[..., Any], x: Interval, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Interval, None]:
    """Bound the largest or smallest values, in order."""
    if not sorted:
        raise NotImplementedError(f"{fn} with sorted=False leaves open which value comes where; pass sorted=True")
    return values_and_indices(fn, x, k, dim, largest)
