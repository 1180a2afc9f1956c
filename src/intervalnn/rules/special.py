"""Special functions that are not monotone everywhere: gamma and Bessel functions, entropy, sinc."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, capped, cut
from intervalnn.rules.arithmetic import (
    absolute,
    corners,
    ends_of,
    gap_dtype_for,
    known_ends,
    least,
    most,
    point_of,
    still,
)
from intervalnn.rules.extrema import valley
from intervalnn.rules.kinks import is_trained, norm_beyond, slopes_ahead
from intervalnn.rules.monotone import decreasing, monotone
from intervalnn.table import aten, rule

Function = Callable[..., Tensor]
Value = Interval | Tensor

# From solving f'(x) = 0 to 20 digits with mpmath.
LGAMMA_MINIMUM = 1.4616321449683623413
I1E_MAXIMUM = 1.5451272579925426862


@rule(aten.i0, sign="nonnegative")
def even_valley(fn: Function, x: Interval) -> Interval:
    """Bound an even function that is least at zero."""
    return valley(fn, x, 0.0)


@rule(aten.special_i0e, sign="nonnegative")
def even_hill(fn: Function, x: Interval) -> Interval:
    """Bound an even function that is largest at zero, where it bends."""
    return slopes_ahead(lambda x: hill(fn, x, 0.0), x)


def hill(fn: Function, x: Interval, argmax: float) -> Interval:
    """Bound a function that rises up to its maximum and falls from there."""
    turned = valley(lambda z: -fn(z), x, argmax)
    return Interval(fn(x.point), turned.above, turned.below)


@rule(aten.special_i1e)
def scaled_bessel(fn: Function, x: Interval) -> Interval:
    """Bound an odd function that rises between its minimum and its maximum and falls outside of them."""
    lower, upper = x.lower, x.upper
    ends, rising = (fn(lower), fn(upper)), x.point.abs() <= I1E_MAXIMUM
    high = most(torch.where(rising, ends[1], ends[0]), *ends)
    low = least(torch.where(rising, ends[0], ends[1]), *ends)
    top, bottom = (fn(lower.new_tensor(place)) for place in (I1E_MAXIMUM, -I1E_MAXIMUM))
    high = torch.where((lower <= I1E_MAXIMUM) & (upper >= I1E_MAXIMUM) & (x.width > 0), top, high)
    low = torch.where((lower <= -I1E_MAXIMUM) & (upper >= -I1E_MAXIMUM) & (x.width > 0), bottom, low)
    return still(x, Interval.around(fn(x.point), low, high, x.gap_dtype))


def _endless(bounds: Interval, where: Tensor) -> Interval:
    below, above = (torch.where(where | gap.isnan(), torch.inf, gap) for gap in (bounds.below, bounds.above))
    return Interval(bounds.point, below, above)


@rule(aten.special_entr)
def entropy(fn: Function, x: Interval) -> Interval:
    """Bound ``-x log(x)``, largest at ``1 / e``."""
    return hill(fn, x, math.exp(-1))


@rule(aten.lgamma)
def lgamma(fn: Function, x: Interval) -> Interval:
    """Bound the logarithm of the gamma function: least at one place above zero, and convex between its poles below."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    positive = wide.lower > 0
    shown = (
        torch.where(positive, part, safe) for part, safe in ((wide.point, 1.0), (wide.below, 0.0), (wide.above, 0.0))
    )
    bounds = valley(fn, Interval(*shown), LGAMMA_MINIMUM)
    return _between_poles(fn, x, positive, bounds, torch.digamma(wide.point))


@rule(aten.digamma)
def digamma(fn: Function, x: Interval) -> Interval:
    """Bound a function that rises between its poles, which are zero and the negative whole numbers."""
    return _endless(monotone(fn, x), _has_pole(x))


@rule(aten.polygamma, takes=(1,))
def polygamma(fn: Any, n: int, x: Interval) -> Interval:
    """Bound a derivative of the digamma function: monotone above zero, and between poles monotone or convex."""

    def own(z: Tensor) -> Tensor:
        result: Tensor = fn(n, z)
        return result

    if n % 2 == 0:
        return _endless(monotone(own, x), _has_pole(x))
    positive = x.lower > 0
    lower, upper = own(torch.where(positive, x.upper, 1.0)), own(torch.where(positive, x.lower, 1.0))
    falling = Interval.around(torch.where(positive, own(x.point), upper), lower, upper, x.gap_dtype)
    return _between_poles(own, x, positive, falling, torch.polygamma(n + 1, x.point))


def _has_pole(x: Interval) -> Tensor:
    lower, upper = known_ends(x)
    return (lower <= 0) & (torch.ceil(lower) <= upper) & (x.width > 0)


def _between_poles(fn: Function, x: Interval, positive: Tensor, bounds: Interval, slope: Tensor) -> Interval:
    """Bound a function that is convex between poles at which it is infinite; where it is positive, by ``bounds``.

    A convex function lies above its tangent: f(x + t) >= f(x) + slope t.
    """
    lower, upper = fn(x.lower), fn(x.upper)
    highest = most(torch.where(slope >= 0, upper, lower), lower, upper)
    tangent = torch.where(slope >= 0, slope * x.below, -slope * x.above)
    pole, point = _has_pole(x), fn(x.point)
    above = torch.where(pole, torch.inf, Interval.around(point, point, highest).above)
    below = torch.where(pole, torch.inf, tangent)
    dtype = x.gap_dtype
    below, above = (
        torch.where(positive, own.to(dtype), gap.to(dtype))
        for own, gap in ((bounds.below, below), (bounds.above, above))
    )
    return still(x, Interval(point, below, above))


