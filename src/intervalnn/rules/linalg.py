"""Linear systems, inverses and determinants, of matrices that are points or intervals.

Let ``A X = B``, and let ``A`` and ``B`` move by ``E`` and ``F``. Then ``X`` moves by ``D`` with

    D = A^-1 (F - E X) - A^-1 E D,    |A^-1 E| <= M = |A^-1| |E|,

entry by entry. The first term is linear in what moves, and bounded exactly. The second is at most ``M |D|``. So if
``1 - M`` has an inverse that is nowhere negative, ``|D|`` is at most that inverse times the first term; else ``A`` may
become singular, and there are no bounds.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import gap_dtype_for, point_of
from intervalnn.rules.complexes import has_complex
from intervalnn.rules.products.split import split
from intervalnn.table import aten, rule

Value = Interval | Tensor
INFO = "says whether the matrix was singular"
_ROUNDINGS = 64


def _wide(x: Value) -> Interval:
    return Interval.of(x).to(torch.promote_types(x.dtype, torch.float32))


def _size(x: Interval) -> Tensor:
    return torch.maximum(x.below, x.above)


def _eye(like: Tensor) -> Tensor:
    return torch.eye(like.size(-1), dtype=like.dtype, device=like.device)


def _keeps_regular(moves: Tensor) -> Tensor:
    """Say whether the series of the powers of ``moves``, which is nowhere negative, has a sum."""
    inverse: Tensor = torch.linalg.inv_ex(_eye(moves) - moves.detach()).inverse
    slack = _ROUNDINGS * torch.finfo(moves.dtype).eps * inverse.abs().amax((-2, -1), keepdim=True)
    return (inverse >= -slack).all(-1, keepdim=True).all(-2, keepdim=True)


def _series(moves: Tensor, first: Tensor) -> Tensor:
    """Return ``(M + M^2 + M^3 ...) first``, without bound where that has no sum."""
    sure = _keeps_regular(moves)
    moves = torch.where(sure, moves, 0.0)
    total = moves @ torch.linalg.solve_ex(_eye(moves) - moves, first).result
    return torch.where(sure, total, torch.inf)


def _solution_gaps(a: Interval, b: Interval, x: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    """Return how far the solution ``x`` of a system moves, from the inverse of the point matrix."""
    below, above = split(x).gaps(torch.matmul, a)
    residual = Interval(x, *(own.expand(x.shape) for own in (b.below + above, b.above + below)))
    below, above = split(residual, by_interval=False).gaps(torch.matmul, inverse)
    more = _series(inverse.abs() @ _size(a), torch.maximum(below, above))
    return below + more, above + more


def _around(point: Tensor, sides: tuple[Tensor, Tensor], *like: Any) -> Interval:
    dtype = gap_dtype_for(point, *like)
    return Interval(point, *(gap.to(dtype).reshape(point.shape) for gap in sides))


def _refuse_complex(fn: Any, *values: Any) -> None:
    if has_complex(*values):
        raise NotImplementedError(f"{fn} of complex intervals; write the system with real and imaginary parts")


def _solved(fn: Any, point: Tensor, a: Value, b: Value, inverse: Tensor, *, left: bool, vector: bool) -> Interval:
    _refuse_complex(fn, a, b)
    matrix, right, x = _wide(a), _wide(b), point.to(inverse.dtype)
    if vector:
        right, x = right.map(lambda part: part.unsqueeze(-1)), x.unsqueeze(-1)
    if left:
        return _around(point, _solution_gaps(matrix, right, x, inverse), a, b)
    matrix, right = (v.map(lambda part: part.mT) for v in (matrix, right))
    below, above = _solution_gaps(matrix, right, x.mT, inverse.mT)
    return _around(point, (below.mT, above.mT), a, b)


@rule(aten.linalg_solve, takes=(0, 1))
def solve(fn: Any, a: Value, b: Value, *, left: bool = True) -> Interval:
    """Bound the solution of a linear system."""
    point = fn(point_of(a), point_of(b), left=left)
    inverse = torch.linalg.inv_ex(_wide(a).point).inverse
    vector = left and (b.dim() == 1 or (a.dim() - 1 == b.dim() and b.shape == a.shape[:-1]))
    return _solved(fn, point, a, b, inverse, left=left, vector=vector)


@rule(aten.linalg_solve_ex, takes=(0, 1), hidden={1: INFO})
def solve_and_info(
    fn: Any, a: Value, b: Value, *, left: bool = True, check_errors: bool = False
) -> tuple[Interval, None]:
    """Bound the solution of a linear system."""
    found = solve(aten.linalg_solve.default, a, b, left=left)
    point = fn(point_of(a), point_of(b), left=left, check_errors=check_errors)[0]
    return Interval(point, found.below, found.above), None


@rule(aten.linalg_solve_triangular, takes=(0, 1))
def solve_triangular(
    fn: Any, a: Value, b: Value, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Interval:
    """Bound the solution of a triangular system; the other triangle of the matrix is not read."""
    point = fn(point_of(a), point_of(b), upper=upper, left=left, unitriangular=unitriangular)
    below_diagonal = -1 if unitriangular else 0

    def read(part: Tensor) -> Tensor:
        return part.triu(-below_diagonal) if upper else part.tril(below_diagonal)

    matrix = _wide(a).map(read)
    eye = _eye(matrix.point)
    solid = matrix.point + eye if unitriangular else matrix.point
    inverse = torch.linalg.solve_triangular(solid, eye, upper=upper)
    return _solved(fn, point, matrix if isinstance(a, Interval) else a, b, inverse, left=left, vector=False)


@rule(aten.triangular_solve, hidden={1: "is the matrix itself"})
def triangular_solve(
    fn: Any, b: Interval, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Interval, None]:
    """Bound the solution of a triangular system with a point matrix."""
    point = fn(b.point, a, upper, transpose, unitriangular)[0]
    return _of_right(point, b, lambda eye: fn(eye, a, upper, transpose, unitriangular)[0]), None


@rule(aten.cholesky_solve)
def cholesky_solve(fn: Any, b: Interval, factor: Tensor, upper: bool = False) -> Interval:
    """Bound the solution of a system whose matrix comes as its Cholesky factor."""
    return _of_right(fn(b.point, factor, upper), b, lambda eye: fn(eye, factor, upper))


@rule(aten.linalg_lu_solve, takes=(2,))
def lu_solve(
    fn: Any, factors: Tensor, pivots: Tensor, b: Interval, *, left: bool = True, adjoint: bool = False
) -> Interval:
    """Bound the solution of a system whose matrix comes as its LU factors."""
    point = fn(factors, pivots, b.point, left=left, adjoint=adjoint)
    inverse = fn(factors, pivots, _eye(factors), adjoint=adjoint)
    if left:
        return _of_right(point, b, lambda _: inverse)
    turned = _of_right(point.mT, b.map(lambda part: part.mT), lambda _: inverse.mT)
    return Interval(point, turned.below.mT, turned.above.mT)


def _of_right(point: Tensor, b: Interval, inverse_of: Any) -> Interval:
    """Bound a solution that is linear in the right side, by the inverse."""
    _refuse_complex("a linear system", b)
    wide = _wide(b)
    inverse = inverse_of(_eye(b.point.mT)).to(wide.dtype)
    return _around(point, split(wide, by_interval=False).gaps(torch.matmul, inverse), b)


@rule(aten.linalg_inv, aten.inverse)
def inverse(fn: Any, a: Interval) -> Interval:
    """Bound the inverse of a matrix."""
    _refuse_complex(fn, a)
    point, matrix = fn(a.point), _wide(a)
    x = point.to(matrix.dtype)
    none = Interval.of(torch.zeros_like(x))
    return _around(point, _solution_gaps(matrix, none, x, x), a)


@rule(aten.linalg_inv_ex, hidden={1: INFO})
def inverse_and_info(fn: Any, a: Interval, *, check_errors: bool = False) -> tuple[Interval, None]:
    """Bound the inverse of a matrix."""
    found = inverse(aten.linalg_inv.default, a)
    return Interval(fn(a.point, check_errors=check_errors)[0], found.below, found.above), None


def _logarithm_gaps(a: Interval) -> tuple[Tensor, Tensor]:
    """Return how far ``log |det A|`` moves.

    With ``F = A^-1 E`` it moves by ``tr F - tr F^2 / 2 + tr F^3 / 3 ...``, of which all but the first are at most
    ``tr(M^2 + M^3 ...) / 2`` together.
    """
    inverse = torch.linalg.inv_ex(a.point).inverse
    slope = inverse.mT
    even, odd = slope.abs() * (a.above + a.below) / 2, slope * (a.above - a.below) / 2
    above, below = ((even + sign * odd).sum((-2, -1)) for sign in (1, -1))
    moves = inverse.abs() @ _size(a)
    more = _series(moves, moves).diagonal(dim1=-2, dim2=-1).sum(-1) / 2
    return below + more, above + more


@rule(aten.linalg_slogdet, aten.slogdet)
def slogdet(fn: Any, a: Interval) -> tuple[Interval, Interval]:
    """Bound the sign and the logarithm of a determinant; any sign where it may be zero."""
    _refuse_complex(fn, a)
    sign, logarithm = fn(a.point)
    below, above = _logarithm_gaps(_wide(a))
    lost = ~(below.isfinite() & above.isfinite())
    flips = (torch.where(lost, distance, 0.0) for distance in (sign + 1, 1 - sign))
    return _around(sign, tuple(flips), a), _around(logarithm, (below, above), a)  # type: ignore[arg-type]


@rule(aten.linalg_det, aten.det)
def det(fn: Any, a: Interval) -> Interval:
    """Bound a determinant, which grows and shrinks with its logarithm."""
    _refuse_complex(fn, a)
    point = fn(a.point)
    below, above = _logarithm_gaps(_wide(a))
    size = point.to(above.dtype).abs()
    known = below.isfinite() & above.isfinite()  # else it may be zero, and have either sign
    grows = torch.where(known, size * torch.expm1(torch.where(known, above, 0.0)), torch.inf)
    shrinks = torch.where(known, size * -torch.expm1(-torch.where(known, below, 0.0)), torch.inf)
    return _around(point, (torch.where(point < 0, grows, shrinks), torch.where(point < 0, shrinks, grows)), a)


@rule(aten.logdet)
def logdet(fn: Any, a: Interval) -> Interval:
    """Bound the logarithm of a positive determinant; a negative determinant has no real logarithm."""
    sign, logarithm = slogdet(aten.linalg_slogdet.default, a)
    below, above = (torch.where(sign.width > 0, torch.inf, gap) for gap in (logarithm.below, logarithm.above))
    return Interval(fn(a.point), below, above)


def _norm(x: Tensor) -> Tensor:
    """Return an upper bound on the spectral norm of a matrix: the mean of the largest row sum and column sum."""
    return (x.sum(-1).amax(-1) + x.sum(-2).amax(-1)) / 2


@rule(aten._linalg_eigh, hidden={1: "is a matrix of eigenvectors, which turn freely where eigenvalues are near"})
def eigenvalues(fn: Any, a: Interval, side: str = "L", vectors: bool = True) -> tuple[Interval, None]:
    """Bound the eigenvalues of a symmetric matrix: none moves by more than the norm of what is added (Weyl)."""
    _refuse_complex(fn, a)
    size = _size(_wide(a))
    size = size.tril() if side == "L" else size.triu()
    move = _norm(size + size.mT - torch.diag_embed(size.diagonal(dim1=-2, dim2=-1))).unsqueeze(-1)
    point = fn(a.point, side, vectors)[0]
    return _around(point, (move.expand(point.shape), move.expand(point.shape)), a), None


VECTORS = "is a matrix of singular vectors, which turn freely where singular values are near"


@rule(aten._linalg_svd, hidden={0: VECTORS, 2: VECTORS})
def singular_values(
    fn: Any, a: Interval, full: bool = False, vectors: bool = True, **driver: Any
) -> tuple[None, Interval, None]:
    """Bound the singular values of a matrix: none moves by more than the norm of what is added (Weyl)."""
    _refuse_complex(fn, a)
    point, move = fn(a.point, full, vectors, **driver)[1], _norm(_size(_wide(a))).unsqueeze(-1)
    return None, _around(point, (move.expand(point.shape), move.expand(point.shape)), a), None
