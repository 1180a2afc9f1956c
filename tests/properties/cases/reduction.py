"""Cases of sums, products and extrema by an index, by a segment, or where values are written."""

import torch

from properties.case import Case, Slot, plain, positive, real

aten = torch.ops.aten
ROWS = torch.tensor([1, 0, 1])
WHERE = torch.tensor([[0, 1, 1], [1, 0, 0]])
LENGTHS, OFFSETS = torch.tensor([2, 1, 2]), torch.tensor([0, 2, 3, 5])


def sources(*shape: int) -> tuple[tuple[Slot, Slot], ...]:
    """Return intervals and tensors, to be written into one another."""
    return (
        (real(2, 3), real(*shape)), (plain(real(2, 3)), real(*shape)), (real(2, 3), plain(real(*shape))),
        (positive(2, 3), positive(*shape)),
    )  # fmt: skip


SCATTERED = [
    *[
        Case(aten.scatter_reduce.two, x, 1, WHERE, source, mode, **how)
        for mode in ("sum", "prod", "mean", "amax", "amin")
        for x, source in sources(2, 3)
        for how in ({}, {"include_self": False})
    ],
    *[
        Case(aten.index_reduce.default, x, 1, ROWS, source, mode, **how)
        for mode in ("prod", "mean", "amax", "amin")
        for x, source in sources(2, 3)
        for how in ({}, {"include_self": False})
    ],
    *[
        Case(aten.scatter.reduce, x, 1, WHERE[:, :2], source, reduce=mode)
        for mode in ("add", "multiply")
        for x, source in sources(2, 2)
    ],
    *[Case(aten.scatter.value_reduce, real(2, 3), 1, WHERE, -1.5, reduce=mode) for mode in ("add", "multiply")],
    *[
        Case(aten.put.default, x, torch.tensor([5, 0, 5] if adds else [5, 0, 1]), source, adds)
        for adds in (False, True)
        for x, source in sources(3)[:3]
    ],
]

SEGMENTS = [
    *[
        Case(aten.segment_reduce.default, real(5, 2), mode, lengths=LENGTHS, **how)
        for mode in ("sum", "mean", "max", "min", "prod")
        for how in ({}, {"initial": 1.5})
    ],
    *[Case(aten.segment_reduce.default, real(5), mode, offsets=OFFSETS) for mode in ("sum", "max", "prod")],
    Case(aten.segment_reduce.default, real(5), "prod", offsets=OFFSETS, initial=-2.0),
]

MOMENTS = [
    *[
        Case(op, real(*shape), *args, **how)
        for op in (aten.var_mean.correction, aten.std_mean.correction, aten.std.correction)
        for shape, args, how in (
            ((2, 4), ([1],), {}),
            ((2, 4), ([-1],), {"correction": 0, "keepdim": True}),
            ((2, 2, 2), ([0, 2],), {"correction": 0.5}),
            ((4,), (), {}),
        )
    ],
    *[Case(aten.dist.default, real(4), y, p) for y in (real(4), plain(real(4))) for p in (1, 2.0, float("inf"))],
    Case(aten.nanmedian.default, real(2, 3)),
    Case(aten.nanmedian.dim, real(2, 3), 1),
]

MEANS = [
    *[
        Case(aten.lerp.Tensor, x, y, weight)
        for x, y, weight in (
            (real(2), real(2), real(1)), (plain(real(2, 3)), plain(real(3)), real(2, 3)),
            (real(3), plain(real(3)), real(3)),
        )
    ],
    Case(aten.ldexp.Tensor, real(2, 3), torch.tensor([-1, 0, 3])),
    Case(aten.ldexp.Tensor, plain(real(2, 3)), real(3)),
]  # fmt: skip

COPIES = [
    Case(op, real(2, 3), *args)
    for op, *args in (
        (aten.alias_copy.default,), (aten.detach_copy.default,), (aten.diagonal_copy.default,),
        (aten.narrow_copy.default, 1, 1, 2), (aten.permute_copy.default, [1, 0]), (aten.select_copy.int, 1, 0),
        (aten.slice_copy.Tensor, 1, 0, 2), (aten.t_copy.default,), (aten.transpose_copy.int, 0, 1),
        (aten.unfold_copy.default, 1, 2, 1), (aten.unsqueeze_copy.default, 0), (aten._reshape_copy.default, [6]),
        (aten.squeeze_copy.default,), (aten.squeeze_copy.dim, 0), (aten.squeeze_copy.dims, [0]),
        (aten.unbind_copy.int, 1),
    )
]  # fmt: skip

CASES = [*SCATTERED, *SEGMENTS, *MOMENTS, *MEANS, *COPIES]
