"""Operations that move values about, or add them up with weights that are never negative.

They do to the gaps what they do to the point, so that no gap loses a digit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut
from intervalnn.rules.arithmetic import around, as_gap, gap_dtype_for, known_ends, point_of
from intervalnn.rules.mirrored import mirrored
from intervalnn.table import Sign, apply, aten, plain, rule

Function = Callable[..., Any]


@rule(
    # views and copies
    aten.view, aten._unsafe_view, aten.reshape, aten.view_copy, aten.flatten, aten.unflatten,
    aten.permute, aten.transpose, aten.t, aten.movedim, aten.swapaxes, aten.squeeze, aten.unsqueeze, aten.expand,
    aten.select, aten.slice, aten.narrow, aten.diagonal, aten.unfold, aten.alias, aten.clone, aten.contiguous,
    aten.lift_fresh_copy, aten.resolve_conj, aten.resolve_neg, aten.expand_copy, aten.alias_copy,
    aten.diagonal_copy, aten.permute_copy, aten.select_copy, aten.slice_copy, aten.squeeze_copy,
    aten.t_copy, aten.transpose_copy, aten.unfold_copy, aten.unsqueeze_copy, aten._reshape_copy,
    # moves
    aten.repeat, aten.repeat_interleave.self_int, aten.repeat_interleave.self_Tensor, aten.tile, aten.flip,
    aten.roll, aten.rot90, aten.take,
    aten.take_along_dim, aten.tril, aten.triu, aten.diag_embed, aten.pixel_shuffle, aten.pixel_unshuffle,
    aten.channel_shuffle, aten.im2col, aten.masked_select, aten.diag,
    aten.reflection_pad1d, aten.reflection_pad2d, aten.reflection_pad3d,
    aten.replication_pad1d, aten.replication_pad2d, aten.replication_pad3d,
    # sums and means
    aten.sum, aten.mean, aten.cumsum, aten.trace,
    aten.avg_pool1d, aten.adaptive_avg_pool1d, aten.adaptive_avg_pool2d, aten._adaptive_avg_pool2d,
    aten._upsample_nearest_exact1d, aten._upsample_nearest_exact2d, aten._upsample_nearest_exact3d,
    aten.upsample_linear1d, aten.upsample_bilinear2d, aten.upsample_trilinear3d,
    sign="keeps", complexes=True,
)  # fmt: skip
def carry(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Do to the gaps what is done to the point."""
    point = fn(x.point, *args, **kwargs)
    dtype = kwargs.pop("dtype", None)  # the gaps keep theirs, if they are complex where the point is
    if dtype is not None and dtype.is_complex != x.dtype.is_complex:
        x = x.map(lambda part: as_gap(part, dtype))
    return Interval(point, fn(x.below, *args, **kwargs), fn(x.above, *args, **kwargs))


@rule(aten.narrow_copy, sign="keeps", complexes=True)
def narrow_copy(fn: Function, x: Interval, dim: int, start: int, length: int) -> Interval:
    """Narrow the gaps by an operation that torch 2.11 can differentiate."""
    return Interval(fn(x.point, dim, start, length), *(part.narrow(dim, start, length) for part in (x.below, x.above)))


@rule(aten._reshape_alias, sign="keeps", complexes=True)
def reshape_alias(fn: Function, x: Interval, size: list[int], stride: list[int]) -> Interval:
    """Reshape the gaps, which may lie in memory otherwise than the point does."""
    return Interval(fn(x.point, size, stride), x.below.reshape(size), x.above.reshape(size))


@rule(aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d, sign="keeps")
def nearest(fn: Function, x: Interval, size: Any, scales: Any = None, *rest: Any) -> Interval:
    """Do to the gaps what is done to the point."""
    return carry(lambda part: upsampled(fn, part, size, scales, *rest), x)


