"""Quotients and powers of complex numbers.

Two bounds hold for them, and for each side the tighter one is taken. The direct one follows the formula. The centred
one is that of the mean value: ``f(z) - f(c) = d (z - c)``, where ``d`` is a mean of the derivatives between ``c`` and
``z``, and so lies in any box around these. It is exact to first order, so the best one for small gaps.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.complexes import above_zero, box, boxed, has_complex, modulus, parts, turned
from intervalnn.rules.kinks import is_trained
from intervalnn.rules.odd import ends, height, odd, over, sizes
from intervalnn.table import apply, aten, complex_rule


def _point(x: Any) -> Any:
    return x.point if isinstance(x, Interval) else x


def _steps(z: Interval) -> Interval:
    """Return how far ``z`` may move, as an interval around zero."""
    return Interval(torch.zeros_like(z.point), z.below, z.above)


def _tighter(x: Interval, y: Interval) -> Interval:
    """Return the smaller gap of two bounds for each side; where both are equal, the gradient goes to the first."""
    sides = []
    for a, b in ((x.below, y.below), (x.above, y.above)):
        a, b = (torch.view_as_real(gap) for gap in (a, b))
        a, b = (torch.where(gap.isnan(), torch.inf, gap) for gap in (a, b))
        sides.append(torch.view_as_complex(torch.where(b < a, b, a)))
    return Interval(x.point, *sides)


@complex_rule(aten.square)
def square(fn: Any, z: Interval) -> Interval:
    """Bound ``x**2 - y**2 + 2 i x y``; called for a product of ``z`` by itself too, which torch rounds otherwise."""
    re, im = parts(z)
    squares = (apply(aten.square.default, part) for part in (re, im))
    point = fn(z.point, z.point) if fn is aten.mul.Tensor else fn(z.point)
    return box(point, next(squares) - next(squares), re * im * 2.0)


@complex_rule(aten.reciprocal)
def reciprocal(fn: Any, z: Interval) -> Interval:
    """Bound ``(x - iy) / (x**2 + y**2)``, without bounds where ``z`` may be zero."""
    re, im = parts(z)
    bounds = boxed(fn, z, _inverse(re, im), -_inverse(im, re))
    zero = (re.lower <= 0) & (re.upper >= 0) & (im.lower <= 0) & (im.upper >= 0)
    return _endless(zero & (re.width + im.width > 0), bounds)


def _inverse(x: Interval, y: Interval) -> Interval:
    """Bound ``x / (x**2 + y**2)``, which has a peak of ``1 / |2 y|`` where both are equal."""
    v, q = ends(x), sizes(y)

    def peak(low: Tensor, high: Tensor) -> Tensor:
        return height(lambda q: 0.5 / q, q.low, (low < high) & (low <= q.low) & (q.low <= high))

    return odd(lambda x, y: over(x, x.square() + y.square()), v, q, v.point.abs() <= q.point, peak=peak)


def _endless(where: Tensor, bounds: Interval) -> Interval:
    everything = torch.full((), complex(torch.inf, torch.inf), dtype=bounds.dtype, device=bounds.device)
    return Interval(bounds.point, *(torch.where(where, everything, gap) for gap in (bounds.below, bounds.above)))


@complex_rule(aten.div)
def quotient(fn: Any, x: Any, y: Any, rounding_mode: None = None) -> Interval:
    """Bound a quotient; without bounds where the divisor may be zero.

    Around the quotient ``q`` of the points, ``x / y - q = (dx - q dy) / y``.
    """
    point = _point(x) / _point(y)
    if not has_complex(y):
        return box(point, *(apply(aten.div.Tensor, part, y) for part in parts(x)))
    if not isinstance(y, Interval):
        return _around(point, x * (1 / y if isinstance(y, Tensor) or y != 0 else torch.nan))
    inverse = reciprocal(aten.reciprocal.default, y)
    direct = centred = apply(aten.mul.Tensor, inverse, x)
    centred = -_steps(y) * (inverse * point)
    if isinstance(x, Interval):
        centred = _steps(x) * inverse + centred
    return _around(point, _tighter(centred, direct))


def _around(point: Tensor, bounds: Interval) -> Interval:
    return Interval(point, bounds.below.expand(point.shape), bounds.above.expand(point.shape))


@complex_rule(aten.pow)
def power(fn: Any, base: Any, exponent: Any) -> Interval:
    """Bound a power: ``exp(exponent * log(base))``, more tightly where the exponent is one number."""
    point = fn(_point(base), _point(exponent))
    if isinstance(base, Interval) and not isinstance(exponent, Interval | Tensor):
        return _around(point, _fixed_power(_complex(base, point.dtype), exponent))
    if isinstance(base, Interval):
        logarithm = apply(aten.log.default, _complex(base, point.dtype))
    else:
        logarithm = torch.as_tensor(base, dtype=point.dtype, device=point.device).log()
    bounds = apply(aten.exp.default, apply(aten.mul.Tensor, logarithm, exponent))
    moves = sum((v.below + v.above).abs() for v in (base, exponent) if isinstance(v, Interval))
    nothing = (moves == 0) & (bounds.below + bounds.above).isnan()  # a power of zero, whose logarithm is infinite
    return _around(point, bounds.map(lambda part: torch.where(nothing, 0.0, part)))


def _complex(x: Interval, dtype: torch.dtype) -> Interval:
    return x.map(lambda part: part.to(dtype))


_OWN: dict[float, Any] = {2: aten.square.default, -1: aten.reciprocal.default, 0.5: aten.sqrt.default}


def _fixed_power(z: Interval, p: Any) -> Interval:
    if isinstance(p, complex) and p.imag == 0:
        p = p.real
    if not isinstance(p, complex) and p in _OWN:
        return apply(_OWN[p], z)  # type: ignore[no-any-return]
    if p in (0, 1):
        return z.map(lambda part: part * p)
    endless = _derivative_ends(z, p)
    slope: Interval = apply(aten.mul.Tensor, _direct_power(_moved_to_one(z, endless), p - 1), p)
    return _tighter(_endless(endless, _steps(z) * slope), _direct_power(z, p))


def _is_whole(p: complex) -> bool:
    return p.imag == 0 and float(p.real).is_integer()


def _derivative_ends(z: Interval, p: complex) -> Tensor:
    """Say where a power has no derivative: at zero, or where the angle may jump if it is not whole."""
    re, im = parts(z)
    opens = torch.ones_like(re.width, dtype=torch.bool) if is_trained(z.below + z.above) else re.width + im.width > 0
    left: Tensor = (re.lower <= 0) & (im.lower <= 0) & (im.upper >= 0) & opens
    if not _is_whole(p):
        return left
    return left & (re.upper >= 0) if p.real < 0 else torch.zeros_like(left)


def _moved_to_one(z: Interval, where: Tensor) -> Interval:
    """Replace some entries by one, so that entries that are not used have a finite derivative."""
    return Interval(torch.where(where, 1.0, z.point), *(torch.where(where, 0.0, gap) for gap in (z.below, z.above)))


def _direct_power(z: Interval, p: complex) -> Interval:
    """Bound ``|z|**a exp(-b t)`` turned by ``a t + b log |z|``, for the angle ``t`` of ``z`` and ``p = a + ib``.

    If ``p`` is whole, this is done for ``-z`` where that is nearer to zero.
    """
    a, b = float(p.real), float(p.imag)
    left = z.upper.real < 0
    if _is_whole(p):
        gaps = torch.where(left, z.above, z.below), torch.where(left, z.below, z.above)
        z = Interval(torch.where(left, -z.point, z.point), *gaps)
    size, angle = modulus(aten.abs.default, z), apply(aten.angle.default, z)
    raised, phase = _raised(size, a), angle * a
    if b:
        raised, phase = raised * apply(aten.exp.default, angle * -b), phase + _logarithm(size) * b
        none = (size.lower <= 0) & (size.width > 0)
        phase = Interval(phase.point, *(torch.where(none, 2 * math.pi, gap) for gap in (phase.below, phase.above)))
    re, im = turned(raised, phase)
    bounds = box(torch.complex(re.point, im.point), re, im)
    return bounds * torch.where(left, -1.0, 1.0) if _is_whole(p) and a % 2 else bounds


def _raised(size: Interval, p: float) -> Interval:
    zero = 0.0 if p >= 0 else torch.inf
    at, low, high = (above_zero(lambda x: x**p, end, zero) for end in ends(size))
    return Interval.around(at, low, high) if p >= 0 else Interval.around(at, high, low)


def _logarithm(size: Interval) -> Interval:
    at, low, high = (above_zero(torch.log, end, 0.0) for end in ends(size))
    return Interval.around(at, low, high)


@complex_rule(aten.rsqrt)
def rsqrt(fn: Any, z: Interval) -> Interval:
    """Bound one over a root."""
    bounds = _fixed_power(z, -0.5)
    return Interval(fn(z.point), bounds.below, bounds.above)
