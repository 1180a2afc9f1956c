"""Cases of operations that move values about, write them into others, or interpolate between them."""

import torch

from properties.case import Case, plain, real

aten = torch.ops.aten
MASK = torch.tensor([[True, False, True], [False, True, True]])
ROWS = torch.tensor([1, 0, 1])
WHERE = torch.tensor([[0, 1, 1], [1, 0, 0]])
TOKENS, OFFSETS = torch.tensor([0, 2, 1, 2, 0]), torch.tensor([0, 2, 2])
GRID = 2.4 * torch.rand(1, 2, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 1.2
GRID3 = 2.4 * torch.rand(1, 2, 2, 1, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 1.2

VIEWS = [
    *[
        Case(op, real(2, 3), *args)
        for op, *args in (
            (aten.view.default, [3, -1]),
            (aten._unsafe_view.default, [6]),
            (aten.reshape.default, [3, 2]),
            (aten._reshape_alias.default, [3, 2], [2, 1]),
            (aten.view_copy.default, [3, 2]),
            (aten.flatten.using_ints,),
            (aten.unflatten.int, 1, [3, 1]),
            (aten.permute.default, [1, 0]),
            (aten.transpose.int, 0, -1),
            (aten.t.default,),
            (aten.movedim.int, 0, 1),
            (aten.swapaxes.default, 0, 1),
            (aten.unsqueeze.default, -1),
            (aten.select.int, 1, -1),
            (aten.slice.Tensor, 1, 0, 3, 2),
            (aten.narrow.default, 1, 1, 2),
            (aten.diagonal.default,),
            (aten.unfold.default, 1, 2, 1),
            (aten.alias.default,),
            (aten.clone.default,),
            (aten.contiguous.default,),
            (aten.detach.default,),
            (aten.lift_fresh_copy.default,),
            (aten.resolve_conj.default,),
            (aten.resolve_neg.default,),
            (aten.repeat.default, [2, 1, 2]),
            (aten.repeat_interleave.self_int, 2, 1),
            (aten.repeat_interleave.self_Tensor, torch.tensor([0, 2]), 0),
            (aten.tile.default, [2, 2]),
            (aten.flip.default, [0, 1]),
            (aten.roll.default, [1], [1]),
            (aten.rot90.default,),
            (aten.index.Tensor, [None, ROWS]),
            (aten.index.Tensor, [MASK]),
            (aten._unsafe_index.Tensor, [ROWS, ROWS]),
            (aten.index_select.default, 1, ROWS),
            (aten.gather.default, 1, WHERE),
            (aten.take.default, torch.tensor([5, 0])),
            (aten.take_along_dim.default, WHERE, 1),
            (aten.tril.default, -1),
            (aten.triu.default,),
            (aten.diag_embed.default,),
            (aten.masked_select.default, MASK),
            (aten.embedding.default, torch.tensor([[1, 0], [1, 1]])),
            (aten.cumsum.default, 1),
            (aten.cumsum.default, -2),
            (aten.trace.default,),
            (aten.sum.default,),
            (aten.sum.dim_IntList, [1], True),
            (aten.sum.dim_IntList, [-1, 0]),
            (aten.mean.default,),
            (aten.mean.dim, [0], True),
        )
    ],
    Case(aten.squeeze.default, real(2, 1, 3)),
    Case(aten.squeeze.dim, real(2, 1), -1),
    Case(aten.squeeze.dims, real(1, 2, 1), [0, 2]),
    Case(aten.expand.default, real(2, 1), [3, 2, 4]),
    Case(aten.expand_copy.default, real(2, 1), [-1, 4]),
    Case(aten.sum.default, real(0)),
    Case(aten.sum.default, real(2, 3), dtype=torch.float64),
    Case(aten.mean.default, real(2, 3), dtype=torch.float32),
    Case(aten.diag.default, real(3)),
    Case(aten.pixel_shuffle.default, real(1, 4, 1, 2), 2),
    Case(aten.pixel_unshuffle.default, real(1, 1, 2, 4), 2),
    Case(aten.channel_shuffle.default, real(1, 4, 2), 2),
    Case(aten.im2col.default, real(1, 1, 3, 3), [2, 2], [1, 1], [1, 0], [1, 1]),
    Case(aten.col2im.default, real(1, 4, 4), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1]),
    *[
        Case(op, real(2, 3, 2), *args)
        for op, *args in (
            (aten.split.Tensor, 2, 1),
            (aten.split_with_sizes.default, [1, 2], 1),
            (aten.chunk.default, 2, 1),
            (aten.tensor_split.sections, 2, 1),
            (aten.unbind.int, -1),
            (aten.split_copy.Tensor, 2, 1),
            (aten.split_with_sizes_copy.default, [1, 2], 1),
        )
    ],
]

JOINS = [
    Case(aten.cat.default, [real(2, 3), plain(real(1, 3)), real(1, 3)]),
    Case(aten.cat.default, [plain(real(2, 3)), real(2, 1)], -1),
    Case(aten.cat.default, [real(0), real(2)]),
    Case(aten.stack.default, [real(2), plain(real(2)), real(2)], 1),
    Case(aten.where.self, MASK, real(2, 3), real(3)),
    Case(aten.where.self, MASK, plain(real(2, 3)), real(2, 1)),
    Case(aten.where.self, MASK[:, :1], real(2, 3), torch.tensor(-torch.inf, dtype=torch.float64)),
    Case(aten.where.ScalarSelf, MASK, -1.0, real(3)),
    Case(aten.where.ScalarOther, MASK, real(2, 3), 2),
    Case(aten.masked_fill.Scalar, real(2, 3), MASK, -torch.inf),
    Case(aten.masked_fill.Scalar, real(2, 1), MASK, 2),
    Case(aten.masked_fill.Tensor, real(2, 3), MASK, real()),
    Case(aten.masked_fill.Tensor, plain(real(2, 3)), MASK, real()),
    Case(aten.fill.Tensor, real(2, 3), real()),
    Case(aten.fill.Tensor, plain(real(2, 3)), real()),
    Case(aten.fill.Tensor, torch.zeros(2, dtype=torch.float32), real()),
    Case(aten.fill.Scalar, real(2, 3), 2.0),
]

PADDING = [
    *[Case(getattr(aten, f"{kind}_pad1d").default, real(1, 2, 3), [2, 1]) for kind in ("reflection", "replication")],
    *[Case(getattr(aten, f"{kind}_pad2d").default, real(1, 2, 3), [1, 1, 0, 1]) for kind in ("reflection",)],
    Case(aten.replication_pad2d.default, real(1, 1, 2, 3), [1, 3, 0, 1]),
    Case(aten.reflection_pad3d.default, real(1, 1, 2, 2, 3), [1, 1, 0, 1, 1, 1]),
    Case(aten.replication_pad3d.default, real(1, 1, 2, 2, 1), [1, 1, 0, 1, 1, 1]),
    Case(aten.constant_pad_nd.default, real(2, 3), [1, -1, 0, 2]),
    Case(aten.constant_pad_nd.default, real(2, 3), [1, 1], -2.5),
    Case(aten.pad.default, real(2, 3), [1, 2]),
    Case(aten.pad.default, real(2, 3), [1, 2], "constant", -1.5),
    *[Case(aten.pad.default, real(1, 2, 3), [2, 1], mode) for mode in ("reflect", "replicate", "circular")],
]

WRITES = [
    *[
        Case(op, *slots, *args)
        for op, shape, *args in (
            (aten.slice_scatter.default, (2, 1), 1, 0, 1),
            (aten.select_scatter.default, (2,), 1, 0),
            (aten.diagonal_scatter.default, (2,), 0),
            (aten.copy.default, (3,)),
        )
        for slots in (
            (real(2, 3), real(*shape)), (plain(real(2, 3)), real(*shape)), (real(2, 3), plain(real(*shape))),
        )
    ],
    *[
        Case(op, x, *middle, source, *rest)
        for op, middle, shape, *rest in (
            (aten.masked_scatter.default, (MASK,), (2, 3)),
            (aten.index_put.default, ([ROWS],), (3, 3), True),
            (aten.index_put.default, ([None, torch.tensor([2, 0])],), (2, 2)),
            (aten._unsafe_index_put.default, ([ROWS[:2]],), (3,)),
            (aten.scatter.src, (1, WHERE[:, :2]), (2, 2)),
            (aten.scatter_add.default, (1, WHERE), (2, 3)),
            (aten.index_add.default, (1, ROWS), (2, 3)),
            (aten.index_copy.default, (-1, ROWS[:2]), (2, 2)),
        )
        for x, source in (
            (real(2, 3), real(*shape)), (plain(real(2, 3)), real(*shape)), (real(2, 3), plain(real(*shape))),
        )
    ],
    Case(aten.index_add.default, real(2, 3), 1, ROWS, real(2, 3), alpha=2.5),
    Case(aten.index_add.default, real(2, 3), 1, ROWS, real(2, 3), alpha=-2.5),
    Case(aten.index_add.default, plain(real(2, 3)), 1, ROWS, real(2, 3), alpha=-1),
    Case(aten.scatter.value, real(2, 3), 1, WHERE, -2.0),
    Case(aten.index_fill.int_Scalar, real(2, 3), 1, ROWS, -2.0),
]  # fmt: skip

INTERPOLATION = [
    *[
        Case(op, real(1, 2, *[3] * spatial), *args)
        for spatial, op, *args in (
            (1, aten.upsample_nearest1d.default, [5]),
            (1, aten.upsample_nearest1d.vec, None, [1.7]),
            (1, aten._upsample_nearest_exact1d.default, [5]),
            (1, aten.upsample_linear1d.default, [5], False),
            (1, aten.upsample_linear1d.vec, None, True, [1.7]),
            (2, aten.upsample_nearest2d.default, [4, 2]),
            (2, aten.upsample_nearest2d.vec, None, [2.0, 1.5]),
            (2, aten._upsample_nearest_exact2d.default, [4, 2]),
            (2, aten.upsample_bilinear2d.default, [5, 2], True),
            (2, aten.upsample_bilinear2d.default, [5, 4], False, 1.9, 1.4),
            (2, aten.upsample_bilinear2d.vec, None, False, [1.9, 1.4]),
            (2, aten._upsample_bilinear2d_aa.default, [2, 5], False),
            (2, aten.upsample_bicubic2d.default, [5, 4], False),
            (2, aten.upsample_bicubic2d.default, [5, 2], True),
            (2, aten.upsample_bicubic2d.default, [5, 4], False, 1.9, 1.4),
            (2, aten.upsample_bicubic2d.vec, None, False, [1.9, 1.4]),
            (2, aten.upsample_bicubic2d.vec, [5, 4], True, None),
            (2, aten._upsample_bicubic2d_aa.default, [2, 5], False),
            (2, aten._upsample_bicubic2d_aa.default, [2, 5], True, 0.7, 1.8),
            (2, aten._upsample_bicubic2d_aa.vec, None, False, [0.7, 1.8]),
            (3, aten.upsample_nearest3d.default, [4, 2, 1]),
            (3, aten._upsample_nearest_exact3d.default, [4, 2, 1]),
            (3, aten.upsample_trilinear3d.default, [4, 2, 1], False),
            (3, aten.upsample_trilinear3d.vec, None, True, [1.5, 1.5, 1.5]),
        )
    ],
    *[
        Case(op, real(1, 2, 3, 4), GRID, interpolation, padding, align)
        for op in (aten.grid_sampler_2d.default, aten.grid_sampler.default)
        for interpolation, padding, align in ((0, 0, False), (0, 1, True), (0, 2, False), (1, 0, True))
    ],
    Case(aten.grid_sampler_3d.default, real(1, 1, 2, 2, 2), GRID3, 0, 0, False),
    Case(aten.grid_sampler_3d.default, real(1, 1, 2, 2, 2), GRID3, 1, 2, True),
]

BAGS = [
    *[
        Case(op, real(3, 2), TOKENS, OFFSETS, False, mode, False, *rest)
        for op in (aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
        for mode, *rest in (
            (0,), (1,), (2,), (0, torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0], dtype=torch.float64)), (1, None, False, 2),
        )
    ],
]  # fmt: skip

