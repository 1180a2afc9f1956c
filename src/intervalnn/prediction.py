"""Prediction: what every method returns and every metric takes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from intervalnn.interval import Interval

__all__ = ["Prediction"]


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """A prediction, how far the truth may lie below and above it, and how uncertain it is.

    Attributes:
        point: The underlying model's own prediction, of any shape.
        below: How far the bounds reach below it, ``>= 0``.
        above: How far they reach above it, ``>= 0``.
        score: Uncertainty of each component, ``>= 0``.
    """

    point: Tensor
    below: Tensor
    above: Tensor
    score: Tensor

    @staticmethod
    def of(bounds: Interval) -> Prediction:
        """Return bounds as a prediction, with their width as the score (Sec. 3)."""
        return Prediction(bounds.point, bounds.below, bounds.above, bounds.width)

    @property
    def bounds(self) -> Interval:
        """The bounds as an interval."""
        return Interval(self.point, self.below, self.above)

    @property
    def lower(self) -> Tensor:
        """The lower bound."""
        return self.point - self.below

    @property
    def upper(self) -> Tensor:
        """The upper bound."""
        return self.point + self.above

    @property
    def direction(self) -> Tensor:
        """``+1`` where the truth lies rather above the point, ``-1`` rather below, 0 where neither."""
        return torch.sign(self.above - self.below)
