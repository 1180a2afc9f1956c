"""Cases of linear layers, convolutions and matrix products, with intervals for any of their factors."""

import torch

from properties.case import Case, Slot, plain, real

aten = torch.ops.aten


def layer_cases(op, x: Slot, weight: Slot, bias: Slot | None, *rest) -> list[Case]:
    """A layer with intervals everywhere, and with an interval in one place alone."""
    cases = [
        Case(op, x, weight, bias, *rest),
        Case(op, x, plain(weight), bias and plain(bias), *rest),
        Case(op, plain(x), weight, bias and plain(bias), *rest),
        Case(op, x, weight, None, *rest),
    ]
    return cases + ([Case(op, plain(x), plain(weight), bias, *rest)] if bias else [])


LAYERS = [
    *layer_cases(aten.linear.default, real(2, 3), real(2, 3), real(2)),
    Case(aten.linear.default, real(3), real(2, 3), real(2)),
    Case(aten.linear.default, real(2, 2, 3), real(1, 3)),
    Case(aten.linear.default, real(2, 3), real(3)),
    Case(aten.linear.default, real(2, 0), real(2, 0), real(2)),
    *layer_cases(aten.conv1d.default, real(2, 2, 5), real(4, 1, 3), real(4), [2], [1], [1], 2),
    *layer_cases(aten.conv1d.padding, real(1, 2, 5), real(3, 2, 3), real(3), [1], "same", [2]),
    Case(aten.conv1d.default, real(2, 5), real(3, 2, 2), real(3)),
    *layer_cases(aten.conv2d.default, real(1, 2, 4, 4), real(2, 2, 3, 2), real(2), [1, 2], [1, 0], [1, 2]),
    *layer_cases(aten.conv2d.default, real(1, 4, 3, 3), real(6, 2, 2, 2), real(6), [1, 1], [0, 0], [1, 1], 2),
    Case(aten.conv2d.default, real(2, 3, 3), real(2, 2, 2, 2), real(2)),
    Case(aten.conv2d.padding, real(1, 1, 3, 3), real(1, 1, 2, 2), real(1), [1, 1], "valid"),
    *layer_cases(aten.conv3d.default, real(1, 2, 2, 3, 3), real(2, 1, 2, 2, 2), real(2), [1] * 3, [1] * 3, [1] * 3, 2),
    *layer_cases(aten.conv_transpose1d.default, real(1, 4, 3), real(4, 2, 3), real(4), [2], [1], [1], 2, [1]),
    *layer_cases(aten.conv_transpose2d.input, real(1, 2, 3, 2), real(2, 3, 2, 2), real(3), [2, 1], [1, 0], [1, 0]),
    *layer_cases(aten.conv_transpose2d.input, real(1, 4, 2, 2), real(4, 3, 2, 2), real(6), [1], [0], [0], 2, [2]),
    *layer_cases(aten.conv_transpose3d.input, real(1, 2, 2, 2, 2), real(2, 1, 2, 2, 2), real(2), [1], [0], [0], 2, [1]),
    Case(aten.conv_transpose1d.default, real(2, 4), real(2, 3, 2), real(3)),
    *layer_cases(aten.convolution.default, real(1, 2, 4), real(3, 2, 2), real(3), [1], [1], [2], False, [0], 1),
    *layer_cases(aten.convolution.default, real(1, 4, 4), real(4, 1, 2), real(2), [2], [1], [1], True, [1], 2),
]

MATRICES = [
    *[
        Case(op, *(slot if index in moving else plain(slot) for index, slot in enumerate(shapes)))
        for op, *shapes in (
            (aten.mm.default, real(2, 3), real(3, 2)),
            (aten.bmm.default, real(2, 2, 3), real(2, 3, 1)),
            (aten.mv.default, real(2, 3), real(3)),
            (aten.dot.default, real(3), real(3)),
            (aten.vdot.default, real(3), real(3)),
            (aten.matmul.default, real(2, 3), real(3, 2)),
            (aten.matmul.default, real(3), real(3)),
            (aten.matmul.default, real(3), real(3, 2)),
            (aten.matmul.default, real(2, 3), real(3)),
            (aten.matmul.default, real(2, 1, 2, 3), real(3, 3, 2)),
            (aten.matmul.default, real(3), real(2, 3, 2)),
            (aten.matmul.default, real(2, 2, 3), real(3)),
        )
        for moving in ((0, 1), (0,), (1,))
    ],
    Case(aten.mm.default, real(2, 0), real(0, 2)),
    *[
        Case(op, *(slot if index in moving else plain(slot) for index, slot in enumerate(shapes)), **options)
        for op, *shapes in (
            (aten.addmm.default, real(2), real(2, 3), real(3, 2)),
            (aten.addmm.default, real(2, 2), real(2, 3), real(3, 2)),
            (aten.baddbmm.default, real(1, 2, 2), real(2, 2, 2), real(2, 2, 2)),
            (aten.addmv.default, real(2), real(2, 3), real(3)),
            (aten.addbmm.default, real(2, 2), real(2, 2, 3), real(2, 3, 2)),
        )
        for moving, options in (
            ((0, 1, 2), {}),
            ((0,), {}),
            ((1,), {"beta": -0.5, "alpha": -2}),
            ((0, 2), {"beta": 2, "alpha": -1}),
            ((0, 1), {"beta": 0}),
        )
    ],
]

BILINEAR = [
    Case(aten.bilinear.default, *(x if i in moving else plain(x) for i, x in enumerate(slots)), *bias)
    for slots in ((real(2, 2), real(2, 3), real(2, 2, 3)), (real(2, 1, 2), real(2, 1, 2), real(1, 2, 2)))
    for moving, bias in (
        ((0, 1, 2), (real(slots[2].shape[0]),)), ((0,), ()), ((1,), (torch.ones(slots[2].shape[0]).double(),)),
        ((2,), ()), ((0, 1), ()), ((1, 2), ()), ((), (real(slots[2].shape[0]),)),
    )
]  # fmt: skip

CASES = [*LAYERS, *BILINEAR, *MATRICES]