def upsampled(fn: Function, x: Tensor, size: Any, scales: Any = None, *rest: Any) -> Tensor:
    """Return nearest neighbours; where compiled, by copies, whose places take less to find."""
    times = copies(size, scales)
    if times and torch.compiler.is_dynamo_compiling():
        return copied(x, times)
    result: Tensor = fn(x, size, scales, *rest)
    return result


def copies(size: Any, scales: Any = None) -> list[int] | None:
    """Return how often nearest upsampling copies each value; None if not every one alike."""
    alike = size is None and isinstance(scales, list | tuple) and set(scales) <= {1.0, 2.0, 4.0, 8.0}
    return [int(scale) for scale in scales] if alike else None


def copied(x: Tensor, times: list[int]) -> Tensor:
    """Return ``x`` with every entry so many times along each of the last dimensions."""
    for dim, count in enumerate(times, start=x.dim() - len(times)):
        x = x.unsqueeze(dim + 1).expand(*x.shape[: dim + 1], count, *x.shape[dim + 1 :]).flatten(dim, dim + 1)
    return x


@rule(aten.detach, aten.detach_copy, sign="keeps", complexes=True)
def detach(fn: Function, x: Interval) -> Interval:
    """Cut off the point alone, whose gradient the model did not want; the gaps have one of their own."""
    return Interval(fn(x.point), x.below, x.above)


@rule(aten.avg_pool2d, aten.avg_pool3d, takes=(0, 6), sign="keeps")
def mean_pool(fn: Function, x: Interval, *args: Any) -> Interval:
    """Average the gaps; they change places under a negative divisor, which the last argument may be."""
    if len(args) < 6 or args[5] is None or args[5] > 0:
        return carry_in_full(fn, x, *args)
    flipped = carry_in_full(fn, -x, *args[:5], -args[5])
    return Interval(fn(x.point, *args), flipped.below, flipped.above)


