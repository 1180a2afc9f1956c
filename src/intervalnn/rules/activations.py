"""Activations that bend or turn, and limits that values are cut at."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, capped, cut
from intervalnn.rules.arithmetic import gap_dtype_for, least, most, point_of, still
from intervalnn.rules.kinks import ahead, beyond
from intervalnn.rules.monotone import Function, ends_of_all
from intervalnn.rules.sorting import values_and_indices
from intervalnn.table import Sign, apply, aten, rule


@rule(aten.celu, aten.selu, aten.hardtanh, aten.softshrink)
def bent(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a non-decreasing function that bends; the slope that counts at an end is the one ahead of it."""
    return still(x, _bent_ends(lambda end: fn(end, *args, **kwargs), x))


def _bent_ends(fn: Function, x: Interval) -> Interval:
    lower, upper = beyond(fn, x.lower, "lower"), beyond(fn, x.upper, "upper")
    return Interval.around(fn(x.point), lower, upper, x.gap_dtype)


@rule(aten.hardsigmoid, aten.relu6, sign="nonnegative")
def nonnegative_bent(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a non-decreasing function that bends, and whose values are never negative."""
    return bent(fn, x, *args, **kwargs)


@rule(aten.relu, sign="nonnegative")
def relu(fn: Function, x: Interval) -> Interval:
    """Cut the gaps at zero, without subtracting, so that nothing is lost to rounding."""
    point = fn(x.point)
    below = torch.where(x.point > 0, capped(x.below, point), 0.0).to(x.gap_dtype)
    above = torch.where(x.point >= 0, x.above, fn(x.upper)).to(x.gap_dtype)
    return Interval(point, below, above)


@rule(aten.leaky_relu)
def leaky_relu(fn: Function, x: Interval, slope: float = 0.01) -> Interval:
    """Scale the part of the gaps that lies below zero, for a slope of either sign."""
    point = fn(x.point, slope)
    if slope < 0:
        return still(x, Interval.around(point, *ahead(lambda x: _turned(fn, x, slope), x), x.gap_dtype))
    positive, negative = relu(aten.relu.default, x), relu(aten.relu.default, -x)  # both grow with x: the sum is exact
    return Interval(point, positive.below + slope * negative.above, positive.above + slope * negative.below)


def _turned(fn: Function, x: Interval, slope: float) -> tuple[Tensor, Tensor]:
    """Return the ends of a leaky unit that turns at zero, where it is least or, below it, largest."""
    nearest = torch.where(x.lower > 0, x.lower, capped(x.upper, 0.0))
    farthest = most(cut(x.upper), slope * capped(x.lower, 0.0))
    return fn(nearest, slope), farthest


@rule(aten.elu)
def elu(fn: Function, x: Interval, *scales: float) -> Interval:
    """Bound an exponential unit; it bends at zero, and turns there if just one of its branches falls."""
    alpha, scale, input_scale = (*scales, *[1.0] * (3 - len(scales)))
    if min(alpha * scale * input_scale, scale) >= 0:
        return bent(fn, x, *scales)
    rising = torch.where(x.point > 0, scale, alpha * scale * input_scale) >= 0

    def ends(x: Interval) -> tuple[Tensor, Tensor]:
        lower, upper = fn(x.lower, *scales), fn(x.upper, *scales)
        bend = torch.where((x.lower < 0) & (x.upper > 0), 0.0, upper)
        low = least(torch.where(rising, lower, upper), lower, upper, bend)
        return low, most(torch.where(rising, upper, lower), lower, upper, bend)

    return still(x, Interval.around(fn(x.point, *scales), *ahead(ends, x), x.gap_dtype))


@rule(aten.threshold)
def threshold(fn: Function, x: Interval, limit: float, value: float) -> Interval:
    """Bound ``x`` where it exceeds the limit and ``value`` elsewhere, which may lie on either side of it."""

    def ends(x: Interval) -> tuple[Tensor, Tensor]:
        lower, upper = fn(x.lower, limit, value), fn(x.upper, limit, value)
        jumps = (x.lower <= limit) & (x.upper > limit)
        return torch.where(jumps, capped(lower, limit), lower), torch.where(jumps, upper.clamp(min=value), upper)

    return Interval.around(fn(x.point, limit, value), *ahead(ends, x), x.gap_dtype)


def _softplus_sign(x: Any, beta: float = 1, limit: float = 20) -> Sign:
    return "nonnegative" if beta > 0 and limit >= 0 else "unknown"  # beyond the limit it is x itself


@rule(aten.softplus, sign=_softplus_sign)
def softplus(fn: Function, x: Interval, beta: float = 1, limit: float = 20) -> Interval:
    """Bound a softplus, which torch cuts short: it falls back to ``x`` itself at ``limit / beta``."""
    if beta <= 0:
        raise NotImplementedError(f"{fn} with beta {beta} is negative; softplus has bounds for beta > 0")
    edge = limit / beta
    top = (max(limit, 0.0) + math.log1p(math.exp(-abs(limit)))) / beta  # what it falls back from

    def ends(x: Interval) -> tuple[Tensor, Tensor]:
        lower, upper = fn(x.lower, beta, limit), fn(x.upper, beta, limit)
        jumps = (x.lower <= edge) & (x.upper > edge)
        return torch.where(jumps, capped(lower, edge), lower), torch.where(jumps, upper.clamp(min=top), upper)

    return still(x, Interval.around(fn(x.point, beta, limit), *ahead(ends, x), x.gap_dtype))


@rule(aten._prelu_kernel, takes=(0, 1))
def prelu(fn: Function, x: Interval | Tensor, weight: Interval | Tensor) -> Interval:
    """Bound ``max(x, 0) + weight * min(x, 0)``, the sum of a part in either sign of ``x``."""
    x = Interval.of(x)
    if isinstance(weight, Interval) and x.gap_dtype != weight.gap_dtype:
        x = Interval(x.point, x.below.to(weight.gap_dtype), x.above.to(weight.gap_dtype))
    positive = relu(aten.relu.default, x)
    negative = apply(aten.mul.Tensor, -relu(aten.relu.default, -x), weight)
    total = positive + negative
    return Interval(fn(x.point, point_of(weight)), total.below, total.above)


@rule(aten.log_sigmoid_forward, hidden={1: "is a buffer for the backward pass"})
def log_sigmoid_forward(fn: Callable[..., Any], x: Interval) -> tuple[Interval, None]:
    """Bound the logarithm of a sigmoid."""
    bounds, _ = values_and_indices(fn, x)
    return still(x, bounds), None


@rule(aten.clamp, aten.clamp_min, aten.clamp_max, takes=(0, 1, 2))
def clamp(fn: Function, x: Any, *limits: Any) -> Interval:
    """Bound a cut value, whose limits may be intervals too."""
    if isinstance(x, Interval) and not any(isinstance(limit, Interval | Tensor) for limit in limits):
        return _bent_ends(lambda end: fn(end, *limits), x)
    names = ("high",) if fn.overloadpacket is aten.clamp_max else ("low", "high")  # type: ignore[attr-defined]
    kept = {name: limit for name, limit in zip(names, limits, strict=False) if limit is not None}
    point = fn(*map(point_of, (x, *limits)))

    def ends(x: Any, *limits: Any) -> tuple[Tensor, Tensor]:
        return ends_of_all(lambda x, *limits: _clamped(x, **dict(zip(kept, limits, strict=True))), x, *limits)

    return Interval.around(point, *ahead(ends, x, *kept.values()), gap_dtype_for(point, x, *limits))


def _clamped(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """Return a clamped value; at a tie the gradient goes to one argument, torch's own clamp may give it to none."""
    x = x if low is None else most(x, low)
    return x if high is None else least(x, high)
