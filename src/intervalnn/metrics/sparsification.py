"""Sparsification: how the error falls as the most uncertain components are removed (Ilg et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from intervalnn.metrics.checks import compared
from intervalnn.metrics.ranks import averaged_over_ties
from intervalnn.metrics.sketches import FINE, histogram
from intervalnn.prediction import Prediction

__all__ = ["Sparsification", "SparsificationCurve", "ause", "sparsification_curve"]


class SparsificationCurve(NamedTuple):
    """Mean absolute error of what is kept over that of all, as the share that is removed grows.

    Attributes:
        removed: The share removed, ``(steps,)``, from 0.
        by_score: What is left when the largest scores go first, ``(..., steps)``; 1 at first.
        oracle: What is left when the largest errors go first: no score can do better.
        area: The area between the two curves, ``(...)``: 0 is perfect, and a constant score
            gets what removal at random gets.
    """

    removed: Tensor
    by_score: Tensor
    oracle: Tensor
    area: Tensor


def sparsification_curve(prediction: Prediction, target: Tensor) -> SparsificationCurve:
    """Return the sparsification curves of each sample, one step for each component removed.

    With ``n`` components the ``k``-th of ``n`` values is the mean absolute error of the ``n - k``
    with the smallest score over that of all ``n``; the area is that of the trapezoids between ``0`` and ``1 - 1 / n``.
    Equal scores leave in random order, of which this is the mean. All of this is as in
    TorchUncertainty, but for ties, which it takes as they come, and for samples without any
    error or with a single component, which are NaN here.
    """
    parts = compared(prediction, target)
    batch, n = parts.error.shape
    removed = torch.arange(n, dtype=torch.float64, device=parts.error.device) / n
    by_score, oracle = (_kept(order, parts.error) for order in (parts.score, parts.error))
    if n < 2:
        return SparsificationCurve(removed, by_score, oracle, by_score.new_full((batch,), torch.nan))
    return SparsificationCurve(removed, by_score, oracle, torch.trapezoid(by_score - oracle, removed))


def ause(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the area between the sparsification curve and the oracle's for each sample, ``(batch,)``.

    See :func:`sparsification_curve` for the normalisation. NaN for a sample without any error,
    or with a single component.

    Example:
        >>> point, score = torch.zeros(2, 4), torch.tensor([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]])
        >>> ause(Prediction(point, score, score, score), torch.tensor([1.0, 2.0, 3.0, 4.0]).expand(2, 4))
        tensor([0.0000, 0.4500], dtype=torch.float64)
    """
    return sparsification_curve(prediction, target).area


def _kept(score: Tensor, error: Tensor) -> Tensor:
    """Return the mean error of what is kept over that of all, as the largest scores are removed one by one."""
    ordered, order = score.sort(1)
    sums = averaged_over_ties(ordered, error.gather(1, order)).cumsum(1)
    counts = torch.arange(1, error.shape[1] + 1, dtype=torch.float64, device=error.device)
    means = sums / counts
    return (means / means[:, -1:]).flip(1)


@dataclass(frozen=True, slots=True)
class Sparsification:
    """The sparsification curves over all components of all samples.

    Scores and errors are kept as histograms of 512 cells to an octave: those that share a cell
    leave in random order. The area is the exact one under this order, from 0 to 1.

    Attributes:
        steps: At how many shares the curves are given: ``0, 1 / steps, ...``.
    """

    steps: int = 100

    def __post_init__(self) -> None:
        if not self.steps >= 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}")

    def empty(self) -> Tensor:
        """Return the sums of no data."""
        return torch.zeros(4, FINE.size, dtype=torch.float64)

    def count(self, prediction: Prediction, target: Tensor) -> Tensor:
        """Return number and errors of the components in each cell, by score and by error."""
        parts = compared(prediction, target)
        cells = [FINE.cells(order) for order in (parts.score, parts.error)]
        return torch.stack(
            [histogram(own, weights, FINE.size) for own in cells for weights in (None, parts.error)],
        )

    def result(self, sums: Tensor) -> SparsificationCurve:
        """Return the curves, at :attr:`steps` shares, and the area; NaN where there is no error at all."""
        removed = torch.arange(self.steps, dtype=torch.float64, device=sums.device) / self.steps
        curves = [_curve(counts, errors, 1 - removed) for counts, errors in sums.view(2, 2, -1)]
        (by_score, area), (oracle, oracle_area) = curves
        return SparsificationCurve(removed, by_score, oracle, area - oracle_area)


def _curve(counts: Tensor, errors: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean error of the shares kept over that of all, and the area under it."""
    full = counts > 0
    if not bool(full.any()):
        return torch.full_like(kept, torch.nan), kept.new_tensor(torch.nan)
    count, error = counts[full] / counts.sum(), errors[full] / errors.sum()
    slope, ends = error / count, count.cumsum(0)
    starts = ends - count
    # From one end of a cell to the other the error kept grows in a line, so that its mean is offset / share + slope.
    offset = error.cumsum(0) - error - slope * starts
    starts[0] = ends[0]  # the first cell has no offset, and its logarithm would be infinite
    cell = torch.searchsorted(ends, kept.clamp(max=float(ends[-1])))
    area = (slope * count + offset * torch.log(ends / starts)).sum()
    return slope[cell] + offset[cell] / kept, area
