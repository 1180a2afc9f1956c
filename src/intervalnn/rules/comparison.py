"""Comparisons and what is made of their answers, each of which may change inside an interval."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import point_of
from intervalnn.rules.discrete_values import Discrete
from intervalnn.table import aten, rule

Value = Interval | Discrete | Tensor | float
_ROUNDINGS = 4  # of a point and a gap: an end this close to the other value may lie on either side of it


def has_ends(x: Value) -> Any:
    """Say where the ends of a value are numbers. Elsewhere any answer is possible, unless the value has no gaps."""
    if not isinstance(x, Interval):
        return True
    return (x.lower.isfinite() & x.upper.isfinite()) | (x.width == 0)


def reach(x: Value) -> tuple[Any, Any]:
    """Return both ends, moved outward by a bound on their rounding."""
    if isinstance(x, Discrete):
        return x.lower, x.upper
    if not isinstance(x, Interval):
        return x, x
    if x.dtype.is_complex:
        raise NotImplementedError("comparisons of complex intervals; compare their real and imaginary parts")
    slack = torch.finfo(x.dtype).eps * x.point.abs() + torch.finfo(x.gap_dtype).eps * x.width
    slack = torch.where(x.width == 0, 0.0, _ROUNDINGS * slack)
    return x.lower - slack, x.upper + slack


def _answer(point: Tensor, surely: Tensor, possibly: Tensor, known: Any) -> Discrete:
    """Return an answer from where it surely and where it possibly is yes."""
    known = torch.as_tensor(known, device=point.device)
    return Discrete(point, point & surely & known, point | possibly | known.logical_not())


@rule(aten.gt, aten.ge, takes=(0, 1), discrete=True)
def more(fn: Any, x: Value, y: Value) -> Discrete:
    """Bound whether ``x`` is more than ``y``."""
    (x_low, x_high), (y_low, y_high) = reach(x), reach(y)
    return _answer(fn(point_of(x), point_of(y)), fn(x_low, y_high), fn(x_high, y_low), has_ends(x) & has_ends(y))


@rule(aten.lt, aten.le, takes=(0, 1), discrete=True)
def less(fn: Any, x: Value, y: Value) -> Discrete:
    """Bound whether ``x`` is less than ``y``."""
    (x_low, x_high), (y_low, y_high) = reach(x), reach(y)
    return _answer(fn(point_of(x), point_of(y)), fn(x_high, y_low), fn(x_low, y_high), has_ends(x) & has_ends(y))


@rule(aten.eq, takes=(0, 1), discrete=True)
def equal(fn: Any, x: Value, y: Value) -> Discrete:
    """Bound whether two values are the same: possibly where they overlap, surely where both are fixed."""
    (x_low, x_high), (y_low, y_high) = reach(x), reach(y)
    overlap = _le(x_low, y_high) & _le(y_low, x_high)
    point = fn(point_of(x), point_of(y))
    fixed = torch.as_tensor(_fixed(x) & _fixed(y), device=point.device)
    return _answer(point, fixed, overlap, fixed | (has_ends(x) & has_ends(y)))


def _le(x: Any, y: Any) -> Any:
    return x <= y


def _fixed(x: Value) -> Any:
    if isinstance(x, Interval):
        return x.width == 0
    return x.sure if isinstance(x, Discrete) else True


@rule(aten.ne, takes=(0, 1), discrete=True)
def unequal(fn: Any, x: Value, y: Value) -> Discrete:
    """Bound whether two values differ."""
    return opposite(equal(aten.eq.Tensor if isinstance(y, Interval | Discrete | Tensor) else aten.eq.Scalar, x, y))


def opposite(x: Discrete) -> Discrete:
    """Return the opposite answer."""
    return Discrete(~x.point, ~x.upper, ~x.lower)


@rule(aten.isnan, aten.isinf, aten.isfinite, aten.isposinf, aten.isneginf)
def is_finite(fn: Any, x: Interval) -> Discrete:
    """Bound whether a value is finite; between finite ends it surely is."""
    point = fn(x.point)
    return _answer(point, point, point, has_ends(x))


@rule(aten.signbit)
def signbit(fn: Any, x: Interval) -> Discrete:
    """Bound whether a value is negative, or a negative zero."""
    lower, upper = reach(x)
    return _answer(fn(x.point), upper < 0, lower <= 0, has_ends(x))


def _truth(x: Value) -> Discrete:
    """Return whether a value is not zero."""
    if isinstance(x, Discrete) and x.dtype == torch.bool:
        return x
    if isinstance(x, Interval | Discrete):
        return unequal(aten.ne.Scalar, x, 0)
    assert isinstance(x, Tensor)
    return Discrete.of(x.bool())


@rule(aten.logical_and, aten.logical_or, aten.bitwise_and, aten.bitwise_or, takes=(0, 1), discrete=True)
def both_or_either(fn: Any, x: Value, y: Value) -> Discrete:
    """Bound what holds if both, or either, of two do."""
    first, second = _truth_values(fn, x, y)
    combine = torch.logical_and if "and" in str(fn) else torch.logical_or
    parts = zip(*((v.point, v.lower, v.upper) for v in (first, second)), strict=True)
    return Discrete(*(combine(a, b) for a, b in parts))


@rule(aten.logical_xor, aten.bitwise_xor, takes=(0, 1), discrete=True)
def one_of_two(fn: Any, x: Value, y: Value) -> Discrete:
    """Bound what holds if just one of two does."""
    first, second = _truth_values(fn, x, y)
    point = torch.logical_xor(first.point, second.point)
    return _answer(point, point, point, first.sure & second.sure)


@rule(aten.logical_not, aten.bitwise_not, discrete=True)
def negation(fn: Any, x: Value) -> Discrete:
    """Bound the opposite of an answer."""
    (first,) = _truth_values(fn, x)
    return opposite(first)


def _truth_values(fn: Any, *values: Any) -> list[Discrete]:
    """Return the answers to combine; bitwise operations on whole numbers have no rule."""
    tensors = [torch.as_tensor(v) if isinstance(v, bool | int) else v for v in values]
    if "bitwise" in str(fn) and any(v.dtype != torch.bool for v in tensors):
        raise NotImplementedError(f"{fn} of whole numbers that may change inside an interval; it takes truth values")
    return [_truth(v) for v in tensors]


@rule(aten.any, aten._is_any_true, aten.all, aten._is_all_true, discrete=True)
def any_or_all(fn: Any, x: Value, *args: Any, **kwargs: Any) -> Discrete:
    """Bound whether any or all of many answers are yes."""
    return _truth(x).map(lambda part: fn(part, *args, **kwargs))


@rule(aten.bucketize, takes=(0, 1))
def bucketize(fn: Any, x: Value, boundaries: Value, **kwargs: Any) -> Discrete:
    """Bound which bucket a value falls into: no lower for larger values, nor for lower boundaries."""
    point, *ends = (fn(a, b, **kwargs) for a, b in _placed(x, boundaries))
    return _bucket(point, ends, x, boundaries)


@rule(aten.searchsorted, takes=(0, 1))
def searchsorted(fn: Any, boundaries: Value, x: Value, **kwargs: Any) -> Discrete:
    """Bound where a value belongs among sorted ones."""
    point, *ends = (fn(b, a, **kwargs) for a, b in _placed(x, boundaries))
    return _bucket(point, ends, x, boundaries)


def _placed(x: Value, boundaries: Value) -> list[tuple[Any, Any]]:
    (x_low, x_high), (b_low, b_high) = reach(x), reach(boundaries)
    return [(point_of(x), point_of(boundaries)), (x_low, b_high), (x_high, b_low)]


def _bucket(point: Tensor, ends: list[Tensor], x: Value, boundaries: Value) -> Discrete:
    """Return the bucket between those of the ends; the whole range where an end is not a number."""
    size = point_of(boundaries).size(-1)
    lower, upper = (torch.as_tensor(end).clamp(0, size) for end in ends)
    known = torch.as_tensor(has_ends(x), device=point.device)
    every = boundaries if isinstance(boundaries, Interval) else None
    if every is not None:
        known = known & torch.as_tensor(has_ends(every)).all(-1, keepdim=every.dim() > 1)
    return Discrete.around(point, torch.where(known, lower, 0), torch.where(known, upper, size))
