"""Complex intervals, which are boxes: an interval for the real part, one for the imaginary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.kinks import norm_beyond
from intervalnn.table import apply, aten, rule

Value = Interval | Tensor


def has_complex(*values: Any) -> bool:
    """Say whether any of the values is complex."""
    return any(isinstance(v, complex) or (isinstance(v, Value) and v.dtype.is_complex) for v in values)


def parts(x: Any) -> tuple[Any, Any]:
    """Return the real and the imaginary part; of an interval, a tensor or a number."""
    if not isinstance(x, Value):
        return x.real, x.imag
    if not x.dtype.is_complex:
        zero = torch.zeros_like(x.point if isinstance(x, Interval) else x)
        return x, zero
    if isinstance(x, Tensor):
        return x.real, x.imag
    return x.map(torch.real), x.map(torch.imag)


def join(re: Interval, im: Interval) -> Interval:
    """Return the box of two real intervals."""
    below, above = ((r.to(re.dtype), i.to(re.dtype)) for r, i in ((re.below, im.below), (re.above, im.above)))
    return Interval(torch.complex(re.point, im.point), torch.complex(*below), torch.complex(*above))


def complex_product(multiply: Callable[[Any, Any], Interval], x: Any, y: Any) -> Interval:
    """Bound a product, bilinear in real numbers, for complex ones; the parts are independent."""
    (xr, xi), (yr, yi) = parts(x), parts(y)
    re = Interval.of(multiply(xr, yr)) - Interval.of(multiply(xi, yi))
    im = Interval.of(multiply(xr, yi)) + Interval.of(multiply(xi, yr))
    return join(re, im)


@rule(aten.view_as_real)
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
    return join(Interval.of(re), Interval.of(im))


@rule(aten._conj, aten._conj_physical, aten.conj_physical)
def conjugate(fn: Any, x: Interval) -> Interval:
    """Flip the imaginary part: its gaps change places."""
    re, im = parts(x)
    gaps = join(re, -im)
    return Interval(fn(x.point), gaps.below, gaps.above)


@rule(aten.real, sign="keeps")
def real(fn: Any, x: Interval) -> Interval:
    """Return the real part."""
    return x.map(fn)


@rule(aten.imag)
def imag(fn: Any, x: Interval) -> Interval:
    """Return the imaginary part."""
    return x.map(fn)


def complex_abs(x: Interval) -> Interval:
    """Bound the modulus, which is non-decreasing in the size of both parts."""
    re, im = (apply(aten.abs.default, part) for part in parts(x))
    farthest = norm_beyond(lambda sizes: torch.hypot(*sizes.unbind(-1)), torch.stack((re.upper, im.upper), -1), -1)
    return Interval.around(x.point.abs(), torch.hypot(re.lower, im.lower), farthest)
