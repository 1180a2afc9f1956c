"""Stretched: a weight whose inputs may each count for less or for more."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from intervalnn.interval import Interval

__all__ = ["Stretched"]


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
