"""Values by their rank: sorted ones, medians, the largest and the smallest, max pooling."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

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


@rule(aten.max_pool1d, aten.max_pool2d, aten.max_pool3d, sign="keeps")
def max_pool(fn: Function, x: Interval, kernel: list[int], *rest: Any) -> Interval:
    """Bound the largest entry of each window; where compiled, entry by entry, lest both ends are written out first."""
    if torch.compiler.is_dynamo_compiling() and _apart(kernel, *rest):
        return by_ends(lambda end: largest(end, kernel), x)
    if torch.compiler.is_exporting():  # other runtimes pass over what is not a number
        lower, upper = (fn(end, kernel, *rest) for end in known_ends(x))
        return Interval.around(fn(x.point, kernel, *rest), lower, upper, x.gap_dtype)
    return by_ends(fn, x, kernel, *rest)


def _apart(
    kernel: list[int], stride: Any = (), padding: Any = (0,), dilation: Any = (1,), ceil_mode: bool = False
) -> bool:
    """Say whether windows lie side by side, and are small."""
    edges = set(padding) == {0} and set(dilation) == {1} and not ceil_mode
    return edges and list(stride) in ([], list(kernel)) and math.prod(kernel) <= 8


def largest(x: Tensor, kernel: list[int]) -> Tensor:
    """Return the largest entry of each window, where windows lie side by side."""
    for dim, size in enumerate(reversed(kernel), start=1):
        x = x.narrow(-dim, 0, x.size(-dim) // size * size)
    views = [x]
    for dim, size in enumerate(kernel, start=x.dim() - len(kernel)):
        views = [view[(slice(None),) * dim + (slice(at, None, size),)] for view in views for at in range(size)]
    return functools.reduce(torch.maximum, views)


@rule(aten.maximum, aten.minimum, aten.fmax, aten.fmin, aten.max.other, aten.min.other, takes=(0, 1), sign="keeps")
def extremum_of_two(fn: Function, x: Any, y: Any) -> Interval:
    """Bound the larger or the smaller of two values."""
    point = fn(point_of(x), point_of(y))
    ends = ahead(lambda x, y: ends_of_all(fn, x, y), x, y)
    return Interval.around(point, *ends, gap_dtype_for(point, x, y))


@rule(
    aten.cummax, aten.cummin, aten.median.dim, aten.nanmedian.dim,
    aten.max_pool2d_with_indices, aten.max_pool3d_with_indices, aten.adaptive_max_pool1d,
    aten.adaptive_max_pool2d, aten.adaptive_max_pool3d, aten.sort, aten.kthvalue, sign="keeps", hidden={1: INDICES},
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
