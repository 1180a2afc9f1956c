"""Values added up, multiplied, or compared with each other by an index, by a segment, or where they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import absolute, gap_dtype_for, point_of
from intervalnn.rules.kinks import ahead
from intervalnn.rules.structure import by_parts
from intervalnn.table import aten, rule

Reduce = Callable[[Tensor, Tensor], Tensor]
_SUMS = ("sum", "mean")
_NEVER_TAKEN = {"amax": -torch.inf, "amin": torch.inf}


@rule(aten.scatter_reduce.two, aten.index_reduce, takes=(0, 3), complexes=True)
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
    if point.is_complex():
        raise NotImplementedError(f"reduce={reduce!r} of complex numbers; multiply them one by one instead")
    dtype = gap_dtype_for(point, x, source)
    x, source = (_with_ends_of(Interval.of(v), torch.promote_types(point.dtype, dtype)) for v in (x, source))
    if reduce == "prod":
        return Interval.around(point, *ahead(lambda a, b: _product(call, a, b), x, source), dtype)

    def ends(a: Interval, b: Interval) -> tuple[Tensor, Tensor]:
        return call(a.lower, b.lower), call(a.upper, b.upper)

    return Interval.around(point, *ahead(ends, x, source), dtype)


def _with_ends_of(x: Interval, dtype: torch.dtype) -> Interval:
    """Return an interval whose ends have a dtype, so that they can be compared with those of others."""
    return Interval(x.point.to(dtype), x.below.to(dtype), x.above.to(dtype))


def _product(call: Reduce, x: Interval, source: Interval) -> tuple[Tensor, Tensor]:
    """Return the ends of products: their sizes lie between the products of the least and of the largest sizes.

    Where one factor has both signs, the product reaches as far up and down as that factor does, times all others.
    Where several have, neither end is larger than the largest size.
    """
    both = [(v.lower < 0) & (v.upper > 0) for v in (x, source)]
    sizes = [absolute(aten.abs.default, v) for v in (x, source)]
    smallest = call(*(torch.where(v.lower > 0, v.lower, 0.0) for v in sizes))
    largest = call(*(v.upper for v in sizes))
    up = call(*(torch.where(b, v.upper, size.upper) for b, v, size in zip(both, (x, source), sizes, strict=True)))
    down = call(*(torch.where(b, -v.lower, size.upper) for b, v, size in zip(both, (x, source), sizes, strict=True)))
    sign = call(*map(_sign, (x, source)))
    signs = call(*(torch.where(b, 2.0, 1.0).to(x.dtype) for b in both))  # two for each factor that has both
    up, down = torch.where(sign > 0, up, down), torch.where(sign > 0, down, up)
    lower = torch.where(signs > 1, torch.where(signs > 2, -largest, -down), torch.where(sign > 0, smallest, -largest))
    return lower, torch.where(signs > 1, torch.where(signs > 2, largest, up), torch.where(sign < 0, -smallest, largest))


def _sign(x: Interval) -> Tensor:
    """Return the sign of an interval, 1 where it has both, and zero where it is not a number."""
    return ((x.lower >= 0) | (x.upper > 0)).to(x.dtype) - ((x.upper <= 0) & (x.lower < 0)).to(x.dtype)


@rule(aten.segment_reduce)
def segment_reduce(fn: Any, data: Interval, reduce: str, *, initial: float | None = None, **segments: Any) -> Interval:
    """Reduce each of the segments of a tensor; other than sums by the operation whose derivative shares out ties."""
    point = fn(data.point, reduce, initial=initial, **segments)
    if reduce in _SUMS:
        wide = torch.promote_types(data.gap_dtype, torch.float32)
        gaps = (fn(gap.to(wide), reduce, initial=0.0, **segments) for gap in (data.below, data.above))
        return Interval(point, *(gap.to(data.gap_dtype) for gap in gaps))
    mode, neutral = {"max": ("amax", -torch.inf), "min": ("amin", torch.inf), "prod": ("prod", 1.0)}[reduce]
    axis, start = segments.get("axis", 0), torch.full_like(point, neutral if initial is None else initial)
    index = _segment_of(data.point, axis, segments)
    bounds = _reduced(lambda a, b: aten.scatter_reduce.two(a, axis, index, b, mode), start, data, mode)
    return Interval(point, bounds.below, bounds.above)


def _segment_of(data: Tensor, axis: int, segments: dict[str, Any]) -> Tensor:
    """Return for each value the number of the segment that it is in."""
    lengths, offsets = segments.get("lengths"), segments.get("offsets")
    ends = lengths.cumsum(-1) if isinstance(lengths, Tensor) else offsets[..., 1:].contiguous()  # type: ignore[index]
    places = torch.arange(data.shape[axis], device=data.device).expand(data.shape[: axis + 1]).contiguous()
    found = torch.searchsorted(ends, places, right=True)
    return found.reshape(*found.shape, *[1] * (data.dim() - axis - 1)).expand_as(data)