@rule(
    aten._upsample_bilinear2d_aa, aten.col2im, aten.adaptive_avg_pool3d, aten._adaptive_avg_pool3d, sign="keeps",
)  # fmt: skip
def carry_in_full(fn: Function, x: Interval, *args: Any) -> Interval:
    """Do to the gaps what is done to the point, in full precision.

    Torch has no such kernel for every dtype, or one that adds up in that dtype, so that small gaps would be lost.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    return around(fn(x.point, *args), *(fn(gap.to(wide), *args) for gap in (x.below, x.above)), x)


@rule(
    aten.split, aten.split_with_sizes, aten.chunk, aten.tensor_split, aten.unbind, aten.split_copy,
    aten.split_with_sizes_copy, aten.unbind_copy, sign="keeps", complexes=True,
)  # fmt: skip
def carry_to_parts(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> list[Interval]:
    """Cut the gaps as the point is cut."""
    pieces = (fn(part, *args, **kwargs) for part in (x.point, x.below, x.above))
    return [Interval(*piece) for piece in zip(*pieces, strict=True)]


@rule(aten.cat, aten.stack, sign="keeps", complexes=True)
def join(fn: Function, tensors: list[Interval | Tensor], *args: Any) -> Interval:
    """Join the points, and the gaps."""
    point = fn([point_of(t) for t in tensors], *args)
    dtype = gap_dtype_for(point, *tensors)
    below, above = ([_gap(t, side, dtype) for t in tensors] for side in ("below", "above"))
    return Interval(point, fn(below, *args), fn(above, *args))


@rule(aten.constant_pad_nd, takes=(0, 2), sign="keeps", complexes=True)
def constant_pad(fn: Function, x: Interval, padding: list[int], value: float = 0) -> Interval:
    """Pad the point with the value, and the gaps with nothing."""
    return Interval(fn(x.point, padding, value), fn(x.below, padding, 0.0), fn(x.above, padding, 0.0))


@rule(aten.pad, takes=(0, 3), sign="keeps", complexes=True)
def pad(fn: Function, x: Interval, padding: list[int], mode: str = "constant", value: float | None = None) -> Interval:
    """Pad the point, and the gaps with what belongs to it."""
    gap_value = 0.0 if mode == "constant" else None
    below, above = (fn(gap, padding, mode, gap_value) for gap in (x.below, x.above))
    return Interval(fn(x.point, padding, mode, value), below, above)


def zero_or_gaps(x: Any, like: Interval) -> tuple[Tensor, Tensor]:
    """Return the gaps of an interval, and none of anything else, as tensors like those of another."""
    if isinstance(x, Interval):
        return x.below, x.above
    zero = like.below.new_zeros(())
    return zero, zero


@rule(
    aten.slice_scatter, aten.select_scatter, aten.diagonal_scatter, takes=(0, 1), sign="keeps", complexes=True,
)  # fmt: skip
def write_part(fn: Function, x: Any, source: Any, *args: Any, **kwargs: Any) -> Interval:
    """Write the gaps of ``source`` over those of ``x``, where its point is written."""
    return by_parts(lambda a, b: fn(a, b, *args, **kwargs), x, source)


@rule(aten.put, takes=(0, 2), sign="keeps")
def put(fn: Function, x: Any, index: Tensor, source: Any, accumulate: bool = False) -> Interval:
    """Write or add the gaps of ``source`` where its points are written or added."""
    return by_parts(lambda a, b: fn(a, index, b, accumulate), x, source, adds=accumulate)


@rule(aten.masked_scatter, takes=(0, 2), sign="keeps", complexes=True)
def masked_scatter(fn: Function, x: Any, mask: Tensor, source: Any) -> Interval:
    """Write the gaps of ``source`` over those of ``x``, where the mask says so."""
    return by_parts(lambda a, b: fn(a, mask, b), x, source)


def index_put(fn: Function, x: Any, indices: Any, values: Any, accumulate: bool = False) -> Interval:
    """Write or add the gaps of ``values`` where their points are written or added."""
    return by_parts(lambda a, b: fn(a, indices, b, accumulate), x, values, adds=accumulate)


@rule(aten.scatter.src, aten.scatter_add, aten.index_add, aten.index_copy, takes=(0, 3), sign="keeps", complexes=True)
def scatter(fn: Any, x: Any, dim: int, index: Tensor, source: Any, **kwargs: Any) -> Interval:
    """Write or add the gaps of ``source`` where their points are written or added."""
    alpha = kwargs.get("alpha", 1)
    if isinstance(alpha, complex):
        turned = scatter(fn, x, dim, index, apply(aten.mul.Tensor, Interval.of(source), alpha))
        return Interval(fn(point_of(x), dim, index, point_of(source), alpha=alpha), turned.below, turned.above)
    if alpha < 0:  # adding less of the source is adding more of what it is not
        flipped = scatter(fn, x, dim, index, -Interval.of(source), alpha=-alpha)
        return Interval(fn(point_of(x), dim, index, point_of(source), alpha=alpha), flipped.below, flipped.above)
    adds = fn.overloadpacket in (aten.scatter_add, aten.index_add)
    return by_parts(lambda a, b: fn(a, dim, index, b, **kwargs), x, source, adds=adds)


@rule(aten.scatter.value, aten.index_fill.int_Scalar, takes=(0, 3), sign="keeps", complexes=True)
def scatter_value(fn: Function, x: Interval, dim: int, index: Tensor, value: float) -> Interval:
    """Write a number, which has no gaps."""
    below, above = (fn(gap, dim, index, 0.0) for gap in (x.below, x.above))
    return Interval(fn(x.point, dim, index, value), below, above)


def by_parts(fn: Callable[[Tensor, Tensor], Tensor], x: Any, y: Any, *, adds: bool = False) -> Interval:
    """Do to the gaps what is done to the points; in full precision where it adds, lest small ones are lost."""
    point = fn(point_of(x), point_of(y))
    like = x if isinstance(x, Interval) else y
    dtype = point.dtype if point.is_complex() or like.dtype.is_complex else like.gap_dtype
    wide = torch.promote_types(dtype, torch.float32) if adds else dtype
    sides = []
    for side in ("below", "above"):
        a, b = (_gap(v, side, wide) for v in (x, y))
        if point.is_complex():  # writes into complex tensors have no derivative in torch
            sides.append(torch.complex(fn(a.real, b.real), fn(a.imag, b.imag)))
        else:
            sides.append(fn(a, b).to(dtype))
    return Interval(point, *sides)


def _gap(x: Interval | Tensor, side: str, dtype: torch.dtype) -> Tensor:
    return as_gap(getattr(x, side), dtype) if isinstance(x, Interval) else torch.zeros_like(x, dtype=dtype)


@rule(aten.copy, takes=(0, 1), complexes=True)
def copy(fn: Function, x: Any, source: Any, *args: Any) -> Interval:
    """Forget ``x`` but for its shape and dtype."""
    point = fn(point_of(x), point_of(source), *args)
    below, above = zero_or_gaps(source, x)  # which torch.copy itself would not differentiate
    return around(point, below, above, source if isinstance(source, Interval) else x)


@rule(aten.fill.Tensor, aten.fill.Scalar, takes=(0, 1), complexes=True)
def fill(fn: Function, x: Any, value: Any) -> Any:
    """Forget ``x`` but for its shape."""
    if not isinstance(value, Interval):
        return Interval.of(fn(point_of(x), value))
    return around(fn(point_of(x), value.point), value.below, value.above, value)


@rule(
    aten._embedding_bag, aten._embedding_bag_forward_only, hidden={1: "is an offset", 2: "is a size", 3: "is an index"}
)
def embedding_bag(
    fn: Function, weight: Interval, indices: Tensor, offsets: Tensor, scale: bool = False, mode: int = 0,
    sparse: bool = False, sample_weights: Tensor | None = None, *rest: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Add up, average, or take the largest of the rows of a table of intervals.

    The gaps go through the one of the two operations that has a derivative.
    """

    def call(table: Tensor, factors: Tensor | None) -> Any:
        return aten._embedding_bag.default(table, indices, offsets, scale, mode, sparse, factors, *rest)

    point, *others = fn(weight.point, indices, offsets, scale, mode, sparse, sample_weights, *rest)
    if mode == 2:
        lower, upper = (call(end, None)[0] for end in known_ends(weight))
        return Interval.around(point, lower, upper, weight.gap_dtype), *others
    if sample_weights is None:
        return Interval(point, call(weight.below, None)[0], call(weight.above, None)[0]), *others
    factors = sample_weights.to(weight.gap_dtype)
    even = call((weight.above + weight.below) / 2, factors.abs())[0]
    odd = call((weight.above - weight.below) / 2, factors)[0]
    above, below = mirrored(even, odd)
    return Interval(point, cut(below), cut(above)), *others