@rule(aten.special_xlogy, aten.special_xlog1py, aten.xlogy, takes=(0, 1))
def scaled_logarithm(fn: Function, x: Any, y: Any) -> Interval:
    """Bound ``x log(y)``, linear in one and monotone in the other, by its corners; without bounds for ``y < 0``."""
    shift = 1.0 if fn.overloadpacket is aten.special_xlog1py else 0.0  # type: ignore[attr-defined]
    point = fn(point_of(x), point_of(y))
    (low, *_) = ends_of(y)
    rises = [torch.as_tensor(v, device=point.device) for v in (point_of(y) + shift >= 1, point_of(x) >= 0)]
    lower, upper = corners(fn, [ends_of(x), ends_of(y)], rises)
    bounds = Interval.around(point, lower, upper, gap_dtype_for(point, x, y))
    moves = sum(v.width for v in (x, y) if isinstance(v, Interval)) > 0
    return _endless(bounds, torch.as_tensor(low + shift < 0, device=point.device) & moves)


@rule(aten.igamma, takes=(1,), sign="nonnegative")
def lower_gamma(fn: Function, a: Tensor, x: Interval) -> Interval:
    """Bound an incomplete gamma function, which rises from zero; torch has no derivative in its first argument."""
    return _endless(monotone(lambda z: fn(a, z), x), (x.lower < 0) & (x.width > 0))


@rule(aten.igammac, takes=(1,), sign="nonnegative")
def upper_gamma(fn: Function, a: Tensor, x: Interval) -> Interval:
    """Bound the rest of an incomplete gamma function, which falls."""
    return _endless(decreasing(lambda z: fn(a, z), x), (x.lower < 0) & (x.width > 0))


_FLAT = 0.25  # below which the derivative of a sinc is taken from its series


@rule(aten.sinc)
def sinc(fn: Function, x: Interval) -> Interval:
    """Bound ``sin(pi x) / (pi x)`` by its slope at the point, and by its extrema.

    The second derivative is at most pi^2 / 3 in size, and the first at most 1.3707. So the result moves by at most
    ``|slope| g + pi^2 g^2 / 6`` for a gap ``g``.
    """
    point, slope = fn(x.point), _sinc_slope(x.point)
    below, above = x.below.to(point.dtype), x.above.to(point.dtype)

    def reach(fall: Tensor, rise: Tensor) -> Tensor:
        towards = torch.where(slope >= 0, rise, fall)
        far = most(towards, fall, rise)
        return capped(slope.abs() * towards + math.pi**2 / 6 * far.square(), 1.3707 * far)

    high, low = point + reach(below, above), point - reach(above, below)
    return still(x, Interval.around(point, low.clamp(min=-0.21723362821122166), capped(high, 1.0), x.gap_dtype))


def _sinc_slope(x: Tensor) -> Tensor:
    u = math.pi * x
    near = u.abs() < _FLAT
    square = u.square()
    series = u * (-1 / 3 + square * (1 / 30 + square * (-1 / 840 + square / 45360)))
    safe = torch.where(near, 1.0, u)
    return math.pi * torch.where(near, series, (safe * torch.cos(safe) - torch.sin(safe)) / safe.square())


@rule(aten.copysign, takes=(0, 1))
def copysign(fn: Function, x: Any, y: Any) -> Interval:
    """Bound the size of one value with the sign of another, which may be either where that has both."""
    return slopes_ahead(lambda x, y: _signed(fn, x, y), x, y)


def _signed(fn: Function, x: Any, y: Any) -> Interval:
    point = fn(point_of(x), point_of(y))
    size = absolute(aten.abs.default, x) if isinstance(x, Interval) else Interval.of(x.abs())
    negative = torch.signbit(torch.as_tensor(point_of(y), device=point.device))
    below, above = torch.where(negative, size.above, size.below), torch.where(negative, size.below, size.above)
    if isinstance(y, Interval):
        either = ~((y.lower > 0) | (y.upper < 0) | (y.width == 0))
        across = size.point + size.upper
        below = torch.where(either, torch.where(negative, size.above, across), below)
        above = torch.where(either, torch.where(negative, across, size.above), above)
    dtype = gap_dtype_for(point, x, y)
    return Interval(point, cut(below.to(dtype)), cut(above.to(dtype)))


@rule(aten.hypot, takes=(0, 1), sign="nonnegative")
def hypot(fn: Function, x: Value, y: Value) -> Interval:
    """Bound a distance from zero, non-decreasing in the sizes of both."""
    first, second = (absolute(aten.abs.default, Interval.of(v)) for v in (x, y))
    point = fn(point_of(x), point_of(y))
    lower = _distance(fn, _size(first.lower), _size(second.lower))
    farthest = first.upper, second.upper
    sizes = torch.stack(torch.broadcast_tensors(*farthest), -1)
    upper = norm_beyond(lambda sizes: fn(*sizes.unbind(-1)), sizes, -1, [is_trained(end) for end in farthest])
    return Interval.around(point, lower, upper, gap_dtype_for(point, x, y))


def _size(lower: Tensor) -> Tensor:
    return torch.where(lower > 0, lower, 0.0)


def _distance(fn: Function, x: Tensor, y: Tensor) -> Tensor:
    """Return the distance of two sizes from zero; where both are zero, their sum, which has a derivative there."""
    none = (x == 0) & (y == 0)
    return torch.where(none, x + y, fn(torch.where(none, 1.0, x), torch.where(none, 1.0, y)))
