"""Cases of sums, products, quotients, powers and remainders."""

import torch

from properties.case import Case, plain, positive, real, within

aten = torch.ops.aten
MASK = torch.tensor([[True, False, True], [False, True, True]])
COUNTS = torch.tensor([[0, -2, 3], [1, 5, -1]])
BYTES = torch.tensor([[0, 2, 3], [1, 5, 255]], dtype=torch.uint8)

SUMS = [
    Case(aten.add.Tensor, real(2, 3), real(2, 3)),
    Case(aten.add.Tensor, real(2, 3), real(3)),
    Case(aten.add.Tensor, real(2, 1), real(1, 3)),
    Case(aten.add.Tensor, real(2, 3), real()),
    Case(aten.add.Tensor, plain(real(2, 3)), real(3)),
    Case(aten.add.Tensor, real(2, 3), COUNTS),
    Case(aten.add.Tensor, real(2, 3), MASK),
    Case(aten.add.Tensor, real(2, 3), 2),
    Case(aten.add.Tensor, real(2, 3), real(2, 3), alpha=-2.5),
    Case(aten.add.Tensor, real(2, 3), real(2, 3), alpha=-1),
    Case(aten.add.Tensor, real(2, 3), real(2, 3), alpha=0),
    Case(aten.add.Scalar, real(2, 3), 1.5),
    Case(aten.add.Scalar, real(2, 3), 1.5, -2),
    Case(aten.sub.Tensor, real(2, 3), real(2, 3)),
    Case(aten.sub.Tensor, real(3), real(2, 3), alpha=-0.5),
    Case(aten.sub.Tensor, plain(real(2, 3)), real(2, 3), alpha=3),
    Case(aten.sub.Scalar, real(2, 3), 2),
    Case(aten.rsub.Scalar, real(2, 3), 1),
    Case(aten.rsub.Scalar, real(2, 3), 1.0, 2),
    Case(aten.rsub.Tensor, real(2, 3), real(2, 3), alpha=-3),
    Case(aten.neg.default, real(2, 3)),
]

MULTIPLICATIONS = [
    Case(aten.mul.Tensor, real(2), real(2)),
    Case(aten.mul.Tensor, real(2, 3), real(3)),
    Case(aten.mul.Tensor, real(2, 1), real(3)),
    Case(aten.mul.Tensor, real(), real(2)),
    Case(aten.mul.Tensor, plain(real(2, 3)), real(3)),
    Case(aten.mul.Tensor, real(3), plain(real(2, 3))),
    Case(aten.mul.Tensor, real(2, 3), MASK),
    Case(aten.mul.Tensor, COUNTS, real(2, 3)),
    Case(aten.mul.Tensor, real(2, 3), BYTES),
    Case(aten.mul.Tensor, real(2, 3), -2.5),
    Case(aten.mul.Scalar, real(2, 3), 3),
    Case(aten.square.default, real(2, 3)),
    Case(aten.abs.default, real(2, 3)),
    Case(aten.prod.default, real(4)),
    Case(aten.prod.default, real(2, 2)),
    Case(aten.prod.default, real()),
    Case(aten.prod.default, real(0)),
    Case(aten.prod.default, real(3), dtype=torch.float64),
    Case(aten.prod.dim_int, real(3, 2), 0),
    Case(aten.prod.dim_int, real(2, 3), -1, True),
    Case(aten.prod.dim_int, real(2, 0), 1),
    Case(aten.cumprod.default, real(2, 3), 1),
    Case(aten.cumprod.default, real(3), -1),
    Case(aten.cumprod.default, real(), 0),
    Case(aten.cumprod.default, real(2, 0), 1),
    Case(aten.addcmul.default, real(2), real(2), real(2), value=-1.5),
    Case(aten.addcmul.default, plain(real(2, 3)), real(3), plain(real(2, 1))),
    Case(aten.addcmul.default, real(2, 3), plain(real(3)), plain(real(2, 3))),
    Case(aten.lerp.Scalar, real(2, 3), real(2, 3), 0.3),
    Case(aten.lerp.Scalar, real(2, 3), plain(real(2, 3)), 1.5),
    Case(aten.lerp.Tensor, real(2, 3), real(2, 3), plain(real(3))),
]

QUOTIENTS = [
    Case(aten.reciprocal.default, real(2, 3)),
    Case(aten.reciprocal.default, positive(2, 3)),
    Case(aten.div.Tensor, real(2), real(2)),
    Case(aten.div.Tensor, real(2), positive(2)),
    Case(aten.div.Tensor, positive(2, 3), positive(3)),
    Case(aten.div.Tensor, real(2, 3), plain(real(3))),
    Case(aten.div.Tensor, plain(real(2, 3)), real(3)),
    Case(aten.div.Tensor, real(2, 3), torch.tensor([2, -3, 4])),
    Case(aten.div.Tensor, real(2, 3), -4),
    Case(aten.div.Scalar, real(2, 3), -0.3),
    *[
        Case(op, x, y, rounding_mode=mode)
        for mode in (None, "floor", "trunc")
        for op, x, y in (
            (aten.div.Tensor_mode, real(2), real(2)),
            (aten.div.Tensor_mode, real(2, 3), positive(3)),
            (aten.div.Tensor_mode, real(2, 3), plain(positive(3))),
            (aten.div.Tensor_mode, plain(real(2, 3)), positive(3)),
            (aten.div.Scalar_mode, real(2, 3), -0.7),
        )
    ],
    Case(aten.fmod.Scalar, real(2, 3), 0.7),
    Case(aten.fmod.Scalar, real(2, 3), -2.0),
    Case(aten.fmod.Tensor, real(2, 3), plain(real(3))),
    Case(aten.remainder.Scalar, real(2, 3), 0.7),
    Case(aten.remainder.Scalar, real(2, 3), -2.0),
    Case(aten.remainder.Tensor, real(2, 3), plain(real(3))),
    Case(aten.remainder.Tensor, real(3), plain(real(2, 3))),
    Case(aten.atan2.default, real(2), real(2)),
    Case(aten.atan2.default, real(2, 3), positive(3)),
    Case(aten.atan2.default, plain(real(2, 3)), real(3)),
    Case(aten.atan2.default, real(2, 3), plain(real(2, 1))),
]

POWERS = [
    *[Case(aten.pow.Tensor_Scalar, real(2, 3), e) for e in (0, 1, 2, 3, 4, 7, -1, -2, -3, 2.0, 3.0, 0.5, -0.5, 2.5)],
    *[Case(aten.pow.Tensor_Scalar, positive(2, 3), e) for e in (0.0, 0.5, 1.7, -0.5, -1, -2, 3)],
    Case(aten.pow.Scalar, 2.5, real(2, 3)),
    Case(aten.pow.Scalar, 0.4, real(2, 3)),
    Case(aten.pow.Scalar, 2, real(2, 3)),
    Case(aten.pow.Tensor_Tensor, positive(2), real(2)),
    Case(aten.pow.Tensor_Tensor, positive(2, 3), plain(real(3))),
    Case(aten.pow.Tensor_Tensor, plain(positive(2, 1)), real(3)),
    Case(aten.pow.Tensor_Tensor, real(2, 3), COUNTS),
    Case(aten.pow.Tensor_Tensor, within(0.5, 3.0, 2, 3), COUNTS),
]

CASES = [*SUMS, *MULTIPLICATIONS, *QUOTIENTS, *POWERS]
