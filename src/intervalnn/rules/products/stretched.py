"""Stretched: a weight whose inputs may each count for less or for more, and how far products with it reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut
from intervalnn.rules.products.factors import Factor, Joined, point_of
from intervalnn.rules.products.forms import Mirror, Pair, Product, Sides
from intervalnn.rules.products.layout import Layout

__all__ = ["Stretched", "StretchedInputs"]


@dataclass(frozen=True, slots=True, eq=False)
class Stretched:
    """A weight, and by which shares the entries of each input channel may shrink and grow.

    A product with it is one with the plain weight, of inputs that carry these shares as gaps. So it costs two
    products beside the point's own, where gaps of every single weight cost four.

    Attributes:
        point: The weight, input channels along its second dimension.
        shrink: Between 0 and 1, of a shape that broadcasts with ``point``: an entry may become smaller by this share.
        grow: At least 0: an entry may become larger by this share.
    """

    point: Tensor
    shrink: Tensor
    grow: Tensor

    def interval(self, dtype: torch.dtype | None = None) -> Interval:
        """Return the interval around each entry.

        Example:
            >>> w = torch.tensor([[1.0, -1.0]])
            >>> bounds = Stretched(w, shrink=torch.tensor([[0.5]]), grow=torch.tensor([[0.25]])).interval()
            >>> bounds.lower, bounds.upper
            (tensor([[ 0.5000, -1.2500]]), tensor([[ 1.2500, -0.5000]]))
        """
        size, negative = self.point.abs(), self.point < 0
        below, above = (
            (torch.where(negative, *shares) * size).to(dtype or self.point.dtype)
            for shares in ((self.grow, self.shrink), (self.shrink, self.grow))
        )
        return Interval(self.point, below, above)


@dataclass(frozen=True, slots=True, eq=False)
class StretchedInputs:
    """Inputs move, and each may shrink by a share ``s <= 1`` or grow by a share ``g``, at the point weight.

    Times a factor between ``1 - s`` and ``1 + g``, an input in ``[l, u]`` with gaps ``b`` and ``a`` reaches exactly::

        above: a + g*max(u, 0) + s*max(-u, 0)
        below: b + s*max(l, 0) + g*max(-l, 0)

    Attributes:
        weights: The pair of ``W+`` and ``W-``, as in :class:`~intervalnn.rules.products.forms.InputsMove`.
        shrink: The shares ``s``, along the channels of the input.
        grow: The shares ``g``.
        layout: Where the channels of the input are.
        nonneg: Whether inputs are never negative.
    """

    weights: Mirror
    shrink: Tensor
    grow: Tensor
    layout: Layout
    nonneg: bool

    @staticmethod
    def of(w: Stretched, layout: Layout, *, nonneg: bool, kernel: Callable[[Tensor], Tensor]) -> StretchedInputs:
        """Return the form for a stretched weight, of which ``kernel`` makes what is multiplied."""
        size, own = kernel(w.point.abs()), kernel(w.point)
        along = [-1] + [1] * layout.spatial
        shrink, grow = (share.flatten().repeat(layout.groups).view(along) for share in (w.shrink, w.grow))
        return StretchedInputs(Pair(size / 2, own / 2), shrink, grow, layout, nonneg)

    def sides(self, product: Product, x: Factor) -> Sides:
        """Multiply the gaps of ``x`` times its factors."""
        return self.weights.sides(product, *self._sum_and_difference(x))

    def _sum_and_difference(self, x: Factor) -> Sides:
        if not isinstance(x, Joined):
            return self._stretch(x, self.shrink, self.grow)
        shares = [(self.shrink, self.grow)] * len(x.parts)
        if x.dim == self.layout.output:
            sizes = [point_of(part).size(x.dim) for part in x.parts]
            shares = list(zip(self.shrink.split(sizes), self.grow.split(sizes), strict=True))
        made = [self._stretch(part, *own) for part, own in zip(x.parts, shares, strict=True)]
        dtype = self.weights.dtype
        total, difference = (torch.cat([side.to(dtype) for side in sides], x.dim) for sides in zip(*made, strict=True))
        return total, difference

    def _stretch(self, x: Interval | Tensor, shrink: Tensor, grow: Tensor) -> Sides:
        """Return sum and difference of the gaps of ``x`` times its factors."""
        if isinstance(x, Tensor):
            return (grow + shrink) * x.abs(), (grow - shrink) * x
        upper, lower = x.upper, x.lower
        if self.nonneg:
            above, below = x.above + grow * upper, x.below + shrink * lower
        else:
            above = x.above + grow * cut(upper) + shrink * cut(-upper)
            below = x.below + shrink * cut(lower) + grow * cut(-lower)
        return above + below, above - below
