"""Elementary functions of complex numbers, each a real formula in the real and the imaginary part.

A box bounds the parts of a result one by one. Each formula is written in variables that do not depend on each other,
so that its bounds are reached.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import still
from intervalnn.rules.complexes import above_zero, boxed, has_complex, modulus, parts, turned
from intervalnn.rules.odd import ends, odd, sizes
from intervalnn.table import apply, aten, complex_rule, rule


def _of(name: str, x: Interval) -> Interval:
    bounds: Interval = apply(getattr(aten, name).default, x)
    return bounds


@complex_rule(aten.exp, aten.exp2, aten.expm1)
def exp(fn: Any, z: Interval) -> Interval:
    """Bound ``exp(x) (cos y + i sin y)``."""
    re, im = parts(z * math.log(2) if fn.overloadpacket is aten.exp2 else z)
    return boxed(fn, z, *turned(_of("exp", re), im))


@complex_rule(aten.log, aten.log2, aten.log10, aten.log1p)
def log(fn: Any, z: Interval) -> Interval:
    """Bound ``log |z| + i angle(z)``, without bounds where ``z`` may be zero."""
    inner = z + 1.0 if fn.overloadpacket is aten.log1p else z
    scale = 1 / {aten.log2: math.log(2), aten.log10: math.log(10)}.get(fn.overloadpacket, 1.0)
    size = modulus(aten.abs.default, inner)
    at, lower, upper = (above_zero(torch.log, end, -torch.inf) for end in ends(size))
    return boxed(fn, z, Interval.around(at, lower, upper) * scale, angle(aten.angle.default, inner) * scale)


@rule(aten.angle, complexes=True)
def angle(fn: Any, x: Interval) -> Interval:
    """Bound an angle; that of a real number is 0, or half a turn where it is negative."""
    if has_complex(x):
        re, im = parts(x)
        bounds = apply(aten.atan2.default, im, re)
        return Interval(fn(x.point), bounds.below, bounds.above)
    limits = torch.where(x.upper.isnan(), 0.0, fn(x.upper)), torch.where(x.lower.isnan(), math.pi, fn(x.lower))
    return still(x, Interval.around(fn(x.point), *limits, x.gap_dtype))


@complex_rule(aten.sgn)
def sgn(fn: Any, z: Interval) -> Interval:
    """Bound ``z / |z|``: each part rises with itself, and its size falls with that of the other."""
    re, im = parts(z)
    return boxed(fn, z, _share(re, im), _share(im, re))


def _share(x: Interval, y: Interval) -> Interval:
    """Bound ``x / sqrt(x**2 + y**2)``."""

    def value(x: Tensor, y: Tensor) -> Tensor:
        squares = x.square() + y.square()
        return x / torch.where(squares == 0, 1.0, squares).sqrt()

    return odd(value, ends(x), sizes(y), torch.ones_like(x.point, dtype=torch.bool))


@complex_rule(aten.sqrt)
def sqrt(fn: Any, z: Interval) -> Interval:
    """Bound the root that lies on the right of the complex plane.

    Its real part rises with the real part of ``z`` and with the size of the imaginary one. Its imaginary part rises
    with the imaginary one, and jumps with its sign where the real one is negative; its size falls with the real one.
    """
    re, im = parts(z)
    y, (at_re, at_im) = sizes(im), _root(re.point, im.point)
    left = (re.lower <= 0) & (y.low == 0)
    real = Interval.around(at_re, torch.where(left, 0.0, _root(re.lower, y.low)[0]), _root(re.upper, y.high)[0])
    zero, moves = im.lower == 0, im.width > 0
    positive = (im.lower > 0) | (zero & ~moves & ~im.lower.signbit())
    low = _root(torch.where(positive, re.upper, re.lower), torch.where(zero & moves, -0.0, im.lower))[1]
    high = _root(torch.where(im.upper >= 0, re.lower, re.upper), im.upper)[1]
    return boxed(fn, z, real, Interval.around(at_im, low, high))


def _root(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return both parts of a root; at zero their derivative is one, where torch's is NaN."""
    at_zero = (x == 0) & (y == 0)
    root = torch.complex(torch.where(at_zero, 1.0, x), y).sqrt()
    return torch.where(at_zero, x, root.real), torch.where(at_zero, y, root.imag)


@complex_rule(aten.sinh, aten.cosh, aten.sin, aten.cos)
def waves(fn: Any, z: Interval) -> Interval:
    """Bound products of a wave of one part and a hyperbolic function of the other.

    So ``sinh z = sinh x cos y + i cosh x sin y`` and ``cosh z = cosh x cos y + i sinh x sin y``;
    ``sin z = sin x cosh y + i cos x sinh y`` and ``cos z = cos x cosh y - i sin x sinh y``.
    """
    re, im = parts(z)
    own, other = {
        aten.sinh: ("sinh", "cosh"), aten.cosh: ("cosh", "sinh"), aten.sin: ("sin", "cos"), aten.cos: ("cos", "sin"),
    }[fn.overloadpacket]  # fmt: skip
    first, second = ("cos", "sin") if own.endswith("h") else ("cosh", "sinh")
    imag = _of(other, re) * _of(second, im)
    return boxed(fn, z, _of(own, re) * _of(first, im), -imag if fn.overloadpacket is aten.cos else imag)


@complex_rule(aten.std.correction)
def std(fn: Any, z: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a standard deviation, from those of the real and of the imaginary parts."""
    bounds = apply(aten.hypot.default, *(apply(fn, part, *args, **kwargs) for part in parts(z)))
    return Interval(fn(z.point, *args, **kwargs), bounds.below, bounds.above)


@complex_rule(aten.var_mean.correction, aten.std_mean.correction)
def spread_and_mean(fn: Any, z: Interval, dims: Any = None, **kwargs: Any) -> tuple[Interval, Interval]:
    """Bound a variance or a standard deviation, and a mean."""
    points = fn(z.point, dims, **kwargs)
    own = aten.var.correction if fn is aten.var_mean.correction else aten.std.correction
    spread = apply(own, z, dims, **kwargs)
    gaps = (torch.mean(gap, dims or None, kwargs.get("keepdim", False)) for gap in (z.below, z.above))
    return Interval(points[0], spread.below, spread.above), Interval(points[1], *gaps)


@complex_rule(aten.var.correction, aten.var.dim)
def var(fn: Any, z: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a variance: that of the real parts and that of the imaginary ones."""
    re, im = (apply(fn, part, *args, **kwargs) for part in parts(z))
    return Interval(fn(z.point, *args, **kwargs), re.below + im.below, re.above + im.above)