def _sampler_sign(x: Any, grid: Any, interpolation: int, *rest: Any) -> Sign:
    return "unknown" if interpolation == 2 else "keeps"  # a bicubic kernel is negative in places


@rule(aten.grid_sampler_2d, aten.grid_sampler_3d, aten.grid_sampler, sign=_sampler_sign)
def grid_sampler(
    fn: Function, x: Interval, grid: Tensor, interpolation: int, padding: int, align_corners: bool
) -> Interval:
    """Sample the gaps as the point is sampled, if the kernel is never negative."""
    if interpolation == 2:
        raise NotImplementedError(f"{fn} with bicubic interpolation of intervals; use bilinear or nearest")
    parts = ((part.to(grid.dtype)) for part in (x.point, x.below, x.above))
    point, below, above = (fn(part, grid, interpolation, padding, align_corners) for part in parts)
    return Interval(point, below.to(x.gap_dtype), above.to(x.gap_dtype))


@rule(aten.upsample_bicubic2d, aten._upsample_bicubic2d_aa)
def bicubic(fn: Any, x: Interval, size: Any, align_corners: bool, *scales: Any) -> Interval:
    """Bound a bicubic interpolation, whose kernel is negative in places, by the sizes of its taps."""
    point = fn(x.point, size, align_corners, *scales)
    by_axis = scales[0] if scales and isinstance(scales[0], list | tuple) else (*scales, None, None)[:2]
    taps = [
        _taps(fn.overloadpacket.default, x, axis, point.size(axis), align_corners, scale)
        for axis, scale in zip((-2, -1), by_axis or (None, None), strict=True)
    ]
    below, above = x.below.to(x.dtype), x.above.to(x.dtype)
    even = taps[0] @ ((above + below) / 2) @ taps[1].mT
    odd = fn((above - below) / 2, size, align_corners, *scales)
    above, below = (cut(gap).to(x.gap_dtype) for gap in mirrored(even, odd))
    return Interval(point, below, above)


