"""Cases of comparisons, of what is made of their answers, and of choices by them."""

import torch

from properties.case import Asked, Case, Slot, plain, real, within

aten = torch.ops.aten
EDGES = torch.tensor([-1.0, 0.0, 0.5, 2.0], dtype=torch.float64)
MASK = torch.tensor([[True, False, True], [False, True, True]])

COMPARISONS = [
    *[
        Case(getattr(aten, name).Tensor, x, y)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
        for x, y in ((real(2, 3), real(2, 3)), (real(2, 3), plain(real(3))), (plain(real(2, 3)), real(2, 1)))
    ],
    *[Case(getattr(aten, name).Scalar, real(2, 3), 0.5) for name in ("eq", "ne", "lt", "le", "gt", "ge")],
    *[Case(getattr(aten, name).Scalar, real(2, 3), 0) for name in ("eq", "ne")],
    *[
        Case(getattr(aten, name).default, real(2, 3))
        for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit")
    ],
    Case(aten.bucketize.Tensor, real(2, 3), EDGES),
    Case(aten.bucketize.Tensor, real(2, 3), EDGES, right=True, out_int32=True),
    Case(aten.searchsorted.Tensor, EDGES, real(2, 3)),
    Case(aten.searchsorted.Tensor, within(-1.0, 1.0, 1), real(2), right=True),
    Case(aten.searchsorted.Scalar, within(-1.0, 1.0, 1), 0.3),
    Case(aten.bucketize.Scalar, 0.3, within(-1.0, 1.0, 1)),
]

ABOVE, WHOLE = (aten.gt.Scalar, 0.2), (aten._to_copy.default,)


def counts(*shape: int) -> Slot:
    return within(0.0, 4.0, *shape)


class Counted(Asked):
    """A case whose arguments are cast to whole numbers."""

    def _make(self, args, call):
        return super()._make(args, lambda op, x, *rest: call(op, x, dtype=torch.int64))


LOGIC = [
    *[
        case
        for name in ("logical_and", "logical_or", "logical_xor")
        for op in (getattr(aten, name).default,)
        for case in (
            Case(op, real(2, 3), real(2, 3)),
            Case(op, real(2, 3), MASK),
            Asked({0: ABOVE, 1: ABOVE}, op, real(2, 3), real(3)),
        )
    ],
    *[
        Asked({0: ABOVE, 1: ABOVE}, getattr(aten, name).Tensor, real(2, 3), real(2, 1))
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    ],
    Asked({0: ABOVE}, aten.bitwise_and.Scalar, real(2, 3), True),
    Asked({0: ABOVE}, aten.bitwise_or.Scalar, real(2, 3), False),
    Asked({0: ABOVE}, aten.bitwise_xor.Scalar, real(2, 3), True),
    Asked({1: ABOVE}, aten.bitwise_and.Scalar_Tensor, True, real(2, 3)),
    Asked({1: ABOVE}, aten.bitwise_or.Scalar_Tensor, False, real(2, 3)),
    Asked({1: ABOVE}, aten.bitwise_xor.Scalar_Tensor, True, real(2, 3)),
    Case(aten.logical_not.default, real(2, 3)),
    Asked({0: ABOVE}, aten.logical_not.default, real(2, 3)),
    Asked({0: ABOVE}, aten.bitwise_not.default, real(2, 3)),
    *[
        case
        for name in ("any", "all")
        for op in (getattr(aten, name),)
        for case in (
            Case(op.default, real(2, 3)),
            Asked({0: ABOVE}, op.default, real(2, 3)),
            Asked({0: ABOVE}, op.dim, real(2, 3), 1, True),
            Asked({0: ABOVE}, op.dims, real(2, 3), [0, 1]),
        )
    ],
    Asked({0: ABOVE}, aten._is_any_true.default, real(2, 3)),
    Asked({0: ABOVE}, aten._is_all_true.default, real(2, 3)),
]

