"""The matrix exponential, of which orthogonal matrices are made.

Let ``h = 1 / N``. An exponential is a product of ``N`` small ones. With ``A + E`` in the place of ``A``, it moves by

    sum_k exp((N - 1 - k) hA) (exp(hA + hE) - exp(hA)) exp(kh(A + E)),    k = 0 ... N - 1.

The middle is at most ``C = exp(h|A| + h|E|) - exp(h|A|)``, entry by entry, as its series shows. Let ``G_k`` bound how
far the last factor has moved. Then each term is at most ``|exp((N - 1 - k) hA)| C (|exp(khA)| + G_k)``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut
from intervalnn.rules.mirrored import mirrored
from intervalnn.table import aten, rule

_STEPS = 16
_ROUNDINGS = 8  # of each step
_SMALL, _TERMS = 0.5, 14  # 0.5 ** 15 / 15! is less than an epsilon of double precision


@rule(aten.linalg_matrix_exp, aten.matrix_exp)
def matrix_exp(fn: Any, a: Interval) -> Interval:
    """Bound the exponential of a matrix, around that of the middle of its interval."""
    if a.dtype.is_complex:
        raise NotImplementedError(f"{fn} of complex intervals; write the matrix with real and imaginary parts")
    wide = a.to(torch.promote_types(a.dtype, torch.float32))
    shift, radius = (wide.above - wide.below) / 2, (wide.above + wide.below) / 2
    spread, moved = _spread(wide.point + shift, radius), _difference(wide.point, shift)
    above, below = (cut(gap).to(a.gap_dtype) for gap in mirrored(spread, moved))
    return Interval(fn(a.point), below, above)


def _difference(a: Tensor, more: Tensor) -> Tensor:
    """Return ``exp(a + more) - exp(a)`` as a block of one larger exponential, so that nothing cancels."""
    n = a.size(-1)
    rows = torch.cat((a, more), -1), torch.cat((torch.zeros_like(a), a + more), -1)
    return _exponential(torch.cat(rows, -2))[..., :n, n:]


def _exponential(a: Tensor) -> Tensor:
    """Return ``exp(a)``, by its series where ``a`` is small.

    There torch's own errs by up to 1e-10 in double precision, where the norm is between 0.003 and 0.06.
    """
    small = a.abs().sum(-1).amax(-1)[..., None, None] < _SMALL
    near, far = torch.where(small, a, 0.0), torch.where(small, 0.0, a)
    one = torch.eye(a.size(-1), dtype=a.dtype, device=a.device)
    series = one.expand(a.shape)
    for k in range(_TERMS, 0, -1):
        series = one + near @ series / k
    return torch.where(small, series, torch.linalg.matrix_exp(far))


def _spread(a: Tensor, radius: Tensor) -> Tensor:
    """Return how far ``exp(a)`` moves where the entries of ``a`` move by ``radius``."""
    step, move = _exponential(a / _STEPS), _difference(a.abs() / _STEPS, radius / _STEPS)
    power = torch.eye(a.size(-1), dtype=a.dtype, device=a.device).expand(a.shape)
    sizes, gap, moves = [power], torch.zeros_like(a), []
    for _ in range(_STEPS):
        moves.append(move @ (sizes[-1] + gap))
        gap = torch.cat(sizes[::-1], -1) @ torch.cat(moves, -2)
        power = power @ step
        sizes.append(power.abs())
    return gap * (1 + _ROUNDINGS * _STEPS * torch.finfo(gap.dtype).eps)
