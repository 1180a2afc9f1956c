"""Functions that never decrease, or never increase, in any of their inputs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, capped, cut
from intervalnn.rules.answers import Discrete
from intervalnn.rules.arithmetic import gap_dtype_for, known_ends, least, most, point_of, still, unmoved
from intervalnn.rules.kinks import ahead, beyond
from intervalnn.table import Sign, apply, aten, rule

Function = Callable[..., Tensor]
INDICES = "is an index, which an interval does not have: which entry is largest may change inside it"


@rule(
    aten.tanh, aten.log, aten.log2, aten.log10, aten.log1p,
    aten.asin, aten.atan, aten.sinh, aten.asinh, aten.atanh, aten.erf, aten.erfinv, aten.expm1,
    aten.hardshrink, aten.log_sigmoid, aten.floor, aten.ceil, aten.round,
    aten.trunc, aten.special_ndtr, aten.special_ndtri, aten.special_log_ndtr, aten.special_i1,
)  # fmt: skip
def monotone(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a function of each entry alone that is non-decreasing."""
    return still(x, _ends(fn, x, *args, **kwargs))


@rule(aten.logit)
def logit(fn: Function, x: Interval, eps: float | None = None) -> Interval:
    """Bound the inverse of a sigmoid, of values cut to lie between ``eps`` and ``1 - eps``."""
    if eps is not None and eps > 0.5:
        raise NotImplementedError(f"{fn} with eps {eps} falls in places; logit has bounds for eps up to a half")
    return monotone(fn, x, eps)