def _taps(fn: Any, x: Interval, axis: int, outputs: int, align_corners: bool, scale: float | None) -> Tensor:
    """Return the sizes of the taps of one axis, ``(outputs, inputs)``, by interpolating unit vectors."""
    n = x.size(axis)
    units = torch.eye(n, dtype=x.dtype, device=x.device)[None, :, :, None].expand(1, n, n, 2)
    taps: Tensor = fn(units, [outputs, 2], align_corners, scale, None)
    return taps[0, :, :, 0].mT.abs()


@rule(aten.cross, takes=(0, 1), complexes=True)
def first_cross(fn: Function, x: Any, y: Any, dim: int | None = None) -> Interval:
    """Bound a cross product along the first dimension of size three, unless another is named."""
    return cross(fn, x, y, dim=x.shape.index(3) if dim is None else dim)


@rule(aten.linalg_cross, takes=(0, 1), complexes=True)
def cross(fn: Function, x: Any, y: Any, *, dim: int = -1) -> Interval:
    """Bound a cross product, a difference of products of independent components."""
    point = fn(point_of(x), point_of(y), dim=dim)
    first, second = Interval.of(x), Interval.of(y)

    def roll(v: Interval, steps: int) -> Interval:
        return v.map(lambda part: part.roll(-steps, dim))

    gap = roll(first, 1) * roll(second, 2) - roll(first, 2) * roll(second, 1)
    return around(point, gap.below, gap.above, x, y)


@rule(aten.linspace.Tensor_Tensor, aten.linspace.Tensor_Scalar, aten.linspace.Scalar_Tensor, takes=(0, 1))
def linspace(fn: Function, start: Any, end: Any, steps: int, **kwargs: Any) -> Interval:
    """Bound values evenly spaced, each a mean of the ends: the shares of either are never negative."""
    point = fn(point_of(start), point_of(end), steps, **kwargs)
    wide = gap_dtype_for(point, start, end)  # the ends have no dimension, so that the dtype of the shares decides
    falling, rising = (
        torch.linspace(*ends, steps, dtype=wide, device=point.device) for ends in ((1.0, 0.0), (0.0, 1.0))
    )
    gaps = zip(*(zero_or_gaps(v, start if isinstance(start, Interval) else end) for v in (start, end)), strict=True)
    below, above = (falling * first + rising * last for first, last in gaps)
    return around(point, below, above, start, end)


# An assertion is about the point; of weights for which it fails, the model computes nothing.
plain(aten._assert_async, shape_of=(0,))
# What these return does not depend on the values they are given.
plain(
    aten.sym_size, aten.sym_numel, aten.empty_like, aten.full_like, aten.zeros_like, aten.ones_like, aten.new_zeros,
    aten.new_ones, aten.new_full, aten.new_empty, shape_of=(0,),
)  # fmt: skip
plain(
    aten.arange,
    aten.empty,
    aten.empty_strided,
    aten.full,
    aten.zeros,
    aten.ones,
    aten.scalar_tensor,
    aten.linspace.default,
    aten.logspace.default,
    aten.eye,
    aten.tril_indices,
    aten.triu_indices,
)
