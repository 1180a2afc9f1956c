"""Attention: bounds that use that the weights of a softmax add up to one."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut
from intervalnn.rules.arithmetic import around, least, point_of
from intervalnn.rules.products.matrices import bound_product
from intervalnn.rules.products.split import split
from intervalnn.rules.softmax import softmax
from intervalnn.table import apply, aten, rule

Value = Interval | Tensor


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
