"""Cases of operations that refuse intervals, and of those that read nothing but shapes."""

import torch

from intervalnn.table import if_there
from properties.case import Case, real

aten = torch.ops.aten
X, Y = real(2, 3), real(2, 3)

COMPARISONS = [Case(getattr(aten, name).default, X, Y) for name in ("equal", "allclose")]

INDICES = [
    *[Case(getattr(aten, name).default, X) for name in ("argsort", "nonzero", "_unique2", "mode")],
    Case(aten.bincount.default, real(3)),
    Case(aten.histc.default, real(3)),
    Case(aten.embedding_renorm.default, X, torch.tensor([0]), 1.0, 2.0),
    Case(aten.item.default, real()),
    Case(aten._local_scalar_dense.default, real()),
]

MEMORY = [
    Case(aten.as_strided.default, X, [3, 2], [1, 3]),
    Case(aten.as_strided_scatter.default, X, real(2), [2], [1]),
    Case(aten.sym_stride.int, X, 0),
    Case(aten.sym_storage_offset.default, X),
    Case(aten.sym_is_contiguous.default, X),
    Case(aten.resize_.default, X, [3]),
    Case(aten.view.dtype, X, torch.float32),
    Case(aten.view_copy.dtype, X, torch.float32),
]


BACKWARD = [
    Case(getattr(aten, name).default, X)
    for name in (
        "_adaptive_avg_pool2d_backward", "avg_pool2d_backward", "convolution_backward", "embedding_dense_backward",
        "max_pool2d_with_indices_backward", "native_group_norm_backward", "native_layer_norm_backward",
    )
]  # fmt: skip

RANDOM = [
    *[
        Case(getattr(aten, name).default, X)
        for name in (
            "rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm", "bernoulli",
            "multinomial", "normal_functional", "uniform", "exponential", "poisson", "native_dropout", "alpha_dropout",
            "feature_dropout", "rrelu_with_noise", "rrelu_with_noise_functional", "_fused_dropout",
            "fractional_max_pool2d", "fractional_max_pool3d",
        )
    ],
    Case(aten.normal.float_Tensor, 0.0, X),
    Case(aten._native_batch_norm_legit.default, X),
    Case(aten._native_batch_norm_legit_functional.default, X),
]  # fmt: skip

DTYPES = [
    Case(aten.mm.dtype, X, Y, torch.float32),
    Case(aten.bmm.dtype, X, Y, torch.float32),
    Case(aten.addmm.dtype, X, X, Y, torch.float32),
    Case(aten.baddbmm.dtype, X, X, Y, torch.float32),
]

MATRICES = [
    *[
        Case(op.default, real(3, 3))
        for op in if_there(
            "linalg_cholesky", "linalg_cholesky_ex", "cholesky", "cholesky_inverse", "linalg_qr", "geqrf", "ormqr",
            "linalg_eig", "linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "lu_unpack", "linalg_ldl_factor",
            "linalg_ldl_factor_ex", "linalg_ldl_solve", "linalg_lstsq", "linalg_householder_product",
            "linalg_tensorinv", "linalg_tensorsolve",
        )
    ],
    Case(aten.linalg_pinv.atol_rtol_tensor, real(3, 3)),
    Case(aten.frexp.Tensor, X),
    Case(aten.nextafter.default, X, Y),
]  # fmt: skip

QUANTISED = [
    Case(aten._fake_quantize_learnable_per_tensor_affine.default, X, real(1), real(1), -8, 7),
    Case(aten._fake_quantize_learnable_per_channel_affine.default, X, real(3), real(3), 1, -8, 7),
    Case(aten._fused_moving_avg_obs_fq_helper.default, X),
    Case(aten._fused_moving_avg_obs_fq_helper_functional.default, X),
]

SPARSE = [
    Case(getattr(aten, name).default, X)
    for name in (
        "_sparse_coo_tensor_with_dims_and_tensors", "_to_sparse", "_to_sparse_csr", "_to_sparse_csc", "_to_sparse_bsr",
        "_to_sparse_bsc", "_sparse_addmm", "_sparse_mm_reduce_impl", "_sparse_sum", "sparse_mask",
    )
] + [Case(getattr(aten, name).int, X, 1) for name in ("_sparse_softmax", "_sparse_log_softmax")]  # fmt: skip

REFUSED = [*QUANTISED, *SPARSE, *DTYPES, *MATRICES, *COMPARISONS, *INDICES, *MEMORY, *BACKWARD, *RANDOM]

SHAPE_ONLY = [
    Case(aten.sym_size.int, X, 0),
    Case(aten.sym_size.default, X),
    Case(aten.sym_numel.default, X),
    Case(aten._assert_async.default, real()),
    Case(aten._assert_async.msg, real(), "said"),
    Case(aten.arange.default, 3),
    Case(aten.empty.memory_format, [2]),
    Case(aten.empty_like.default, X),
    Case(aten.empty_strided.default, [2], [1]),
    Case(aten.full.default, [2], 1.0),
    Case(aten.full_like.default, X, 1.0),
    Case(aten.zeros.default, [2]),
    Case(aten.zeros_like.default, X),
    Case(aten.ones.default, [2]),
    Case(aten.ones_like.default, X),
    Case(aten.new_zeros.default, X, [2]),
    Case(aten.new_ones.default, X, [2]),
    Case(aten.new_full.default, X, [2], 1.0),
    Case(aten.new_empty.default, X, [2]),
    Case(aten.scalar_tensor.default, 1.0),
    Case(aten.linspace.default, 0.0, 1.0, 3),
    Case(aten.logspace.default, 0.0, 1.0, 3),
    Case(aten.eye.default, 2),
    Case(aten.tril_indices.default, 2, 2),
    Case(aten.triu_indices.default, 2, 2),
]
