"""Cases of special functions."""

import torch

from properties.case import Case, plain, positive, real, within

aten = torch.ops.aten

ONE = [
    *[
        Case(getattr(aten, name).default, x)
        for name in (
            "i0", "special_i0e", "special_i1", "special_i1e",
            "special_log_ndtr", "lgamma", "digamma", "sinc", "frac", "special_entr",
        )
        for x in (real(2, 3), positive(2, 3))
    ],
    *[Case(aten.polygamma.default, n, x) for n in (0, 1, 2, 3) for x in (real(2, 3), positive(2, 3))],
    Case(aten.special_ndtri.default, within(0.0, 1.0, 2, 3)),
]  # fmt: skip

A = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
TWO = [
    *[
        Case(op, x, y)
        for op in (aten.xlogy.Tensor, aten.special_xlog1py.default, aten.special_xlogy.default)
        for x, y in ((real(2), positive(2)), (real(2, 3), plain(positive(3))), (plain(real(2, 3)), real(3)))
    ],
    Case(aten.xlogy.Scalar_Self, 0.0, positive(3)),
    Case(aten.xlogy.Scalar_Self, -1.5, positive(3)),
    Case(aten.xlogy.Scalar_Other, real(3), 0.5),
    Case(aten.special_xlogy.self_scalar, 2.0, positive(3)),
    Case(aten.special_xlogy.other_scalar, real(3), 3.0),
    Case(aten.special_xlog1py.self_scalar, 2.0, positive(3)),
    Case(aten.special_xlog1py.other_scalar, real(3), 3.0),
    *[Case(op, A, x) for op in (aten.igamma.default, aten.igammac.default) for x in (positive(2, 3), real(3))],
    *[
        Case(op, x, y)
        for op in (aten.copysign.Tensor, aten.hypot.default)
        for x, y in ((real(2), real(2)), (real(2, 3), plain(real(3))), (plain(real(2, 3)), real(3)))
    ],
    Case(aten.copysign.Scalar, real(3), -0.0),
    Case(aten.copysign.Scalar, real(3), 2.0),
]

CASES = [*ONE, *TWO]
