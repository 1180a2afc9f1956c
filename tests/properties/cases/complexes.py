"""Cases of complex intervals and Fourier transforms."""

import torch

from properties.case import Case, complexes, plain, positive, real

aten = torch.ops.aten
PHASES = torch.tensor([1 + 2j, -0.5j, 2.0], dtype=torch.complex128)

BOXES = [
    Case(aten.view_as_real.default, complexes(2)),
    Case(aten.view_as_complex.default, real(2, 2)),
    Case(aten.complex.default, real(2), real(2)),
    Case(aten.complex.default, plain(real(2)), real(2)),
    Case(aten.complex.default, real(2), plain(real(2))),
    Case(aten._conj.default, complexes(2)),
    Case(aten._conj_physical.default, complexes(2)),
    Case(aten.conj_physical.default, complexes(2)),
    Case(aten.real.default, complexes(2)),
    Case(aten.real.default, real(2)),
    Case(aten.imag.default, complexes(2)),
    Case(aten.abs.default, complexes(3)),
    Case(aten.neg.default, complexes(2)),
    Case(aten.add.Tensor, complexes(2), real(2)),
    Case(aten.add.Tensor, real(3), PHASES),
    Case(aten.add.Tensor, real(2), complexes(2)),
    Case(aten.sub.Tensor, plain(real(2)), complexes(2)),
    Case(aten.mul.Tensor, complexes(1), complexes(1)),
    Case(aten.mul.Tensor, complexes(2), real(2)),
    Case(aten.mul.Tensor, real(3), PHASES),
    Case(aten.mul.Tensor, complexes(3), PHASES),
    Case(aten.mul.Tensor, complexes(2), 0.5 - 2j),
    Case(aten.mul.Scalar, complexes(2), -2.0),
    Case(aten.square.default, complexes(2)),
    Case(aten.div.Tensor, complexes(3), PHASES),
    Case(aten.div.Tensor, real(3), PHASES),
    Case(aten.div.Tensor, complexes(2), plain(positive(2))),
    Case(aten.div.Tensor, complexes(2), positive(2)),
    Case(aten.div.Scalar, complexes(2), -2.0),
    Case(aten.prod.default, complexes(2)),
    Case(aten.sum.dim_IntList, complexes(2, 2), [1]),
    Case(aten.mean.default, complexes(2)),
    Case(aten.cat.default, [complexes(2), plain(complexes(1))]),
    Case(aten.cat.default, [complexes(2), real(2)]),
    Case(aten.where.self, torch.tensor([True, False]), complexes(2), real(2)),
    Case(aten.where.self, torch.tensor([True, False]), plain(complexes(2)), real(2)),
    Case(aten.mm.default, complexes(2, 2), complexes(2, 2)),
    Case(aten.mm.default, complexes(2, 2), plain(complexes(2, 2))),
    Case(aten.dot.default, complexes(2), complexes(2)),
    Case(aten.vdot.default, complexes(2), complexes(2)),
    Case(aten.vdot.default, plain(complexes(2)), complexes(2)),
    Case(aten.matmul.default, plain(complexes(2, 2)), complexes(2)),
    Case(aten.linalg_vector_norm.default, complexes(2, 2), 2, [1]),
    Case(aten._to_copy.default, real(2), dtype=torch.complex128),
    Case(aten._to_copy.default, complexes(2), dtype=torch.complex64),
]

FOURIER = [
    *[
        Case(aten._fft_r2c.default, real(*shape), dims, norm, onesided)
        for shape, dims, norm, onesided in (
            ((5,), [0], 0, True), ((2, 4), [1], 1, True), ((4, 3), [0], 2, False), ((3, 4), [0, 1], 0, True),
            ((3, 4), [1, 0], 1, True), ((2, 3, 2), [0, 1, 2], 2, False), ((1,), [0], 0, True),
        )
    ],
    *[
        Case(aten._fft_c2c.default, complexes(*shape), dims, norm, forward)
        for shape, dims, norm, forward in (
            ((5,), [0], 0, True), ((2, 4), [1], 1, False), ((3, 2), [0, 1], 2, False), ((2, 2, 2), [0, 2], 0, True),
        )
    ],
    *[
        Case(aten._fft_c2r.default, complexes(*shape), dims, norm, n)
        for shape, dims, norm, n in (
            ((3,), [0], 0, 5), ((3,), [0], 1, 4), ((2, 3), [1], 2, 4), ((3, 3), [0, 1], 2, 5), ((3, 3), [1, 0], 0, 4),
            ((1,), [0], 2, 1), ((2,), [0], 2, 2),
        )
    ],
]  # fmt: skip

CASES = [*BOXES, *FOURIER]
