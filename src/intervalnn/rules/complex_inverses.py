"""Inverse trigonometric and hyperbolic functions of complex numbers, by the parts of two of them.

Let ``z = x + iy``. The functions jump where their logarithms do, on the axes beyond one.

- The real part of ``asin z`` is odd in ``x``, rises with it, and its size falls as ``|y|`` rises.
- The imaginary part has the sign of ``y``, and its size rises with ``|x|`` and with ``|y|``.
- The real part of ``atanh z`` is odd in ``x``, with a peak at ``x**2 = 1 + y**2``, and its size falls as ``|y|`` rises.
- The imaginary part has the sign of ``y``. Its size rises with ``|x|``, and with ``|y|`` but for a valley at
  ``y**2 = x**2 - 1``.

The others follow by turns: ``asinh z = -i asin(iz)``, ``atan z = -i atanh(iz)`` and ``acos z = pi / 2 - asin z``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import most
from intervalnn.rules.complexes import boxed, parts
from intervalnn.rules.kinks import valued
from intervalnn.rules.odd import Ends, ends, height, odd, sizes
from intervalnn.table import aten, complex_rule

Part = Callable[[Tensor, Tensor], Tensor]


@complex_rule(aten.asin, aten.acos, aten.asinh)
def sines(fn: Any, z: Interval) -> Interval:
    """Bound ``asin z``, with ``acos z = pi / 2 - asin z`` and ``asinh z = -i asin(iz)``."""
    x, y = parts(z)
    if fn.overloadpacket is aten.asinh:
        return boxed(fn, z, _across_sine(y, x), _along_sine(y, x))
    re, im = _along_sine(x, y), _across_sine(x, y)
    return boxed(fn, z, -re, -im) if fn.overloadpacket is aten.acos else boxed(fn, z, re, im)


@complex_rule(aten.acosh)
def acosh(fn: Any, z: Interval) -> Interval:
    """Bound ``acosh z``, by the sizes of the parts of two others.

    Its real part is the size of the imaginary part of ``asin z``. Its imaginary part has the sign of ``y``, and the
    size of the real part of ``acos z``.
    """
    x, y = parts(z)
    return boxed(fn, z, _height(x, y), _turn(x, y))


@complex_rule(aten.atanh, aten.atan)
def tangents(fn: Any, z: Interval) -> Interval:
    """Bound ``atanh z``, with ``atan z = -i atanh(iz)``."""
    x, y = parts(z)
    if fn.overloadpacket is aten.atan:
        return boxed(fn, z, _across_tangent(y, x), _along_tangent(y, x))
    return boxed(fn, z, _along_tangent(x, y), _across_tangent(x, y))


def _along_sine(x: Interval, y: Interval) -> Interval:
    return odd(_part(torch.asin, "real"), ends(x), sizes(y), torch.ones_like(x.point, dtype=torch.bool))


def _across_sine(x: Interval, y: Interval) -> Interval:
    value, a = _part(torch.asin, "imag"), sizes(x)
    return _signed(y, value(a.point, y.point.abs()), lambda q: value(a.high, q.high), lambda q: value(a.low, q.low))


def _height(x: Interval, y: Interval) -> Interval:
    value, a, q = _part(torch.asin, "imag"), sizes(x), sizes(y)
    point, lower, upper = (value(*each) for each in zip(a, q, strict=True))
    return Interval.around(point, lower, upper)


def _turn(x: Interval, y: Interval) -> Interval:
    value = _part(torch.acos, "real")  # falls with x, and moves towards a quarter turn as |y| rises

    def highest(q: Ends) -> Tensor:
        return value(x.lower, torch.where(x.lower >= 0, q.high, q.low))

    def lowest(q: Ends) -> Tensor:
        return value(x.upper, torch.where(x.upper >= 0, q.low, q.high))

    return _signed(y, value(x.point, y.point.abs()), highest, lowest)


def _along_tangent(x: Interval, y: Interval) -> Interval:
    v, q = ends(x), sizes(y)

    def peak(low: Tensor, high: Tensor) -> Tensor:
        at = (1 + q.low.square()).sqrt()
        return height(lambda q: 0.5 * (1 / q).asinh(), q.low, (low < at) & (at < high))

    return odd(_part(torch.atanh, "real"), v, q, v.point.square() <= 1 + q.point.square(), peak=peak)


def _across_tangent(x: Interval, y: Interval) -> Interval:
    value, a = _part(torch.atanh, "imag"), sizes(x)
    rises = y.point.square() >= a.point.square() - 1

    def highest(q: Ends) -> Tensor:
        at_high, at_low = value(a.high, q.high), value(a.high, q.low)
        return most(torch.where(rises, at_high, at_low), at_high, at_low)

    def lowest(q: Ends) -> Tensor:
        past = a.low.square() > 1
        valley = torch.where(past, torch.where(past, a.low.square() - 1, 1.0).sqrt(), 0.0)
        return value(a.low, torch.where(valley > q.high, q.high, torch.where(valley > q.low, valley, q.low)))

    return _signed(y, value(a.point, y.point.abs()), highest, lowest)


def _part(fn: Callable[[Tensor], Tensor], name: str) -> Part:
    """Return one part of ``fn(x + iy)`` for ``y >= 0``, without a derivative where that is infinite, at one."""

    def value(x: Tensor, y: Tensor) -> Tensor:
        z = torch.complex(x, y + 0.0)  # which makes zero positive
        end = (x.abs() == 1) & (y == 0)
        smooth = _SMOOTH[fn](torch.where(end, 0.5, z))
        return valued(getattr(torch.where(end, smooth.detach(), smooth), name), getattr(fn(z), name))

    return value


def _asin(z: Tensor) -> Tensor:
    """Return ``asin z`` with the derivative above the axis, where torch's own has either sign."""
    root = (-(z - 1)).sqrt() * (z + 1).sqrt()
    return (1j * z + root).log() * -1j


_SMOOTH: dict[Any, Callable[[Tensor], Tensor]] = {
    torch.asin: _asin,
    torch.acos: lambda z: -_asin(z),
    torch.atanh: torch.atanh,
}


def _signed(
    y: Interval, point: Tensor, highest: Callable[[Ends], Tensor], lowest: Callable[[Ends], Tensor]
) -> Interval:
    """Bound a function with the sign of ``y``, and with a size of which the highest and the lowest value are known.

    Args:
        y: What has the sign; where it is zero, either sign may be meant, if it moves.
        point: The size at the point.
        highest: The highest size, for the sizes of ``y`` on one side of zero.
        lowest: The lowest one.
    """
    still = y.width == 0
    negative, positive = y.point.signbit() & still, ~y.point.signbit() & still

    def top(low: Tensor, high: Tensor, negative: Tensor) -> Tensor:
        below = (high < 0) | negative
        near = torch.where(below, -high, torch.where(low > 0, low, 0.0))
        q = Ends(point, near, torch.where(below, -low, high))
        return torch.where(below, -lowest(q), highest(q))

    at = torch.where(y.point.signbit(), -point, point)
    return Interval.around(at, -top(-y.upper, -y.lower, positive), top(y.lower, y.upper, negative))
