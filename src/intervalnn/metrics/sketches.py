"""Sketches: how many values lie where, in a memory that does not grow with their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from intervalnn.metrics.checks import compared, share
from intervalnn.prediction import Prediction

__all__ = ["COARSE", "FINE", "Grid", "WidthQuantile", "histogram"]

_MANTISSA = 52  # bits of a float64


class Grid(NamedTuple):
    """Cells for values ``>= 0``: each octave from ``2**lowest`` to ``2**highest`` in ``2**bits`` equal parts.

    The cell of a value is read off the bits of its float64, so that it is exact and fast. Two
    values in one cell differ by at most a part in ``2**bits``. What is smaller than all octaves
    shares the first cell with zero; what is larger, the last one.

    Attributes:
        bits: How fine an octave is parted.
        lowest: Exponent at which the octaves begin.
        highest: Exponent at which they end.
    """

    bits: int
    lowest: int
    highest: int

    @property
    def size(self) -> int:
        """How many cells there are."""
        return 1 + (self.highest - self.lowest << self.bits)

    def cells(self, values: Tensor) -> Tensor:
        """Return the cell of each value, an integer from 0 to ``size - 1``."""
        places = values.double().contiguous().view(torch.int64) >> (_MANTISSA - self.bits)
        return (places - self._before).clamp(0, self.size - 1)

    def edges(self) -> Tensor:
        """Return the lower edges of the cells, and the upper edge of the last, ``(size + 1,)``."""
        places = torch.arange(1, self.size + 1) + self._before
        return torch.cat((torch.zeros(1), (places << (_MANTISSA - self.bits)).view(torch.float64))).double()

    def values(self) -> Tensor:
        """Return a value for each cell: zero for the first, and the middle of the others."""
        edges = self.edges()
        return torch.cat((torch.zeros(1), (edges[1:-1] + edges[2:]) / 2))

    @property
    def _before(self) -> int:
        return (self.lowest + 1023 << self.bits) - 1


FINE = Grid(bits=9, lowest=-126, highest=127)  # to a part in 512, over the range of float32
COARSE = Grid(bits=4, lowest=-40, highest=24)  # to a part in 16, for histograms of two dimensions


def histogram(cells: Tensor, weights: Tensor | None, size: int) -> Tensor:
    """Return how often each cell occurs, ``(size,)`` in float64, or the sums of its weights."""
    cells = cells.flatten()
    weights = torch.ones_like(cells, dtype=torch.float64) if weights is None else weights.flatten().double()
    return torch.zeros(size, dtype=torch.float64, device=cells.device).index_add_(0, cells, weights)


@dataclass(frozen=True, slots=True)
class WidthQuantile:
    """A quantile of the widths of all components of all samples, to a part in 1024.

    Attributes:
        level: Which one; the median by default.

    Example:
        >>> point, gap = torch.zeros(1, 3), torch.tensor([[0.1, 0.2, 7.0]])
        >>> tally = WidthQuantile()
        >>> print(f"{tally.result(tally.count(Prediction(point, gap, gap, gap), point)):.3f}")
        0.400
    """

    level: float = 0.5

    def __post_init__(self) -> None:
        share("level", self.level)

    def empty(self) -> Tensor:
        """Return the counts of no data."""
        return torch.zeros(FINE.size, dtype=torch.float64)

    def count(self, prediction: Prediction, target: Tensor) -> Tensor:
        """Return how many widths lie in each cell."""
        return histogram(FINE.cells(compared(prediction, target).width), None, FINE.size)

    def result(self, sums: Tensor) -> Tensor:
        """Return the quantile; halfway between two values where it lies between them; NaN without data."""
        up_to = sums.cumsum(0)
        if not up_to[-1] > 0:
            return sums.new_tensor(torch.nan)
        place = self.level * up_to[-1]
        cells = torch.stack([torch.searchsorted(up_to, place, right=right) for right in (False, True)])
        return FINE.values().to(sums.device)[cells.clamp(max=FINE.size - 1)].mean()
