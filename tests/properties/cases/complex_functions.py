"""Cases of elementary functions, quotients, powers and layers of complex numbers."""

import torch

from properties.case import Case, Slot, complexes, plain, positive, real
from properties.cases.products import layer_cases

aten = torch.ops.aten
PHASES = torch.tensor([1 + 2j, -0.5j, 2.0], dtype=torch.complex128)
SCALAR_POWERS = (0, 1, 2, 3, 4, 7, -1, -2, -3, 0.5, -0.5, 2.5, 0.3, -1.5, 1j, 0.5 - 1j, 2 + 0j)


def right(*shape: int) -> Slot:
    """Numbers right of zero and above it, far from where angles jump."""
    return Slot(shape, low=0.2, high=2.0, is_complex=True)


FUNCTIONS = [
    *[
        Case(op, slot(2))
        for op in (
            aten.exp.default, aten.exp2.default, aten.expm1.default, aten.log.default, aten.log2.default,
            aten.log10.default, aten.log1p.default, aten.angle.default, aten.sgn.default, aten.sqrt.default,
            aten.sinh.default, aten.cosh.default, aten.sin.default, aten.cos.default, aten.tanh.default,
            aten.sigmoid.default, aten.tan.default, aten.reciprocal.default, aten.rsqrt.default, aten.square.default,
            aten.abs.default, aten.asin.default, aten.acos.default, aten.atan.default, aten.asinh.default,
            aten.acosh.default, aten.atanh.default,
        )
        for slot in (complexes, right)
    ],
    Case(aten.angle.default, real(2, 3)),
    Case(aten.polar.default, real(2), real(2)),
    Case(aten.polar.default, plain(real(2)), real(2)),
    Case(aten.polar.default, positive(2), plain(real(2))),
    Case(aten._neg_view.default, real(2, 3)),
    Case(aten._conj_physical.default, real(2)),
    Case(aten.var.correction, complexes(2, 3), [1]),
    Case(aten.var.correction, complexes(4), correction=0),
    Case(aten.var.dim, complexes(2, 3), [0], False, True),
    Case(aten.std.correction, complexes(2, 3), [1], keepdim=True),
    Case(aten.var_mean.correction, complexes(2, 3), [1], correction=0),
    Case(aten.std_mean.correction, complexes(2, 3), [0]),
]  # fmt: skip

QUOTIENTS = [
    *[
        Case(aten.div.Tensor, x, y)
        for x, y in (
            (complexes(2), complexes(2)),
            (complexes(2), right(1)),
            (right(2), right(2)),
            (plain(complexes(2)), right(2)),
            (complexes(2), real(2)),
            (real(2), right(2)),
            (plain(real(2)), right(2)),
            (plain(complexes(2)), positive(2)),
            (complexes(3), 0.5 - 2j),
            (real(3), 0.5 - 2j),
        )
    ],
    Case(aten.div.Tensor_mode, right(2), right(2), rounding_mode=None),
    Case(aten.div.Scalar, complexes(2), 1j),
]

POWERS = [
    *[Case(aten.pow.Tensor_Scalar, slot(2), p) for p in SCALAR_POWERS for slot in (complexes, right)],
    Case(aten.pow.Tensor_Scalar, positive(2), 1j),
    Case(aten.pow.Tensor_Scalar, real(2), 0.5 + 1j),
    Case(aten.pow.Scalar, 2.5, complexes(2)),
    Case(aten.pow.Scalar, 1 - 1j, complexes(2)),
    Case(aten.pow.Scalar, 1j, real(2)),
    Case(aten.pow.Tensor_Tensor, right(2), right(2)),
    Case(aten.pow.Tensor_Tensor, right(3), PHASES),
    Case(aten.pow.Tensor_Tensor, plain(right(2)), complexes(2)),
    Case(aten.pow.Tensor_Tensor, positive(3), PHASES),
    Case(aten.pow.Tensor_Tensor, right(2), real(2)),
]