def _ends(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    lower, upper = fn(x.lower, *args, **kwargs), fn(x.upper, *args, **kwargs)
    return Interval.around(fn(x.point, *args, **kwargs), lower, upper, x.gap_dtype)


@rule(
    aten.sigmoid, aten.exp, aten.exp2, aten.acosh,
    sign="nonnegative",
)  # fmt: skip
def nonnegative(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a non-decreasing function whose values are never negative."""
    return monotone(fn, x, *args, **kwargs)


@rule(aten.sqrt, sign="nonnegative")
def sqrt(fn: Function, x: Interval) -> Interval:
    """Bound a root; where a gap opens from zero, its endless slope would make a gradient of zero one that is none."""

    def root(end: Tensor) -> Tensor:
        return torch.where(end == 0, end, fn(torch.where(end == 0, 1.0, end)))

    return still(x, Interval.around(fn(x.point), root(x.lower), root(x.upper), x.gap_dtype))


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


@rule(
    aten.amax, aten.amin, aten.median.default, aten.max.default, aten.min.default, sign="keeps",
)  # fmt: skip
def keeps_sign(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a function of many entries that is non-decreasing in each, and no less than the least of them."""
    return _ends(fn, x, *args, **kwargs)


@rule(aten.nanmedian.default, sign="keeps")
def nanmedian(fn: Function, x: Interval) -> Interval:
    """Bound a median that passes over what is not a number; an end that is none may lie anywhere."""
    point, lower, upper = (fn(part) for part in (x.point, *known_ends(x)))
    return Interval.around(point, lower, upper, x.gap_dtype)


@rule(aten.logsumexp, aten.logcumsumexp, sign="keeps")
def log_of_sum(fn: Function, x: Interval, *args: Any) -> Interval:
    """Bound the logarithm of a sum of exponentials along a dimension."""
    moves = x.width.cumsum(*args) if fn.overloadpacket is aten.logcumsumexp else x.width.sum(*args)  # type: ignore[attr-defined]
    return unmoved(moves == 0, _ends(fn, x, *args))


@rule(aten.max_pool1d, aten.max_pool2d, aten.max_pool3d, sign="keeps")
def max_pool(fn: Function, x: Interval, kernel: list[int], *rest: Any) -> Interval:
    """Bound the largest entry of each window; where compiled, entry by entry, lest both ends are written out first."""
    if torch.compiler.is_dynamo_compiling() and _apart(kernel, *rest):
        return _ends(lambda end: largest(end, kernel), x)
    if torch.compiler.is_exporting():  # other runtimes pass over what is not a number
        lower, upper = (fn(end, kernel, *rest) for end in known_ends(x))
        return Interval.around(fn(x.point, kernel, *rest), lower, upper, x.gap_dtype)
    return _ends(fn, x, kernel, *rest)


def _apart(
    kernel: list[int], stride: Any = (), padding: Any = (0,), dilation: Any = (1,), ceil_mode: bool = False
) -> bool:
    """Say whether windows lie side by side, and are small."""
    edges = set(padding) == {0} and set(dilation) == {1} and not ceil_mode
    return edges and list(stride) in ([], list(kernel)) and math.prod(kernel) <= 8


def largest(x: Tensor, kernel: list[int]) -> Tensor:
    """Return the largest entry of each window, where windows lie side by side."""
    for dim, size in enumerate(reversed(kernel), start=1):
        x = x.narrow(-dim, 0, x.size(-dim) // size * size)
    views = [x]
    for dim, size in enumerate(kernel, start=x.dim() - len(kernel)):
        views = [view[(slice(None),) * dim + (slice(at, None, size),)] for view in views for at in range(size)]
    return functools.reduce(torch.maximum, views)


@rule(aten.acos, aten.erfc, aten.rsqrt, aten.special_erfcx)
def decreasing(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a function that is non-increasing: the ends change places."""
    lower, upper = fn(x.upper, *args, **kwargs), fn(x.lower, *args, **kwargs)
    return still(x, Interval.around(fn(x.point, *args, **kwargs), lower, upper, x.gap_dtype))


@rule(aten.relu, sign="nonnegative")
def relu(fn: Function, x: Interval) -> Interval:
    """Cut the gaps at zero, without subtracting, so that nothing is lost to rounding."""
    point = fn(x.point)
    below = torch.where(x.point > 0, capped(x.below, point), 0.0).to(x.gap_dtype)
    above = torch.where(x.point >= 0, x.above, fn(x.upper)).to(x.gap_dtype)
    return Interval(point, below, above)


@rule(aten.sign, aten.sgn)
def sign(fn: Function, x: Interval) -> Interval:
    """Bound a sign; of an end that is not a number, either one."""
    lower, upper = x.lower, x.upper
    low, high = torch.where(lower.isnan(), -1.0, fn(lower)), torch.where(upper.isnan(), 1.0, fn(upper))
    return Interval.around(fn(x.point), low, high, x.gap_dtype)


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


@rule(aten.nan_to_num)
def nan_to_num(fn: Function, x: Interval, *values: float | None) -> Interval:
    """Carry finite intervals; others may take any of the values that stand for infinity, and stay without bounds."""
    finite = x.lower.isfinite() & x.upper.isfinite() | (x.width == 0)
    below, above = (torch.where(finite, gap, torch.inf) for gap in (x.below, x.above))
    return Interval(fn(x.point, *values), below, above)


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


@rule(aten.clamp, aten.clamp_min, aten.clamp_max, takes=(0, 1, 2))
def clamp(fn: Function, x: Any, *limits: Any) -> Interval:
    """Bound a cut value, whose limits may be intervals too."""
    if isinstance(x, Interval) and not any(isinstance(limit, Interval | Tensor) for limit in limits):
        return _bent_ends(lambda end: fn(end, *limits), x)
    names = ("high",) if fn.overloadpacket is aten.clamp_max else ("low", "high")  # type: ignore[attr-defined]
    kept = {name: limit for name, limit in zip(names, limits, strict=False) if limit is not None}
    point = fn(*map(point_of, (x, *limits)))

    def ends(x: Any, *limits: Any) -> tuple[Tensor, Tensor]:
        return _ends_of_all(lambda x, *limits: _clamped(x, **dict(zip(kept, limits, strict=True))), x, *limits)

    return Interval.around(point, *ahead(ends, x, *kept.values()), gap_dtype_for(point, x, *limits))


def _clamped(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """Return a cut value whose gradient goes to one of those that are equal; torch's own may go to none."""
    x = x if low is None else most(x, low)
    return x if high is None else least(x, high)


@rule(aten.maximum, aten.minimum, aten.fmax, aten.fmin, aten.max.other, aten.min.other, takes=(0, 1), sign="keeps")
def extremum_of_two(fn: Function, x: Any, y: Any) -> Interval:
    """Bound the larger or the smaller of two values."""
    point = fn(point_of(x), point_of(y))
    ends = ahead(lambda x, y: _ends_of_all(fn, x, y), x, y)
    return Interval.around(point, *ends, gap_dtype_for(point, x, y))


@rule(aten.logaddexp, aten.logaddexp2, takes=(0, 1))
def logaddexp(fn: Function, x: Any, y: Any) -> Interval:
    """Bound the logarithm of a sum of exponentials."""
    point = fn(point_of(x), point_of(y))
    return Interval.around(point, *_ends_of_all(fn, x, y), gap_dtype_for(point, x, y))


def _ends_of_all(fn: Function, *args: Any) -> tuple[Tensor, Tensor]:
    """Return both ends of a function that is non-decreasing in every argument."""
    lower = fn(*(a.lower if isinstance(a, Interval) else a for a in args))
    upper = fn(*(a.upper if isinstance(a, Interval) else a for a in args))
    for x in (a for a in args if isinstance(a, Interval)):  # fmax and fmin would lose what is not a number
        lower, upper = torch.where(x.below.isnan(), torch.nan, lower), torch.where(x.above.isnan(), torch.nan, upper)
    return lower, upper


@rule(
    aten.cummax, aten.cummin, aten.median.dim, aten.nanmedian.dim,
    aten.max_pool2d_with_indices, aten.max_pool3d_with_indices, aten.adaptive_max_pool1d,
    aten.adaptive_max_pool2d, aten.adaptive_max_pool3d, aten.sort, aten.kthvalue, sign="keeps", hidden={1: INDICES},
)  # fmt: skip
def values_and_indices(fn: Callable[..., Any], x: Interval, *args: Any, **kwargs: Any) -> tuple[Interval, None]:
    """Bound the values, each of which is non-decreasing in every input; the indices are hidden.

    An end that is not a number, which torch ranks last, may have any rank.
    """
    point, lower, upper = (fn(part, *args, **kwargs)[0] for part in (x.point, *known_ends(x)))
    return Interval.around(point, lower, upper, x.gap_dtype), None


@rule(aten.topk, sign="keeps", hidden={1: INDICES})
def topk(
    fn: Callable[..., Any], x: Interval, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Interval, None]:
    """Bound the largest or smallest values, in order."""
    if not sorted:
        raise NotImplementedError(f"{fn} with sorted=False leaves open which value comes where; pass sorted=True")
    return values_and_indices(fn, x, k, dim, largest)


@rule(aten.log_sigmoid_forward, hidden={1: "is a buffer for the backward pass"})
def log_sigmoid_forward(fn: Callable[..., Any], x: Interval) -> tuple[Interval, None]:
    """Bound the logarithm of a sigmoid."""
    bounds, _ = values_and_indices(fn, x)
    return still(x, bounds), None


@rule(aten._to_copy, aten.to, sign="keeps", complexes=True)
def convert(fn: Function, x: Interval, *args: Any, **kwargs: Any) -> Interval | Discrete:
    """Bound a change of dtype or device; rounding is monotone."""
    point = fn(x.point, *args, **kwargs)
    if not (point.is_floating_point() or point.is_complex()):
        return _whole(point, x, lambda end: fn(end, *args, **kwargs))
    if x.dtype.is_complex and not point.is_complex():  # which drops the imaginary part
        x = x.map(torch.real)
    if point.dtype == x.dtype or point.is_complex():
        gap_dtype = point.dtype if point.is_complex() else x.gap_dtype
        return Interval(point, x.below.to(point.device, gap_dtype), x.above.to(point.device, gap_dtype))
    bounds = Interval.around(point, fn(x.lower, *args, **kwargs), fn(x.upper, *args, **kwargs))
    if point.dtype.itemsize > x.dtype.itemsize:  # exact, and the gaps keep their digits
        bounds = Interval(point, x.below.to(point.device), x.above.to(point.device))
    dtype = x.gap_dtype if x.gap_dtype != x.dtype else point.dtype
    return Interval(point, bounds.below.to(dtype), bounds.above.to(dtype))


def _whole(point: Tensor, x: Interval, fn: Function) -> Discrete:
    """Bound a cast to whole numbers, which may be any where an end is not a number or out of their range."""
    if point.dtype == torch.bool:
        return Discrete.around(point, *((x.lower > 0) | (x.upper < 0), (x.lower != 0) | (x.upper != 0)))
    least, largest = torch.iinfo(point.dtype).min, torch.iinfo(point.dtype).max
    lower, upper = x.lower, x.upper
    inside = (lower > least) & (upper < largest) | (x.width == 0)
    lower, upper = (fn(torch.where(inside, end, 0.0)) for end in (lower, upper))
    return Discrete.around(point, torch.where(inside, lower, least), torch.where(inside, upper, largest))
