"""Cases of extrema, sorting and pooling."""

import torch

from properties.case import Case, real

aten = torch.ops.aten

EXTREMA = [
    Case(aten.amax.default, real(2, 3), [1]),
    Case(aten.amax.default, real(2, 3), [0, 1], True),
    Case(aten.amax.default, real(2, 3)),
    Case(aten.amin.default, real(2, 3), [-1]),
    Case(aten.logsumexp.default, real(2, 3), [1]),
    Case(aten.logsumexp.default, real(2, 3), [0, 1], True),
    Case(aten.median.default, real(5)),
    Case(aten.median.default, real(2, 2)),
    Case(aten.max.default, real(2, 3)),
    Case(aten.min.default, real(2, 3)),
    Case(aten.max.dim, real(2, 3), 1),
    Case(aten.min.dim, real(2, 3), -2, True),
    Case(aten.median.dim, real(2, 4), 1),
    Case(aten.cummax.default, real(2, 3), 1),
    Case(aten.cummin.default, real(2, 3), 0),
    Case(aten.sort.default, real(2, 4)),
    Case(aten.sort.default, real(4, 2), 0, True),
    Case(aten.sort.stable, real(2, 3), stable=True, dim=1, descending=True),
    Case(aten.topk.default, real(2, 4), 2),
    Case(aten.topk.default, real(4, 2), 3, 0, False),
    Case(aten.kthvalue.default, real(2, 4), 2),
    Case(aten.kthvalue.default, real(4), 3, 0, True),
]

MAX_POOLING = [
    Case(aten.max_pool1d.default, real(1, 2, 5), [2]),
    Case(aten.max_pool1d.default, real(2, 5), [3], [2], [1], [1], True),
    Case(aten.max_pool2d.default, real(1, 2, 4, 4), [2, 2]),
    Case(aten.max_pool2d.default, real(1, 1, 5, 5), [3, 2], [2, 1], [1, 1], [1, 2]),
    Case(aten.max_pool3d.default, real(1, 1, 2, 4, 4), [2, 2, 2]),
    Case(aten.max_pool2d_with_indices.default, real(1, 2, 4, 4), [2, 2], [1, 1], [1, 1]),
    Case(aten.max_pool3d_with_indices.default, real(1, 1, 2, 2, 4), [1, 2, 2]),
    Case(aten.adaptive_max_pool1d.default, real(1, 2, 5), [2]),
    Case(aten.adaptive_max_pool2d.default, real(1, 2, 3, 5), [2, 3]),
    Case(aten.adaptive_max_pool3d.default, real(1, 1, 2, 3, 3), [1, 2, 2]),
]

MEAN_POOLING = [
    Case(aten.avg_pool1d.default, real(1, 2, 5), [2], [2], [1]),
    Case(aten.avg_pool2d.default, real(1, 2, 4, 4), [2, 2]),
    Case(aten.avg_pool2d.default, real(1, 1, 5, 4), [3, 2], [2, 2], [1, 1], True, False),
    Case(aten.avg_pool2d.default, real(1, 1, 4, 4), [2, 2], [2, 2], [0, 0], False, True, 3),
    Case(aten.avg_pool2d.default, real(1, 1, 4, 4), [2, 2], [2, 2], [0, 0], False, True, -3),
    Case(aten.avg_pool3d.default, real(1, 1, 2, 4, 4), [2, 2, 2]),
    Case(aten.avg_pool3d.default, real(1, 1, 2, 2, 2), [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, -5),
    Case(aten.adaptive_avg_pool1d.default, real(1, 2, 5), [3]),
    Case(aten.adaptive_avg_pool2d.default, real(1, 2, 3, 5), [2, 3]),
    Case(aten.adaptive_avg_pool3d.default, real(1, 1, 2, 3, 3), [1, 2, 2]),
    Case(aten._adaptive_avg_pool2d.default, real(1, 2, 3, 5), [2, 3]),
    Case(aten._adaptive_avg_pool3d.default, real(1, 1, 2, 3, 3), [1, 2, 2]),
]

STEPS = torch.tensor([0.1, 0.3, 0.5])
ZEROS = torch.tensor([0, 3, -2], dtype=torch.int32)
ON = torch.ones(1, dtype=torch.int64)
QUANTISED = [
    Case(aten.fake_quantize_per_tensor_affine_cachemask.default, real(2, 3), 0.1, 0, -128, 127),
    Case(aten.fake_quantize_per_tensor_affine_cachemask.default, real(2, 3), 0.3, 5, 0, 15),
    Case(
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default,
        real(2, 3), STEPS[:1], ZEROS[1:2], ON, 0, 15,
    ),
    Case(aten.fake_quantize_per_channel_affine_cachemask.default, real(2, 3), STEPS, ZEROS, 1, -8, 7),
]  # fmt: skip

CASES = [*EXTREMA, *MAX_POOLING, *MEAN_POOLING, *QUANTISED]
