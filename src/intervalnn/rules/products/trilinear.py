"""Products of three factors: bilinear layers.

A bilinear layer is ``y_k = sum_ij W_kij u_i v_j + bias_k``. If ``u``, ``v`` and ``W`` move by ``du``, ``dv`` and
``dW``, ``y`` moves by

    sum_i (W v)_ki du_i + sum_j (W u)_kj dv_j  +  sum_ij W_kij du_i dv_j  +  sum_ij dW_kij (u_i + du_i)(v_j + dv_j),

of which each sum is bounded for itself. The first two are exact to the first order: what cancels in ``W v`` cancels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut
from intervalnn.rules.arithmetic import gap_dtype_for, mul, point_of
from intervalnn.rules.complexes import has_complex
from intervalnn.rules.mirrored import mirrored
from intervalnn.table import aten, rule

Value = Interval | Tensor
Halves = tuple[Tensor, Tensor]  # half the sum and half the difference of what reaches above and below


@rule(aten.bilinear, takes=(0, 1, 2, 3))
def bilinear(fn: Any, x: Value, y: Value, weight: Value, bias: Value | None = None) -> Interval:
    """Bound a bilinear layer."""
    if has_complex(x, y, weight):
        raise NotImplementedError(f"{fn} of complex intervals; write it with products and sums")
    point = fn(*map(point_of, (x, y, weight, bias)))
    dtype = torch.promote_types(point.dtype, torch.float32)
    u, v, w = (Interval.of(value).to(dtype) for value in (x, y, weight))
    parts = []
    if isinstance(x, Interval):
        parts.append(_factor_moves(torch.einsum("kij,...j->...ki", w.point, v.point), u))
    if isinstance(y, Interval):
        parts.append(_factor_moves(torch.einsum("kij,...i->...kj", w.point, u.point), v))
    if isinstance(x, Interval) and isinstance(y, Interval):
        both = torch.einsum("kij,...i,...j->...k", w.point.abs(), *(torch.maximum(f.below, f.above) for f in (u, v)))
        parts.append((both, torch.zeros_like(both)))
    if isinstance(weight, Interval):
        parts.append(_weight_moves(w, u, v))
    if isinstance(bias, Interval):
        even, odd = _halves(bias.to(dtype))
        parts.append((even.expand(point.shape), odd.expand(point.shape)))
    even, odd = (torch.stack(halves).sum(0) for halves in zip(*parts, strict=True))
    gap_dtype = gap_dtype_for(point, x, y, weight, bias)
    above, below = (cut(gap).to(gap_dtype) for gap in mirrored(even, odd))
    return Interval(point, below, above)


def _halves(x: Interval) -> Halves:
    return (x.above + x.below) / 2, (x.above - x.below) / 2


def _factor_moves(slope: Tensor, x: Interval) -> Halves:
    even, odd = _halves(x)
    return torch.einsum("...ki,...i->...k", slope.abs(), even), torch.einsum("...ki,...i->...k", slope, odd)


def _weight_moves(w: Interval, u: Interval, v: Interval) -> Halves:
    reach = mul(aten.mul.Tensor, *(f.map(lambda part, d=d: part.unsqueeze(d)) for f, d in ((u, -1), (v, -2))))  # type: ignore[misc]
    high, low = cut(reach.upper), cut(-reach.lower)
    even, odd = _halves(w)
    return torch.einsum("kij,...ij->...k", even, high + low), torch.einsum("kij,...ij->...k", odd, high - low)