SUMS = [
    Case(aten.add.Tensor, complexes(2), complexes(2), alpha=1j),
    Case(aten.add.Tensor, real(2), complexes(2), alpha=0.5 - 1j),
    Case(aten.sub.Tensor, complexes(2), complexes(2), alpha=1j),
    Case(aten.add.Scalar, complexes(2), 1j),
    Case(aten.rsub.Scalar, complexes(2), 1j),
    Case(aten.cumsum.default, complexes(3), 0),
    Case(aten.cumprod.default, complexes(3), 0),
    Case(aten.sum.default, real(2), dtype=torch.complex128),
    Case(aten.mean.dim, complexes(2, 2), [1], True),
    Case(aten.addcmul.default, complexes(2), complexes(2), complexes(2), value=1j),
    Case(aten.lerp.Scalar, complexes(2), complexes(2), 0.3),
    Case(aten.lerp.Tensor, complexes(3), complexes(3), PHASES),
    Case(aten.linalg_vector_norm.default, complexes(2, 2)),
    Case(aten.linalg_vector_norm.default, complexes(2, 2), 1, [0], dtype=torch.complex128),
]

WHERE = torch.tensor([[0, 1, 1], [1, 0, 0]])
WRITES = [
    Case(aten.copy.default, complexes(2), real(2)),
    Case(aten.copy.default, plain(complexes(2)), real(2)),
    Case(aten.masked_fill.Tensor, complexes(2), torch.tensor([True, False]), plain(complexes())),
    Case(aten.masked_fill.Tensor, complexes(2), torch.tensor([True, False]), complexes()),
    Case(aten.slice_scatter.default, complexes(2, 3), real(2, 1), 1, 0, 1),
    Case(aten.select_scatter.default, plain(complexes(2, 3)), complexes(2), 1, 0),
    Case(aten.index_add.default, complexes(2, 3), 1, torch.tensor([1, 0, 1]), complexes(2, 3), alpha=2.5),
    Case(aten.scatter_add.default, complexes(2, 3), 1, WHERE, plain(complexes(2, 3))),
    Case(aten.scatter_reduce.two, complexes(2, 3), 1, WHERE, complexes(2, 3), "mean"),
    Case(aten.scatter_reduce.two, complexes(2, 3), 1, WHERE, complexes(2, 3), "sum", include_self=False),
]

LAYERS = [
    *layer_cases(aten.linear.default, complexes(2, 3), complexes(2, 3), complexes(2)),
    *layer_cases(aten.conv1d.default, complexes(1, 2, 4), complexes(4, 1, 2), complexes(4), [2], [1], [1], 2),
    *layer_cases(aten.conv1d.padding, complexes(1, 2, 3), complexes(2, 2, 2), complexes(2), [1], "same"),
    *layer_cases(aten.conv2d.default, complexes(1, 2, 3, 3), complexes(2, 2, 2, 2), complexes(2)),
    *layer_cases(aten.conv3d.default, complexes(1, 1, 2, 2, 2), complexes(2, 1, 2, 1, 2), complexes(2)),
    *layer_cases(aten.conv_transpose1d.default, complexes(1, 2, 3), complexes(2, 2, 2), complexes(2), [2], [0], [1]),
    *layer_cases(
        aten.conv_transpose2d.input, complexes(1, 2, 2, 2), complexes(2, 1, 2, 2), complexes(2), [1], [0], [0], 2
    ),
    *layer_cases(aten.conv_transpose3d.input, complexes(1, 1, 2, 1, 2), complexes(1, 2, 2, 2, 1), complexes(2)),
    Case(aten.bmm.default, complexes(2, 1, 2), complexes(2, 2, 1)),
    Case(aten.mv.default, plain(complexes(2, 2)), complexes(2)),
    Case(aten.addmm.default, complexes(2), complexes(2, 2), complexes(2, 2), beta=1j, alpha=0.5 - 1j),
    Case(aten.baddbmm.default, complexes(1, 2, 2), plain(complexes(1, 2, 2)), complexes(1, 2, 2)),
    Case(aten.addmv.default, plain(complexes(2)), complexes(2, 2), complexes(2), alpha=-2),
]  # fmt: skip

CASES = [*FUNCTIONS, *QUOTIENTS, *POWERS, *SUMS, *WRITES, *LAYERS]
