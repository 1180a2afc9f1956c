"""Choices between values, where which one it is may change inside an interval: by a condition, or by an index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules import structure
from intervalnn.rules.arithmetic import around, gap_dtype_for, most, point_of
from intervalnn.rules.complexes import box, parts
from intervalnn.rules.discrete_values import Discrete
from intervalnn.table import aten, rule

Value = Interval | Discrete | Tensor | float


@rule(
    aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar, takes=(0, 1, 2), sign="keeps",
    discrete=True, complexes=True,
)  # fmt: skip
def where(fn: Any, condition: Value, x: Value, y: Value) -> Interval | Discrete:
    """Choose among the gaps as among the points; where the condition may change, bound both values."""
    answer = _truth(condition)
    point = torch.where(answer.point, point_of(x), point_of(y))
    if point.is_complex():
        pairs = zip(parts(_as(x, point)), parts(_as(y, point)), strict=True)
        return box(point, *(_choose(answer, torch.where(answer.point, a.point, b.point), a, b) for a, b in pairs))
    if not point.is_floating_point():
        return _discrete_choice(answer, point, x, y)
    bounds = _choose(answer, point, _as(x, point), _as(y, point))
    return around(point, bounds.below, bounds.above, *(v for v in (x, y) if isinstance(v, Interval)))


def _truth(x: Any) -> Discrete:
    return x if isinstance(x, Discrete) else Discrete.of(x)


def _as(x: Value, point: Tensor) -> Interval:
    """Return a value as an interval of the dtype of the result."""
    if isinstance(x, Discrete):
        return x.interval(point.dtype)
    if isinstance(x, Interval):
        if x.dtype == point.dtype:
            return x
        gap_dtype = point.dtype if point.is_complex() or x.gap_dtype == x.dtype else x.gap_dtype
        return Interval(x.point.to(point.dtype), x.below.to(gap_dtype), x.above.to(gap_dtype))
    return Interval.of(torch.as_tensor(x, device=point.device).to(point.dtype))


def _choose(answer: Discrete, point: Tensor, x: Interval, y: Interval) -> Interval:
    dtype = gap_dtype_for(point, x, y)
    below = torch.where(answer.point, x.below.to(dtype), y.below.to(dtype))
    above = torch.where(answer.point, x.above.to(dtype), y.above.to(dtype))
    if answer.lower is answer.upper:  # which a condition that is a tensor has
        return Interval(point, below, above)
    lower, upper = torch.where(answer.point, y.lower, x.lower), torch.where(answer.point, y.upper, x.upper)
    other = Interval.around(point, lower, upper, dtype)
    below = torch.where(answer.sure, below, most(below, other.below))
    return Interval(point, below, torch.where(answer.sure, above, most(above, other.above)))


def _discrete_choice(answer: Discrete, point: Tensor, x: Value, y: Value) -> Discrete:
    ends = {}
    for side, extreme in (("lower", torch.minimum), ("upper", torch.maximum)):
        first, second = (torch.as_tensor(getattr(v, side, v), device=point.device).to(point.dtype) for v in (x, y))
        first, second = torch.broadcast_tensors(first, second)
        own = torch.where(answer.point, first, second)
        ends[side] = torch.where(answer.sure, own, extreme(first, second))
    return Discrete(point, **ends)


@rule(aten.masked_fill, takes=(0, 1, 2), discrete=True, complexes=True)
def masked_fill(fn: Any, x: Value, mask: Value, value: Value) -> Any:
    """Replace the gaps where the point is replaced, or may be."""
    bounds = where(aten.where.self, mask, value, x)
    point = fn(point_of(x), point_of(mask), point_of(value))
    if isinstance(bounds, Discrete):
        return Discrete(point, bounds.lower, bounds.upper)
    return Interval(point, bounds.below.expand(point.shape), bounds.above.expand(point.shape))


@rule(aten.index_put, aten._unsafe_index_put, takes=(0, 1, 2), sign="keeps", discrete=True, complexes=True)
def index_put(fn: Any, x: Any, indices: list[Any], values: Any, accumulate: bool = False) -> Any:
    """Write or add the gaps of ``values`` where their points are written or added.

    With a mask that may change, only a single value can be written: with several, the place of each would be unknown.
    """
    if not any(isinstance(index, Discrete) for index in indices):
        return structure.index_put(fn, x, indices, values, accumulate)
    (mask, *rest) = indices
    if rest or accumulate or mask.dtype != torch.bool or values.size().numel() != 1:
        raise NotImplementedError(
            f"{fn} at places that may change inside an interval; with a mask it can write a single number, "
            "else use torch.where"
        )
    mask = mask.map(lambda part: part.reshape(*part.shape, *[1] * (x.dim() - part.dim())).expand(x.shape))
    value = values.map(lambda part: part.reshape(())) if isinstance(values, Interval) else values.reshape(())
    return where(aten.where.self, mask, value, x)


Pick = Callable[[Tensor, Tensor], Tensor]


@rule(aten.gather, aten.index_select, takes=(0, 2), sign="keeps", discrete=True, complexes=True)
def gather(fn: Any, x: Any, dim: int, index: Any, *args: Any, **kwargs: Any) -> Any:
    """Pick entries, or bound all those that may be picked."""

    def pick(part: Tensor, places: Tensor) -> Tensor:
        result: Tensor = fn(part, dim, places, *args, **kwargs)
        return result

    if isinstance(index, Tensor):
        return x.map(lambda part: pick(part, index))
    return _pick_between(pick, x, index, dim, fn is aten.gather.default)


@rule(aten.embedding, takes=(0, 1), sign="keeps", discrete=True, complexes=True)
def embedding(fn: Any, table: Any, index: Any, *args: Any) -> Any:
    """Pick rows of a table, or bound all those that may be picked."""
    if isinstance(index, Tensor):
        return table.map(lambda part: fn(part, index, *args))
    flat = index.map(torch.flatten)
    rows = _pick_between(lambda part, places: part.index_select(0, places), table, flat, 0, False)
    return rows.map(lambda part: part.unflatten(0, index.shape) if index.dim() else part.squeeze(0))


@rule(aten.index, aten._unsafe_index, takes=(0, 1), sign="keeps", discrete=True, complexes=True)
def index(fn: Any, x: Any, indices: list[Any]) -> Any:
    """Pick entries; by one index that may change, bound all those that may be picked."""
    given = [(dim, places) for dim, places in enumerate(indices) if places is not None]
    if not any(isinstance(places, Discrete) for _, places in given):
        return x.map(lambda part: fn(part, indices))
    (dim, places), *rest = given
    if rest or places.dtype == torch.bool:
        raise NotImplementedError(f"{fn} by several indices that may change inside an interval; use torch.gather")
    flat = _from_the_front(places, x.size(dim)).map(torch.flatten)
    rows = _pick_between(lambda part, at: part.index_select(dim, at), x, flat, dim, False)
    return rows.map(lambda part: part.unflatten(dim, places.shape) if places.dim() else part.squeeze(dim))


def _from_the_front(index: Discrete, size: int) -> Discrete:
    """Turn a negative index into one that counts from the front; where the sign may change, any index is possible."""
    negative, either = index.upper < 0, (index.lower < 0) & (index.upper >= 0)
    lower, upper = (torch.where(negative, end + size, end) for end in (index.lower, index.upper))
    point = torch.where(index.point < 0, index.point + size, index.point)
    return Discrete(point, torch.where(either, 0, lower), torch.where(either, size - 1, upper))


def _pick_between(pick: Pick, x: Any, index: Discrete, dim: int, each: bool) -> Any:
    """Bound the entries from the lower to the upper end of an index, one for each entry or one for each row."""
    like = point_of(x)
    if like.is_complex():
        raise NotImplementedError("an index that may change inside an interval cannot pick among complex numbers")

    def spread(flag: Tensor) -> Tensor:
        return flag if each or not flag.dim() else flag.view([-1] + [1] * (like.dim() - dim % like.dim() - 1))

    point = pick(like, index.point)
    if not point.is_floating_point():
        values = Discrete.of(x)
        return Discrete.around(point, *_extremes(pick, spread, values.lower, values.upper, index, dim))
    x = Interval.of(x)
    far = Interval.around(point, *_extremes(pick, spread, x.lower, x.upper, index, dim), x.gap_dtype)
    sure = spread(index.sure)
    gaps = ((pick(own, index.point), gap) for own, gap in ((x.below, far.below), (x.above, far.above)))
    return Interval(point, *(torch.where(sure, own, gap) for own, gap in gaps))


def _extremes(
    pick: Pick, spread: Callable[[Tensor], Tensor], lower: Tensor, upper: Tensor, index: Discrete, dim: int
) -> tuple[Tensor, Tensor]:
    """Return the least of ``lower`` and the largest of ``upper`` between the ends of an index.

    This is a sparse table: runs of 1, 2, 4 ... entries are combined from runs of half the length, and two runs cover
    any range.
    """
    n = lower.size(dim)
    first, last = index.lower.clamp(0, n - 1), index.upper.clamp(0, n - 1)
    low = torch.minimum(pick(lower, first), pick(lower, last))
    high = torch.maximum(pick(upper, first), pick(upper, last))
    size = 1
    while 2 * size <= n:
        lower, upper = (
            extreme(*(part.narrow(dim, start, part.size(dim) - size) for start in (0, size)))
            for extreme, part in ((torch.minimum, lower), (torch.maximum, upper))
        )
        size *= 2
        covers = spread(last - first >= size - 1)
        for place in (first, last - size + 1):
            place = place.clamp(0, n - size)
            low = torch.where(covers, torch.minimum(low, pick(lower, place)), low)
            high = torch.where(covers, torch.maximum(high, pick(upper, place)), high)
    return low, high