CROSS = [
    Case(aten.cross.default, real(2, 3), real(2, 3)),
    Case(aten.cross.default, real(3, 3), real(3, 3)),
    Case(aten.cross.default, real(3, 2), real(3, 2)),
    Case(aten.cross.default, real(3, 2), plain(real(3, 2)), 0),
    Case(aten.linalg_cross.default, real(2, 3), plain(real(1, 3))),
    Case(aten.linalg_cross.default, plain(real(3, 2)), real(3, 2), dim=0),
]

SPACED = [
    Case(aten.linspace.Tensor_Tensor, real(), real(), 5),
    Case(aten.linspace.Tensor_Tensor, plain(real()), real(), 1),
    Case(aten.linspace.Tensor_Scalar, real(), 2.0, 4, dtype=torch.float64),
    Case(aten.linspace.Scalar_Tensor, -1.0, real(), 4, dtype=torch.float64),
]

# Overloads that no model of ours meets, each for itself since it may give an argument another meaning.
OTHERS = [
    Case(aten.movedim.intlist, real(2, 3), [0], [1]),
    Case(aten.narrow.Tensor, real(2, 3), 1, torch.tensor(1), 2),
    Case(aten.split.sizes, real(2, 3), [1, 2], 1),
    Case(aten.tensor_split.indices, real(2, 3), [1], 1),
    Case(aten.tensor_split.tensor_indices_or_sections, real(2, 3), torch.tensor([1]), 1),
    Case(aten.to.dtype_layout, real(2, 3), dtype=torch.float64),
    Case(aten._upsample_nearest_exact1d.vec, real(1, 1, 2), [3], None),
    Case(aten._upsample_nearest_exact2d.vec, real(1, 1, 2, 2), None, [2.0, 2.0]),
    Case(aten._upsample_nearest_exact3d.vec, real(1, 1, 2, 2, 2), [2, 3, 2], None),
    Case(aten.upsample_nearest3d.vec, real(1, 1, 2, 2, 2), [2, 3, 2], None),
    Case(aten._upsample_bilinear2d_aa.vec, real(1, 1, 2, 2), [3, 3], False, None),
    Case(aten.conv3d.padding, real(1, 1, 2, 2, 2), real(1, 1, 2, 1, 1), None, [1, 1, 1], "same"),
]

CASES = [*SPACED, *OTHERS, *VIEWS, *JOINS, *PADDING, *WRITES, *INTERPOLATION, *BAGS, *CROSS]
