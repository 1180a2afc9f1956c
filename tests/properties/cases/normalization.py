"""Cases of norm layers, variances, distances, softmax and attention."""

import torch

from properties.case import Case, plain, real

aten = torch.ops.aten
MEAN, VAR = torch.tensor([0.5, -1.0], dtype=torch.float64), torch.tensor([2.0, 0.3], dtype=torch.float64)
ALLOWED = torch.tensor([[True, False, True], [False, True, False]])
BIAS = torch.tensor([[0.0, -torch.inf, 1.0], [0.5, -2.0, -torch.inf]], dtype=torch.float64)

NORMS = [
    Case(aten.layer_norm.default, real(2, 4), [4]),
    Case(aten.layer_norm.default, real(2, 3), [3], real(3), real(3)),
    Case(aten.layer_norm.default, real(2, 3), [3], plain(real(3)), plain(real(3)), 1e-3),
    Case(aten.layer_norm.default, plain(real(2, 3)), [3], real(3), real(3)),
    Case(aten.layer_norm.default, real(2, 2, 3), [2, 3], real(2, 3), None),
    Case(aten.layer_norm.default, real(2, 1), [1], real(1), real(1)),
    Case(aten.layer_norm.default, real(2, 2), [2]),
    Case(aten.layer_norm.default, real(1, 16), [16]),
    Case(aten.layer_norm.default, real(0, 3), [3]),
    Case(aten.native_layer_norm.default, real(2, 3), [3], real(3), real(3), 1e-5),
    Case(aten.native_layer_norm.default, real(2, 3), [3], None, None, 1e-5),
    Case(aten.rms_norm.default, real(2, 4), [4], real(4), 1e-5),
    Case(aten.rms_norm.default, real(2, 3), [3]),
    Case(aten.rms_norm.default, plain(real(2, 3)), [3], real(3)),
    Case(aten.rms_norm.default, real(2, 1), [1], None, 1e-3),
    Case(aten._weight_norm.default, real(2, 3), real(2, 1)),
    Case(aten._weight_norm.default, real(2, 2, 2), real(1, 1, 2), 2),
    Case(aten._weight_norm.default, plain(real(3, 2)), real(3, 1), 0),
    Case(aten._weight_norm.default, real(2, 2), plain(real(1)), -1),
    Case(aten.group_norm.default, real(2, 4, 2), 2, real(4), real(4)),
    Case(aten.group_norm.default, real(1, 2, 2, 2), 1, plain(real(2)), None, 1e-3),
    Case(aten.group_norm.default, real(2, 2), 2),
    Case(aten.native_group_norm.default, real(2, 4, 3), real(4), real(4), 2, 4, 3, 2, 1e-5),
    Case(aten.native_group_norm.default, real(1, 2, 3), None, None, 1, 2, 3, 2, 1e-5),
    Case(aten._native_batch_norm_legit.no_stats, real(2, 2, 2), real(2), real(2), True, 0.1, 1e-5),
    Case(aten._native_batch_norm_legit.no_stats, real(4, 2), None, None, True, 0.1, 1e-5),
    Case(aten._native_batch_norm_legit_no_training.default, real(2, 2, 2), real(2), real(2), MEAN, VAR, 0.1, 1e-5),
    Case(aten.instance_norm.default, real(2, 2, 3), real(2), real(2), None, None, True, 0.1, 1e-5, False),
    Case(aten.instance_norm.default, real(1, 2, 2, 2), None, None, None, None, True, 0.1, 1e-5, False),
    Case(aten.instance_norm.default, plain(real(2, 2, 3)), real(2), None, MEAN, VAR, False, 0.1, 1e-5, False),
    Case(aten._native_batch_norm_legit_no_training.default, real(3, 2), None, None, MEAN, VAR, 0.1, 1e-5),
    Case(
        aten._native_batch_norm_legit_no_training.default, plain(real(1, 2, 2, 2)), real(2), real(2), MEAN, VAR, 0.1,
        1e-5,
    ),
]  # fmt: skip

