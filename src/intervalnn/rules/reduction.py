"""Values added up, multiplied, or compared with each other by an index, by a segment, or where they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.kinks import ahead
from intervalnn.rules.arithmetic import absolute, gap_dtype_for, point_of
from intervalnn.rules.structure import by_parts
from intervalnn.table import aten, rule

Reduce = Callable[[Tensor, Tensor], Tensor]
_SUMS = ("sum", "mean")
_NEVER_TAKEN = {"amax": -torch.inf, "amin": torch.inf}


@rule(aten.scatter_reduce.two, aten.index_reduce, takes=(0, 3))
def reduce_into(
    fn: Any, x: Any, dim: int, index: Tensor, source: Any, reduce: str, *, include_self: bool = True
) -> Interval:
    """Reduce the gaps of sums and means, else the ends."""

    def call(a: Tensor, b: Tensor) -> Tensor:
        if include_self or reduce not in _NEVER_TAKEN:
            result: Tensor = fn(a, dim, index, b, reduce, include_self=include_self)
            return result
        # what takes no part is overwritten, lest it has a share of the gradient where it is equal to the result
        overwrite = a.scatter if fn is aten.scatter_reduce.two else a.index_fill
        own: Tensor = fn(overwrite(dim, index, _NEVER_TAKEN[reduce]), dim, index, b, reduce, include_self=True)
        return own

    return _reduced(call, x, source, reduce)


@rule(aten.scatter.reduce, aten.scatter.value_reduce, takes=(0, 3))
def scatter_into(fn: Any, x: Any, dim: int, index: Tensor, source: Any, *, reduce: str) -> Interval:
    """Add or multiply with values, by the operation that has a derivative."""
    mode = {"add": "sum", "multiply": "prod"}[reduce]
    point = fn(point_of(x), dim, index, point_of(source), reduce=reduce)
    if not isinstance(source, Interval | Tensor):
        source = torch.full(index.shape, source, dtype=x.dtype, device=x.device)
    bounds = _reduced(lambda a, b: aten.scatter_reduce.two(a, dim, index, b, mode), x, source, mode)
    return Interval(point, bounds.below, bounds.above)


def _reduced(call: Reduce, x: Any, source: Any, reduce: str) -> Interval:
    if reduce in _SUMS:
        return by_parts(call, x, source, adds=True)
    point = call(point_of(x), point_of(source))
    dtype = gap_dtype_for(point, x, source)
    x, source = Interval.of(x), Interval.of(source)
    if reduce == "prod":
        return Interval.around(point, *_product(call, x, source), dtype)

    def ends(a: Interval, b: Interval) -> tuple[Tensor, Tensor]:
        return call(a.lower, b.lower), call(a.upper, b.upper)

    return Interval.around(point, *ahead(ends, x, source), dtype)


def _product(call: Reduce, x: Interval, source: Interval) -> tuple[Tensor, Tensor]:
    """Return the ends of products: their sizes lie between the products of the least and of the largest sizes.

    Where a factor has both signs, the product has, and neither end is larger than the largest size.
    """
    sizes = [absolute(aten.abs.default, v) for v in (x, source)]
    smallest = call(*(torch.where(v.lower > 0, v.lower, 0.0) for v in sizes))
    largest = call(*(v.upper for v in sizes))
    sign = call(*map(_sign, (x, source)))
    lower = torch.where(sign > 0, smallest, -largest)
    return lower, torch.where(sign < 0, -smallest, largest)


def _sign(x: Interval) -> Tensor:
    """Return 1 or -1 where an interval has one sign, and zero where it has both."""
    return (x.lower >= 0).to(x.dtype) - ((x.upper <= 0) & (x.lower < 0)).to(x.dtype)


@rule(aten.segment_reduce)
def segment_reduce(fn: Any, data: Interval, reduce: str, *, initial: float | None = None, **segments: Any) -> Interval:
    """Reduce each of the segments of a tensor."""
    point = fn(data.point, reduce, initial=initial, **segments)
    if reduce in _SUMS:
        wide = torch.promote_types(data.gap_dtype, torch.float32)
        gaps = (fn(gap.to(wide), reduce, initial=0.0, **segments) for gap in (data.below, data.above))
        return Interval(point, *(gap.to(data.gap_dtype) for gap in gaps))
    if reduce == "prod":
        bounds = _reduced(lambda a, _: fn(a, reduce, initial=1.0, **segments), data, data.point, reduce)
        bounds = bounds if initial is None else bounds * initial
        return Interval(point, bounds.below, bounds.above)
    lower, upper = (fn(end, reduce, initial=initial, **segments) for end in (data.lower, data.upper))
    return Interval.around(point, lower, upper, data.gap_dtype)
