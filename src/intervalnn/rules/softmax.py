"""Softmax and its logarithm: bounds that use that the weights of a softmax add up to one."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from intervalnn.interval import Interval, capped, cut
from intervalnn.rules.arithmetic import around
from intervalnn.table import aten, rule

Value = Interval | Tensor


def _others(x: Tensor, dim: int) -> Tensor:
    """Return ``log(sum(exp(x)))`` over all other entries along ``dim``.

    Subtracting the entry's own term from the whole sum cancels where this term is the largest. In other libraries this
    cancellation made bounds unsound. So the largest term is left out before summing.
    """
    largest = torch.zeros_like(x, dtype=torch.bool).scatter(dim, x.argmax(dim, keepdim=True), True)
    total = torch.logsumexp(x, dim, keepdim=True)
    rest = _finite(torch.logsumexp(x.masked_fill(largest, -torch.inf), dim, keepdim=True))
    share = torch.softmax(x, dim).masked_fill(largest, 0.0)  # at most a half, then
    return torch.where(largest, rest, total + torch.log1p(-share))


def _finite(x: Tensor) -> Tensor:
    """Cut infinite entries, such as masked ones, to where they still decide everything and differences are numbers."""
    x = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    limit = torch.finfo(x.dtype).max / 8
    return x.clamp(-limit, limit)


def _margins(x: Interval, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``z`` with ``softmax(x) = sigmoid(z)``, and how far it reaches below and above.

    ``z_i`` is ``x_i`` less the logarithm of the others' sum, which do not depend on ``x_i``.
    """
    c = _finite(x.point)
    others = _others(c, dim)
    rise = _others(_finite(x.upper), dim) - others
    fall = others - _others(_finite(x.lower), dim)
    return c - others, x.below + cut(rise), x.above + cut(fall)


@rule(aten.softmax, aten._softmax, sign="nonnegative")
def softmax(fn: Any, x: Interval, dim: int, *args: Any) -> Interval:
    """Bound a softmax exactly: each entry against all others at their other ends."""
    point = fn(x.point, dim, *args)
    if point.numel() == 0:
        return Interval(point, x.below, x.above)
    z, fall, rise = _margins(x, dim)
    # sigmoid(z) - sigmoid(z - d) = sigmoid(z) sigmoid(d - z) (1 - exp(-d)): nothing cancels
    below = point * torch.sigmoid(fall - z) * -torch.expm1(-fall)
    above = torch.sigmoid(-z) * torch.sigmoid(z + rise) * -torch.expm1(-rise)
    return around(point, below, above, x)


@rule(aten.log_softmax, aten._log_softmax)
def log_softmax(fn: Any, x: Interval, dim: int, *args: Any) -> Interval:
    """Bound the logarithm of a softmax exactly."""
    point = fn(x.point, dim, *args)
    if point.numel() == 0:
        return Interval(point, x.below, x.above)
    z, fall, rise = _margins(x, dim)
    return around(point, _log_step(z - fall, z, fall), _log_step(z, z + rise, rise), x)


def _log_step(lower: Tensor, upper: Tensor, step: Tensor) -> Tensor:
    """Return ``log sigmoid(upper) - log sigmoid(lower)``, without cancelling where the step is small."""
    small = torch.log1p(torch.sigmoid(-upper) * torch.expm1(capped(step, 1.0)))
    return torch.where(step > 1.0, F.logsigmoid(upper) - F.logsigmoid(lower), small)
