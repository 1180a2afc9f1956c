"""Softmax and attention: bounds that use that the weights of a softmax add up to one."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from intervalnn.interval import Interval, capped, cut
from intervalnn.rules.arithmetic import around, least, point_of
from intervalnn.rules.products.matrices import bound_product
from intervalnn.rules.products.split import split
from intervalnn.table import apply, aten, rule

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


def weighted_mean(point: Tensor, weights: Interval, values: Value) -> Interval:
    """Bound ``weights @ values``, of which ``point`` is one, for weights ``>= 0`` that add up to one in each row.

    Only differences between values matter then, so each column is shifted by its middle. A weighted mean never leaves
    the range of its values.
    """
    still, values = isinstance(values, Tensor), Interval.of(values)
    middle = (values.lower.amin(-2, keepdim=True) + values.upper.amax(-2, keepdim=True)) / 2
    middle = middle.to(values.dtype)  # any will do, and half precision with bfloat16 gaps has bounds in float32
    centred = Interval(values.point - middle, values.below, values.above)
    mean = bound_product(torch.matmul, weights, split(centred.point if still else centred))
    below = least(mean.below, cut(point - values.lower.amin(-2, keepdim=True)))
    above = least(mean.above, cut(values.upper.amax(-2, keepdim=True) - point))
    return Interval(point, below, above)


@rule(aten.scaled_dot_product_attention, takes=(0, 1, 2, 3))
def attention(
    fn: Any, query: Value, key: Value, value: Value, mask: Any = None, dropout: float = 0.0, is_causal: bool = False,
    *, scale: float | None = None, enable_gqa: bool = False,
) -> Interval:  # fmt: skip
    """Bound attention as scores, softmax and weighted mean; the point is the fused kernel's own."""
    if dropout > 0:
        raise NotImplementedError(f"{fn} with dropout draws random numbers; call model.eval() and pass none")
    options = {"scale": scale, "enable_gqa": enable_gqa}
    point = fn(*map(point_of, (query, key, value, mask)), dropout, is_causal, **options)
    if not point.numel() or not value.numel():
        return Interval.of(point)
    if enable_gqa:
        key, value = (_repeat(v, query.size(-3) // v.size(-3)) for v in (key, value))
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    if isinstance(query, Interval) or isinstance(key, Interval):
        turned = key.map(lambda p: p.mT) if isinstance(key, Interval) else key.mT
        scores: Value = bound_product(torch.matmul, query, split(turned)) * factor
    else:
        scores = query @ key.mT * factor
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        mask = allowed
    weights = _masked_softmax(scores, mask)
    if isinstance(weights, Interval):
        bounds = weighted_mean(point, weights, value)
    else:
        assert isinstance(value, Interval)  # else no interval would have reached this rule
        bounds = bound_product(torch.matmul, weights, split(value, by_interval=False))
    return around(point, bounds.below, bounds.above, query, key, value, mask)


def _repeat(x: Value, times: int) -> Value:
    if isinstance(x, Interval):
        return x.map(lambda part: part.repeat_interleave(times, -3))
    return x.repeat_interleave(times, -3)


def _masked_softmax(scores: Value, mask: Any) -> Value:
    if isinstance(mask, Tensor) and mask.dtype == torch.bool:
        if isinstance(scores, Interval):
            point = scores.point.masked_fill(~mask, -torch.inf)
            below, above = (gap.masked_fill(~mask, 0.0) for gap in (scores.below, scores.above))
            scores = Interval(point, below, above)
        else:
            scores = scores.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        scores = apply(aten.add.Tensor, scores, mask) if isinstance(scores, Interval) else scores + mask
    if isinstance(scores, Interval):
        return softmax(aten._safe_softmax.default, scores, -1)
    return aten._safe_softmax.default(scores, -1)  # type: ignore[no-any-return]
