"""Forms: how far a product reaches, from what its first factor is and how its second one was split.

A form holds the weights of its products, made once for many calls, and knows what each of them multiplies. Weights lie
in ``[W - D, W + U]`` and inputs in ``[c - b, c + a]``. How far an input may be above and below zero is
``x+ = max(c + a, 0)`` and ``x- = max(b - c, 0)``. All terms are non-negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from intervalnn.interval import Interval, Symmetric
from intervalnn.rules.mirrored import mirrored
from intervalnn.rules.products.factors import Factor, by_part, reach, sum_and_difference, upper
from intervalnn.rules.products.layout import Layout

__all__ = [
    "Form",
    "InputsMove",
    "Mirror",
    "OneGap",
    "OneSided",
    "Pair",
    "Product",
    "Sides",
    "Sum",
    "Weight",
    "WeightsMove",
]

Product = Callable[[Tensor, Any], Tensor]
Sides = tuple[Tensor, Tensor]  # how far a product reaches above its point, and how far below
Weight = Any  # a tensor, or the same as a GPU takes it


class Form(Protocol):
    """How far a product reaches."""

    def sides(self, product: Product, x: Factor) -> Sides:
        """Return how far the product of ``x`` reaches above its point, and how far below."""


class Mirror(Protocol):
    """Weights of two results that are the sum and the difference of the same two products: a :class:`Pair`, or one."""

    @property
    def dtype(self) -> torch.dtype:
        """Data type of the products."""

    def sides(self, product: Product, total: Tensor, difference: Tensor) -> Sides:
        """Return both results, from ``p + q`` and ``p - q``."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two weights ``P`` and ``Q``, and two products for both results, not four.

    The results are the sum and the difference of these products::

        P*p + Q*q = even + odd      even = (P + Q)/2 * (p + q)
        Q*p + P*q = even - odd      odd  = (P - Q)/2 * (p - q)

    The smaller of the two results may be lost in the rounding of the larger. So :func:`mirrored` makes both larger by
    as much as that can be.

    Attributes:
        even: ``(P + Q)/2``.
        odd: ``(P - Q)/2``.
    """

    even: Weight
    odd: Weight

    @property
    def dtype(self) -> torch.dtype:
        """Data type of the products."""
        return self.even.dtype  # type: ignore[no-any-return]

    def sides(self, product: Product, total: Tensor, difference: Tensor) -> Sides:
        """Return both results, from ``p + q`` and ``p - q``."""
        even = product(total.to(self.dtype), self.even)
        odd = product(difference.to(self.dtype), self.odd)
        return mirrored(even, odd)


@dataclass(frozen=True, slots=True, eq=False)
class InputsMove:
    """Inputs move, at the point weight.

    With ``W = W+ - W-``::

        above = W+*a + W-*b
        below = W-*a + W+*b

    Attributes:
        weights: The pair of ``W+`` and ``W-``.
        moving_only: Whether the weights are those of a joined factor's moving parts alone.
    """

    weights: Mirror
    moving_only: bool

    @staticmethod
    def of(w: Tensor, *, moving_only: bool) -> InputsMove:
        """Return the form for a point weight: the sum of ``W+`` and ``W-`` is ``|W|``, their difference ``W``."""
        return InputsMove(Pair(0.5 * w.abs(), 0.5 * w), moving_only)  # sparse rows have no w / 2

    def sides(self, product: Product, x: Factor) -> Sides:
        """Multiply the gaps of ``x``."""
        dtype = self.weights.dtype
        total, difference = by_part(x, lambda part: sum_and_difference(part, dtype), moving=self.moving_only)
        return self.weights.sides(product, total, difference)


@dataclass(frozen=True, slots=True, eq=False)
class WeightsMove:
    """Weights move, at the farthest input.

    An input is ``x+`` at most and ``-x-`` at least::

        above = U*x+ + D*x-
        below = D*x+ + U*x-

    Attributes:
        weights: The pair of ``U`` and ``D``.
    """

    weights: Mirror

    @staticmethod
    def of(w: Interval) -> WeightsMove:
        """Return the form for a weight with two gaps."""
        return WeightsMove(Pair((w.above + w.below) / 2, (w.above - w.below) / 2))

    def sides(self, product: Product, x: Factor) -> Sides:
        """Multiply how far ``x`` is from zero."""
        return self.weights.sides(product, *by_part(x, reach))


@dataclass(frozen=True, slots=True, eq=False)
class OneSided:
    """Weights move, at the farthest input, which is never negative.

    With ``x- = 0``::

        above = U*x+
        below = D*x+

    Attributes:
        weights: ``U`` and ``D``, stacked for one call.
        layout: How they are stacked.
    """

    weights: Weight
    layout: Layout

    @staticmethod
    def of(w: Interval, layout: Layout) -> OneSided:
        """Return the form for a weight with two gaps."""
        return OneSided(layout.stack(w.above, w.below), layout)

    def sides(self, product: Product, x: Factor) -> Sides:
        """Multiply the upper end of ``x``."""
        dtype = self.weights.dtype
        (high,) = by_part(x, lambda part: (upper(part).to(dtype),))
        return self.layout.unstack(product(high, self.weights))


@dataclass(frozen=True, slots=True, eq=False)
class OneGap:
    """Weights move as far down as up, at the farthest input.

    With ``U = D`` one product is both::

        above = below = D*(x+ + x-)

    Attributes:
        weights: ``D``.
        nonneg: Whether inputs are never negative: ``x- = 0``.
    """

    weights: Weight
    nonneg: bool

    @staticmethod
    def of(w: Symmetric, *, nonneg: bool) -> OneGap:
        """Return the form for a weight with one gap for both sides."""
        return OneGap(w.above, nonneg)

    def sides(self, product: Product, x: Factor) -> Sides:
        """Multiply how far ``x`` is from zero."""
        (far,) = by_part(x, self.far)
        both = product(far, self.weights)
        return both, both

    def far(self, x: Interval | Tensor) -> tuple[Tensor]:
        """Return ``x+ + x-``."""
        return ((upper(x) if self.nonneg else reach(x)[0]).to(self.weights.dtype),)


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """Weights and inputs move: what either brings is added up.

    The weights move at the farthest input, and the inputs at the point weight::

        w*x - W*c = (w - W)*x + W*(x - c)

    Attributes:
        weights: What the moving weights bring.
        inputs: What the moving inputs bring.
    """

    weights: WeightsMove | OneSided | OneGap
    inputs: InputsMove

    def sides(self, product: Product, x: Factor) -> Sides:
        """Add both up."""
        above, below = self.weights.sides(product, x)
        more_above, more_below = self.inputs.sides(product, x)
        return above + more_above, below + more_below