SPREADS = [
    Case(aten.var.correction, real(2, 4), [1]),
    Case(aten.var.correction, real(2, 4), [-1], correction=0, keepdim=True),
    Case(aten.var.correction, real(2, 2, 2), [0, 2], correction=2),
    Case(aten.var.correction, real(4)),
    Case(aten.var.correction, real(2, 1), [1], correction=0),
    Case(aten.var.correction, real(2, 3), [1], correction=0.5),
    Case(aten.var.dim, real(2, 4), [1]),
    Case(aten.var.dim, real(2, 4), [0, 1], False, True),
    *[Case(aten.linalg_vector_norm.default, real(2, 3), p, [1]) for p in (0, 0.5, 1, 2, 3.5, -1, -2)],
    Case(aten.linalg_vector_norm.default, real(2, 3), float("inf"), [-1], True),
    Case(aten.linalg_vector_norm.default, real(2, 3), -float("inf"), [0]),
    Case(aten.linalg_vector_norm.default, real(2, 3)),
    Case(aten.linalg_vector_norm.default, real(3), 2, None, False, dtype=torch.float64),
    *[Case(aten._cdist_forward.default, real(2, 3), real(2, 3), p, None) for p in (0.0, 1.0, 2.0, 3.0, float("inf"))],
    Case(aten._cdist_forward.default, real(2, 2, 3), plain(real(2, 1, 3)), 2.0, None),
    Case(aten._cdist_forward.default, plain(real(2, 3)), real(1, 3), 2.0, 1),
    Case(aten._pdist_forward.default, real(3, 2)),
    Case(aten._pdist_forward.default, real(3, 2), 1.0),
]

SOFTMAXES = [
    *[
        case
        for op in (aten.softmax.int, aten.log_softmax.int, aten._softmax.default, aten._log_softmax.default)
        for last in [() if op in (aten.softmax.int, aten.log_softmax.int) else (False,)]
        for case in (
            Case(op, real(2, 3), -1, *last),
            Case(op, real(3, 2), 0, *last),
            Case(op, real(2, 1), 1, *last),
            Case(op, real(2), 0, *last),
            Case(op, real(), 0, *last),
            Case(op, real(2, 0), 0, *last),
            Case(op, real(5), 0, *last),
        )
    ],
    Case(aten.softmax.int, real(2, 3), 1, torch.float64),
    Case(aten.log_softmax.int, real(2, 3), 1, torch.float64),
]


def _attention(moving: tuple[int, ...], mask=None, *rest, heads: tuple[int, int] = (1, 1), **options) -> Case:
    shapes = (real(heads[0], 2, 2), real(heads[1], 3, 2), real(heads[1], 3, 2))
    slots = (slot if index in moving else plain(slot) for index, slot in enumerate(shapes))
    return Case(aten.scaled_dot_product_attention.default, *slots, mask, *rest, **options)


ATTENTION = [
    *[_attention(moving) for moving in ((0, 1, 2), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2))],
    *[_attention(moving, ALLOWED) for moving in ((0, 1, 2), (0,), (2,))],
    *[_attention(moving, BIAS) for moving in ((0, 1, 2), (0,), (2,))],
    *[_attention(moving, None, 0.0, True) for moving in ((0, 1, 2), (1,), (2,))],
    _attention((0, 1, 2), real(2, 3)),
    _attention((), real(2, 3)),
    _attention((2,), real(1, 1)),
    _attention((0, 1, 2), scale=0.3),
    _attention((0, 1, 2), scale=-1.5),
    _attention((0, 1, 2), heads=(4, 2), enable_gqa=True),
    _attention((2,), torch.tensor([[True, True, False], [False, False, False]])),
    _attention((0, 1, 2), torch.tensor([[True, True, False], [False, False, False]])),
    Case(aten.scaled_dot_product_attention.default, real(2, 1, 2, 2), real(2, 1, 2, 2), real(2, 1, 2, 3)),
]

CASES = [*NORMS, *SPREADS, *SOFTMAXES, *ATTENTION]
