"""Cases of linear systems, inverses, determinants and exponentials of matrices."""

import torch

from properties.case import Case, near_singular, plain, real, regular, within

aten = torch.ops.aten
FACTOR = torch.tensor([[2.0, 0.0, 0.0], [-1.0, 1.5, 0.0], [0.5, 3.0, 1.0]], dtype=torch.float64)
LU, PIVOTS = torch.linalg.lu_factor(FACTOR + FACTOR.mT)

SYSTEMS = [
    *[
        Case(op, a, b, **how)
        for op in (aten.linalg_solve.default, aten.linalg_solve_ex.default)
        for a, b, how in (
            (regular(3, 3), real(3, 2), {}), (plain(regular(3, 3)), real(3, 2), {}), (regular(3, 3), real(3), {}),
            (regular(2, 3, 3), plain(real(2, 3)), {}), (regular(3, 3), real(2, 3), {"left": False}),
            (near_singular(3, 3), real(3), {}),
        )
    ],
    *[
        Case(aten.linalg_solve_triangular.default, a, b, upper=upper, **how)
        for upper in (False, True)
        for a, b, how in (
            (regular(3, 3), real(3, 2), {}), (plain(regular(3, 3)), real(3, 2), {"unitriangular": True}),
            (regular(3, 3), real(2, 3), {"left": False}), (near_singular(2, 2), real(2, 1), {}),
            (regular(2, 3, 3), plain(real(2, 3, 1)), {"unitriangular": True}),
        )
    ],
    Case(aten.triangular_solve.default, real(3, 2), FACTOR, False),
    Case(aten.triangular_solve.default, real(3, 2), FACTOR.mT, True, True, True),
    Case(aten.cholesky_solve.default, real(3, 2), FACTOR),
    Case(aten.cholesky_solve.default, real(3, 2), FACTOR.mT, True),
    Case(aten.linalg_lu_solve.default, LU, PIVOTS, real(3, 2)),
    Case(aten.linalg_lu_solve.default, LU, PIVOTS, real(2, 3), left=False),
    Case(aten.linalg_lu_solve.default, LU, PIVOTS, real(3, 2), adjoint=True),
]  # fmt: skip

DETERMINANTS = [
    Case(op, a)
    for op in (
        aten.linalg_inv.default, aten.inverse.default, aten.linalg_inv_ex.default, aten.linalg_det.default,
        aten.det.default, aten.linalg_slogdet.default, aten.slogdet.default, aten.logdet.default,
    )
    for a in (regular(3, 3), regular(2, 2, 2), near_singular(2, 2), near_singular(1, 1))
]  # fmt: skip

SPECTRA = [
    *[Case(aten._linalg_eigh.default, x, *rest) for x in (real(3, 3), real(2, 2, 2)) for rest in ((), ("U",))],
    *[Case(aten._linalg_svd.default, x) for x in (real(3, 3), real(2, 2, 3), real(3, 2))],
]

EXPONENTIALS = [
    Case(op, a)
    for op in (aten.linalg_matrix_exp.default, aten.matrix_exp.default)
    for a in (within(-1.0, 1.0, 3, 3), within(-1.0, 1.0, 2, 2, 2), real(2, 2))
]

CASES = [*SYSTEMS, *DETERMINANTS, *SPECTRA, *EXPONENTIALS]
