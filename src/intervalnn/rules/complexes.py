"""Complex intervals, which are boxes: an interval for the real part, one for the imaginary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.kinks import norm_beyond
from intervalnn.table import apply, aten, complex_rule, rule

Value = Interval | Tensor


def has_complex(*values: Any) -> bool:
    """Say whether any of the values is complex."""
    return any(isinstance(v, complex) or (isinstance(v, Value) and v.dtype.is_complex) for v in values)


def parts(x: Any) -> tuple[Any, Any]:
    """Return the real and the imaginary part of a complex interval, a tensor or a number."""
    if isinstance(x, Interval):
        return x.map(torch.real), x.map(torch.imag)
    return x.real, x.imag


def box(point: Tensor, re: Interval, im: Interval) -> Interval:
    """Return the box around ``point`` with the gaps of two real intervals."""
    dtype = point.real.dtype
    sides = [[getattr(part, side).to(dtype).expand(point.shape) for part in (re, im)] for side in ("below", "above")]
    below, above = (torch.complex(*side) for side in sides)
    return Interval(point, below, above)


def boxed(fn: Any, z: Interval, re: Interval, im: Interval) -> Interval:
    """Return the box of ``fn`` with the gaps of two intervals, and none where ``z`` has none; as :func:`still` does."""
    bounds = box(fn(z.point), re, im)
    none = (z.below == 0) & (z.above == 0)
    gaps = (gap - torch.where(none, gap.detach(), 0.0) for gap in (bounds.below, bounds.above))
    return Interval(bounds.point, *gaps)


def above_zero(fn: Callable[[Tensor], Tensor], x: Tensor, at_zero: float) -> Tensor:
    """Return ``fn(x)``, and ``at_zero`` where ``x`` is not positive, without a derivative, which may be infinite."""
    none = x <= 0
    return torch.where(none, at_zero, fn(torch.where(none, 1.0, x)))


def complex_product(multiply: Callable[[Any, Any], Interval], x: Any, y: Any) -> tuple[Interval, Interval]:
    """Bound both parts of a product that is bilinear in real numbers; the parts of each factor are independent."""
    if not has_complex(x):
        re, im = parts(y)
        return multiply(x, re), multiply(x, im)
    if not has_complex(y):
        re, im = parts(x)
        return multiply(re, y), multiply(im, y)
    (xr, xi), (yr, yi) = parts(x), parts(y)
    return multiply(xr, yr) - multiply(xi, yi), multiply(xr, yi) + multiply(xi, yr)


@rule(aten.view_as_real, complexes=True)
def view_as_real(fn: Any, x: Interval) -> Interval:
    """Lay real and imaginary part side by side."""
    return x.map(fn)


@rule(aten.view_as_complex)
def view_as_complex(fn: Any, x: Interval) -> Interval:
    """Take pairs of numbers as complex ones."""
    gap = [part.to(x.dtype).contiguous() for part in (x.below, x.above)]
    return Interval(fn(x.point), fn(gap[0]), fn(gap[1]))


@rule(aten.complex, takes=(0, 1))
def make_complex(fn: Any, re: Value, im: Value) -> Interval:
    """Join a real and an imaginary part."""
    re, im = Interval.of(re), Interval.of(im)
    return box(fn(re.point, im.point), re, im)


@rule(aten.polar, takes=(0, 1))
def polar(fn: Any, size: Value, angle: Value) -> Interval:
    """Bound both parts of a number given by its modulus and its angle."""
    size, angle = Interval.of(size), Interval.of(angle)
    return box(fn(size.point, angle.point), *turned(size, angle))


def turned(size: Interval, angle: Interval) -> tuple[Interval, Interval]:
    """Bound both parts of numbers of these moduli at these angles, which do not depend on each other."""
    return size * apply(aten.cos.default, angle), size * apply(aten.sin.default, angle)


@rule(aten._conj, aten._conj_physical, aten.conj_physical, sign="keeps", complexes=True)
def conjugate(fn: Any, x: Interval) -> Interval:
    """Flip the imaginary part: its gaps change places."""
    if not has_complex(x):
        return x.map(fn)
    re, im = parts(x)
    return box(fn(x.point).resolve_conj(), re, -im)  # which a later view takes only as numbers


@rule(aten.real, aten.imag, sign="keeps", complexes=True)
def part(fn: Any, x: Interval) -> Interval:
    """Return the real or the imaginary part."""
    return x.map(fn)


@complex_rule(aten.mul)
def product(fn: Any, x: Any, y: Any) -> Interval:
    """Bound a product, each part by the corners of two products of real numbers."""
    point = (x.point if isinstance(x, Interval) else x) * (y.point if isinstance(y, Interval) else y)
    return box(point, *complex_product(lambda a, b: apply(aten.mul.Tensor, a, b), x, y))


@complex_rule(aten.abs)
def modulus(fn: Any, x: Interval) -> Interval:
    """Bound the modulus, which is non-decreasing in the size of both parts.

    With a step ``a`` of a size ``c`` in either part, ``|c + a| - |c| = sum(a (2c + a)) / (|c + a| + |c|)``.
    """
    re, im = (apply(aten.abs.default, part) for part in parts(x))

    def step(a: Tensor, b: Tensor) -> Tensor:
        total = _hypot(re.point + a, im.point + b) + _hypot(re.point, im.point)
        rise = a * (2 * re.point + a) + b * (2 * im.point + b)
        at_zero = total == 0
        return torch.where(at_zero, a + b, rise / torch.where(at_zero, 1.0, total))

    point, below = fn(x.point), -step(-re.below, -im.below)
    whole = ((re.below == re.point) & (im.below == im.point)) | (below > point)  # where the box contains zero
    farthest = norm_beyond(lambda sizes: torch.hypot(*sizes.unbind(-1)), torch.stack((re.upper, im.upper), -1), -1)
    above = torch.where(point == 0, farthest, step(re.above, im.above))
    return Interval(point, torch.where(whole, point + (below - below.detach()), below), above)


def _hypot(a: Tensor, b: Tensor) -> Tensor:
    """Return the square root of a sum of squares; its derivative at zero is one, where torch has none."""
    at_zero = (a == 0) & (b == 0)
    return torch.where(at_zero, a + b, torch.hypot(torch.where(at_zero, 1.0, a), b))
