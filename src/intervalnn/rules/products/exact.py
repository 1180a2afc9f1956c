"""Exact: the corner that matters, for every single product."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass

from torch import Tensor

from intervalnn.interval import Interval, cut
from intervalnn.rules.products.factors import Factor, Joined
from intervalnn.rules.products.forms import Product, Sides, Weight
from intervalnn.rules.products.layout import Layout, moving_part

__all__ = ["Corners"]


@dataclass(frozen=True, slots=True, eq=False)
class Corners:
    """Every single product at the corner that matters.

    Where ``c`` and ``x`` are never negative, ``w*x`` is largest at the weight's upper end ``u = W + U`` and least at
    the lower one ``l = W - D``, wherever ``x`` is. With ``u = u+ - u-`` and ``l = l+ - l-``::

        above = U*c + u+*a + u-*b
        below = D*c + l-*a + l+*b

    An input of any sign is the difference of two that are never negative, ``max(x, 0) - max(-x, 0)``. Each has its
    share of ``c``, ``a`` and ``b``, and of the second the ends change places. So inputs of any sign cost twelve
    products and not six, and bounds are looser than the best possible only where weight and input straddle zero.

    Attributes:
        weights: Those that ``c``, ``a`` and ``b`` multiply, above and below stacked; for inputs of any sign, those of
            the second part behind them.
        layout: How they are stacked.
        nonneg: Whether inputs are never negative.
        moving: First, and one past the last, of the inputs that have gaps; None if all may have.
    """

    weights: tuple[Weight, ...]
    layout: Layout
    nonneg: bool
    moving: tuple[int, int] | None

    @staticmethod
    def of(w: Interval, layout: Layout, *, nonneg: bool, moving: tuple[int, int] | None) -> Corners:
        """Return the form for a weight with two gaps."""
        lower, upper = (moving_part(end, layout.inputs, moving) for end in (w.lower, w.upper))
        lower_pos, lower_neg = (part.to(w.gap_dtype) for part in (cut(lower), cut(-lower)))
        upper_pos, upper_neg = (part.to(w.gap_dtype) for part in (cut(upper), cut(-upper)))
        up = (w.above, w.below), (upper_pos, lower_neg), (upper_neg, lower_pos)
        down = (w.below, w.above), (lower_pos, upper_neg), (lower_neg, upper_pos)
        stacked = tuple(layout.stack(*pair) for pair in (up if nonneg else (*up, *down)))
        return Corners(stacked, layout, nonneg, moving)

    def sides(self, product: Product, x: Factor) -> Sides:
        """Multiply point and gaps of ``x``, or of its two parts."""
        terms = zip(self._parts(x), self.weights, strict=True)
        both = functools.reduce(operator.add, (product(part.to(w.dtype), w) for part, w in terms))
        return self.layout.unstack(both)

    def _parts(self, x: Factor) -> tuple[Tensor, ...]:
        """Return ``c``, ``a`` and ``b`` of ``x``; for inputs of any sign of its part above zero, then of that below."""
        x = Interval.of(x) if isinstance(x, Tensor) else x
        c, (b, a) = x.point, self._gaps(x)
        if self.nonneg:
            return c, a, b
        positive = cut(c)
        still, kept = (moving_part(part, self.layout.output, self.moving) for part in (c, positive))
        up, down = cut(still + a) - kept, kept - cut(still - b)
        return positive, up, down, cut(-c), a - up, b - down

    def _gaps(self, x: Interval | Joined) -> tuple[Tensor, Tensor]:
        if isinstance(x, Interval):
            return x.below, x.above
        return x.gaps(x.parts if self.moving is None else x.moving)