DISCRETE = [
    *[
        Asked({0: ABOVE}, op, real(2, 3), *args)
        for op, *args in (
            (aten.view.default, [3, -1]),
            (aten.permute.default, [1, 0]),
            (aten.index_select.default, 1, torch.tensor([1, 0, 1])),
            (aten.gather.default, 1, torch.tensor([[0, 1], [2, 2]])),
            (aten.embedding.default, torch.tensor([[1, 0], [1, 1]])),
            (aten.index.Tensor, [None, torch.tensor([1, 0, 1])]),
            (aten.sum.dim_IntList, [1]),
            (aten.cumsum.default, 1),
            (aten.amax.default, [1]),
            (aten.mul.Scalar, 2),
            (aten.add.Scalar, 2),
            (aten.mul.Tensor, plain(real(2, 3))),
            (aten.div.Tensor, 3.0),
            (aten.exp.default,),
            (aten.constant_pad_nd.default, [1, 1], 1),
        )
    ],
    Asked({0: ABOVE}, aten.mean.default, real(2, 3), dtype=torch.float64),
    Asked({0: ABOVE}, aten._to_copy.default, real(2, 3), dtype=torch.float64),
    Asked({0: ABOVE}, aten._to_copy.default, real(2, 3), dtype=torch.int64),
    Asked({0: ABOVE}, aten.unbind.int, real(2, 3), 1),
    Asked({0: ABOVE}, aten.cat.default, [real(2, 3), real(1, 3)]),
    Asked({0: ABOVE}, aten.mul.Tensor, real(2, 3), real(2, 3)),
    Asked({0: ABOVE, 1: ABOVE}, aten.mul.Tensor, real(2, 3), real(2, 3)),
    Asked({0: ABOVE, 1: ABOVE}, aten.maximum.default, real(2, 3), real(2, 3)),
    Counted({0: WHOLE}, aten.sub.Tensor, real(2, 3), torch.tensor([1, -2, 3])),
    Counted({0: WHOLE, 1: WHOLE}, aten.mul.Tensor, real(2, 3), real(2, 3)),
    Counted({0: WHOLE}, aten.neg.default, real(2, 3)),
    Counted({0: WHOLE}, aten.eq.Scalar, real(2, 3), 1),
    Counted({0: WHOLE}, aten.eq.Tensor, real(2, 1), torch.arange(3)),
    Counted({0: WHOLE}, aten._to_copy.default, real(2, 3), dtype=torch.bool),
    Counted({0: WHOLE}, aten.div.Tensor, real(2, 3), 4.0),
    *[
        Counted({0: WHOLE}, op, real(2, 3), divisor)
        for op in (aten.remainder.Scalar, aten.fmod.Scalar)
        for divisor in (2, 3, -2)
    ],
    Counted({0: WHOLE}, aten.remainder.Tensor, real(2, 3), torch.tensor([2, -3, 1])),
    Counted({0: WHOLE}, aten.nan_to_num.default, real(2, 3)),
    Counted({0: WHOLE}, aten.relu.default, real(2, 3)),
    Case(aten._to_copy.default, real(2, 3), dtype=torch.int64),
    Case(aten._to_copy.default, counts(2, 3), dtype=torch.uint8),
    Case(aten._to_copy.default, real(2, 3), dtype=torch.bool),
]

CHOICES = [
    *[
        Asked({0: ABOVE}, aten.where.self, real(2, 3), x, y)
        for x, y in (
            (real(2, 3), real(3)),
            (real(2, 3), plain(real(2, 3))),
            (plain(real(2, 3)), plain(real(2, 1))),
            (MASK, MASK[:, :1]),
        )
    ],
    Asked({0: ABOVE}, aten.where.ScalarSelf, real(2, 3), -1.0, real(3)),
    Asked({0: ABOVE}, aten.where.ScalarOther, real(2, 3), real(3), 2),
    Asked({0: ABOVE}, aten.where.Scalar, real(2, 3), 1.0, 0.0),
    Asked({0: ABOVE, 1: ABOVE}, aten.where.self, real(2, 3), real(2, 3), real(2, 1)),
    Asked({1: ABOVE}, aten.where.self, MASK, real(2, 3), MASK),
    Asked({1: ABOVE}, aten.masked_fill.Scalar, real(2, 3), real(2, 3), 2.5),
    Asked({1: ABOVE}, aten.masked_fill.Scalar, plain(real(2, 3)), real(2, 1), -1),
    Asked({1: ABOVE}, aten.masked_fill.Tensor, real(2, 3), real(2, 3), real()),
    Asked({0: ABOVE}, aten.masked_fill.Scalar, real(2, 3), MASK, True),
    Asked({1: ABOVE}, aten.index_put.default, real(2, 3), [real(2, 3)], plain(real())),
    Asked({1: ABOVE}, aten.index_put.default, real(2, 3), [real(2)], real()),
]

PLACES = [
    Counted({2: WHOLE}, aten.gather.default, real(2, 5), 1, counts(2, 3)),
    Counted({2: WHOLE}, aten.gather.default, plain(real(5, 2)), -2, counts(3, 2)),
    Counted({2: WHOLE}, aten.index_select.default, real(5, 2), 0, counts(3)),
    Counted({2: WHOLE}, aten.index_select.default, plain(real(2, 5)), 1, counts(3)),
    Counted({2: WHOLE}, aten.index_select.default, torch.arange(10).view(2, 5), 1, counts(3)),
    Counted({1: WHOLE}, aten.embedding.default, real(5, 2), counts(2, 2)),
    Counted({1: WHOLE}, aten.embedding.default, plain(real(5, 2)), counts()),
    Counted({1: WHOLE}, aten.index.Tensor, real(5, 2), [counts(3)]),
    Counted({1: WHOLE}, aten.index.Tensor, real(2, 16), [None, within(-5.0, 4.0, 2, 2)]),
    Counted({1: WHOLE}, aten._unsafe_index.Tensor, plain(real(5)), [counts()]),
]

POSITIONS = [
    case
    for op in (aten.argmax.default, aten.argmin.default)
    for case in (Case(op, real(2, 5)), Case(op, real(2, 5), 1), Case(op, real(5, 2), -2, True), Case(op, real(), 0))
]

CASES = [*COMPARISONS, *LOGIC, *DISCRETE, *CHOICES, *PLACES, *POSITIONS]
