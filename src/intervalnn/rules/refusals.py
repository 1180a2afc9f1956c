"""Operations that take no interval, each with its reason."""

from __future__ import annotations

from intervalnn.table import aten, if_there, refuse

refuse(
    aten.equal, aten.allclose,
    why="answers yes or no to Python, and inside an interval the answer may change; "
    "compare entry by entry, with torch.eq or torch.isclose, and choose with torch.where",
)  # fmt: skip

refuse(
    aten.argsort, aten.nonzero, aten._unique2, aten.bincount, aten.mode,
    why="returns indices or counts, and inside an interval they may change; return the scores instead",
)  # fmt: skip

refuse(
    aten.embedding_renorm,
    why="shortens rows of the embedding's weight while the model runs (max_norm); shorten them once, and set "
    "max_norm to None",
)

refuse(
    aten.histc,
    why="counts values, and inside an interval the counts may change; return the values instead",
)

refuse(
    aten.item, aten._local_scalar_dense,
    why="reads a number back into Python, where an interval cannot follow; keep it a tensor",
)  # fmt: skip

refuse(
    aten.as_strided, aten.as_strided_scatter, aten.sym_stride, aten.sym_storage_offset, aten.sym_is_contiguous,
    aten.resize_, aten.view.dtype, aten.view_copy.dtype,
    why="depends on how the numbers lie in memory; use reshape, permute or unfold instead",
)  # fmt: skip

refuse(
    aten.mm.dtype,
    aten.bmm.dtype,
    aten.addmm.dtype,
    aten.baddbmm.dtype,
    why="gives its result another dtype than its factors have; convert the factors, or the result, instead",
)

refuse(
    *if_there("cholesky"),  # until torch 2.14
    aten.linalg_cholesky, aten.linalg_cholesky_ex, aten.cholesky_inverse, aten.linalg_qr, aten.geqrf, aten.ormqr,
    aten.linalg_eig, aten.linalg_lu, aten.linalg_lu_factor, aten.linalg_lu_factor_ex, aten.lu_unpack,
    aten.linalg_ldl_factor, aten.linalg_ldl_factor_ex, aten.linalg_ldl_solve, aten.linalg_pinv.atol_rtol_tensor,
    aten.linalg_lstsq, aten.linalg_tensorinv, aten.linalg_tensorsolve,
    why="takes a matrix apart into factors, of which intervals have no bounds here; take the factors of point matrices "
    "alone (torch.linalg.solve, inv, det, slogdet, eigvalsh and svdvals have bounds)",
)  # fmt: skip

refuse(
    aten.linalg_householder_product,
    why="is a product of reflections, whose bounds grow threefold with each; make the matrix with "
    "orthogonal_map='matrix_exp' or 'cayley', or call torch.nn.utils.parametrize.remove_parametrizations first, so "
    "that the gaps are around the matrix itself",
)

refuse(
    aten._sparse_coo_tensor_with_dims_and_tensors, aten._to_sparse, aten._to_sparse_csr, aten._to_sparse_csc,
    aten._to_sparse_bsr, aten._to_sparse_bsc, aten._sparse_addmm, aten._sparse_mm_reduce_impl, aten._sparse_softmax,
    aten._sparse_log_softmax, aten._sparse_sum, aten.sparse_mask,
    why="makes or takes a sparse tensor, and intervals are dense; multiply by a sparse matrix of points (A @ x), add "
    "up by index_add or scatter_reduce, or make the tensor dense",
)  # fmt: skip

refuse(
    aten.frexp, aten.nextafter,
    why="depends on how numbers are stored, and jumps inside an interval; use scaling or clamping instead",
)  # fmt: skip

refuse(
    aten._adaptive_avg_pool2d_backward, aten.avg_pool2d_backward, aten.convolution_backward,
    aten.embedding_dense_backward, aten.max_pool2d_with_indices_backward, aten.native_group_norm_backward,
    aten.native_layer_norm_backward,
    why="is a backward pass; bound the forward pass and differentiate the bounds instead",
)  # fmt: skip

refuse(
    aten.rand, aten.rand_like, aten.randn, aten.randn_like, aten.randint, aten.randint_like, aten.randperm,
    aten.bernoulli, aten.multinomial, aten.normal, aten.normal_functional, aten.uniform, aten.exponential,
    aten.poisson, aten.native_dropout, aten.alpha_dropout, aten.feature_dropout, aten.rrelu_with_noise,
    aten.rrelu_with_noise_functional, aten._fused_dropout, aten.fractional_max_pool2d,
    aten.fractional_max_pool3d,
    why="draws random numbers, so the model has no single prediction to bound; "
    "call model.eval(), and pass training=self.training to functional dropout",
    even_plain=True,
)  # fmt: skip

refuse(
    aten._native_batch_norm_legit.default, aten._native_batch_norm_legit_functional,
    why="is a batch norm in training mode, which changes the model's statistics; call model.eval() first",
    even_plain=True,
)  # fmt: skip
