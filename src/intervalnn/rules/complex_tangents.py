"""The hyperbolic tangent of complex numbers, and the functions that are made of it.

With ``T = tanh x``, ``c = cos y`` and ``s = sin y``, the parts of ``tanh(x + iy)`` are

    T / (c**2 + s**2 T**2)    and    s c (1 - T**2) / (c**2 + s**2 T**2).

Both are odd. The first rises with ``T`` up to a peak, and its size falls as ``|c|`` rises. The second rises with ``y``
up to a peak, and again after each half turn, and its size falls as ``|T|`` rises. So :func:`intervalnn.rules.odd.odd`
bounds them, and the bounds are reached.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.complexes import boxed, parts
from intervalnn.rules.extrema import reaches
from intervalnn.rules.odd import Ends, ends, height, odd, over, size
from intervalnn.table import aten, complex_rule


@complex_rule(aten.tanh, aten.sigmoid, aten.tan)
def tangents(fn: Any, z: Interval) -> Interval:
    """Bound ``tanh z``, with ``sigmoid z = (1 + tanh(z / 2)) / 2`` and ``tan z = -i tanh(i z)``."""
    packet = fn.overloadpacket
    if packet is aten.tan:
        x, y = parts(z)
        return boxed(fn, z, _across(y, x), _along(y, x))
    half = 0.5 if packet is aten.sigmoid else 1.0
    x, y = parts(z * half)
    return boxed(fn, z, _along(x, y) * half, _across(x, y) * half)


def _along(x: Interval, y: Interval) -> Interval:
    """Bound the real part, with its peak of ``1 / |2 s c|`` at ``T = |c / s|``."""
    t = ends(x, torch.tanh)
    c = size(ends(y, torch.cos), (2 * y.point).sin() <= 0, reaches(y.lower, y.upper, math.pi / 2, math.pi))
    c = Ends(c.point, c.low, torch.where(reaches(y.lower, y.upper, 0.0, math.pi), 1.0, c.high))

    def value(t: Tensor, c: Tensor) -> Tensor:
        return over(t, c.square() + (1 - c.square()) * t.square())

    def peak(low: Tensor, high: Tensor) -> Tensor:
        s = (1 - c.low.square()).sqrt()
        reached = (low < high) & (low * s <= c.low) & (c.low <= high * s) & (c.low < s)
        return height(lambda c: 0.5 / (c * (1 - c.square()).sqrt()), c.low, reached)

    rises = c.point.square() >= (1 - c.point.square()) * t.point.square()
    return odd(value, t, c, rises, peak=peak)


def _across(x: Interval, y: Interval) -> Interval:
    """Bound the imaginary part, with its peaks of ``(1 - T**2) / |2 T|`` where ``tan y = 1 / |T|``."""
    t = ends(x, torch.tanh)
    t = size(t, t.point >= 0, (t.low <= 0) & (t.high >= 0))

    def value(y: Tensor, t: Tensor) -> Tensor:
        s, c, q = y.sin(), y.cos(), t.square()
        return over(s * c * (1 - q), c.square() + q * s.square())

    def peak(low: Tensor, high: Tensor) -> Tensor:
        reached = reaches(low, high, math.pi / 2 - t.low.atan(), math.pi)
        return height(lambda t: 0.5 * (1 - t.square()) / t, t.low, reached)

    rises = y.point.cos().abs() >= t.point * y.point.sin().abs()
    return odd(value, ends(y), t, rises, positive=lambda y: (2 * y).sin() >= 0, peak=peak)
