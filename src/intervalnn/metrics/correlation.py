"""Correlation: whether the score is large where the error is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from intervalnn.metrics.checks import compared
from intervalnn.metrics.ranks import ranks
from intervalnn.metrics.sketches import COARSE, histogram
from intervalnn.prediction import Prediction

__all__ = ["RankCorrelation", "pearson", "pwcc", "spearman"]


def pearson(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the correlation of ``|point - target|`` with the score within each sample, ``(batch,)``.

    NaN where all errors or all scores of a sample are the same: there it is not defined.

    Example:
        >>> point, score = torch.zeros(2, 3), torch.tensor([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])
        >>> pearson(Prediction(point, score, score, score), torch.tensor([[0.0, 1.0, -2.0], [0.0, 1.0, -2.0]]))
        tensor([1., nan], dtype=torch.float64)
    """
    parts = compared(prediction, target)
    return _correlation(parts.error, parts.score)


def spearman(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the rank correlation of ``|point - target|`` with the score within each sample, ``(batch,)``.

    Ties get the mean of their ranks. NaN where all errors or all scores of a sample are the same.
    """
    parts = compared(prediction, target)
    return _correlation(ranks(parts.error), ranks(parts.score))


def pwcc(prediction: Prediction, target: Tensor) -> Tensor:
    """Return :func:`pearson` over the mean squared error of each sample, ``(batch,)`` (Sec. 4).

    It depends on the unit of the targets. The published code took the cosine for the correlation;
    see :func:`paper_pwcc`. NaN where the correlation is.
    """
    return pearson(prediction, target) / compared(prediction, target).distance.square().mean(1)


def _correlation(a: Tensor, b: Tensor) -> Tensor:
    """Return the correlation of the rows; NaN where one is constant, to the last bit."""
    constant = (a.amax(1) == a.amin(1)) | (b.amax(1) == b.amin(1))
    a, b = (_centered(part) for part in (a, b))
    found = (a * b).sum(1) / torch.sqrt(a.square().sum(1) * b.square().sum(1))
    return torch.where(constant, torch.nan, found.clamp(-1.0, 1.0))


def _centered(rows: Tensor) -> Tensor:
    rows = rows / rows.amax(1, keepdim=True)  # so that squares neither overflow nor vanish
    return rows - rows.mean(1, keepdim=True)


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """The rank correlation of ``|point - target|`` with the score over all components of all samples.

    Kept as a histogram of 16 cells to an octave on either axis, from ``2**-40`` to ``2**24``: values
    that share a cell count as ties. Where they spread over several octaves the result is good to about .001;
    where all scores differ by a few percent only, it is too coarse, and :func:`spearman` per sample is the one to take.
    """

    def empty(self) -> Tensor:
        """Return the counts of no data."""
        return torch.zeros(COARSE.size, COARSE.size, dtype=torch.float64)

    def count(self, prediction: Prediction, target: Tensor) -> Tensor:
        """Return how many components lie in each cell of error and score."""
        parts = compared(prediction, target)
        cells = COARSE.cells(parts.error) * COARSE.size + COARSE.cells(parts.score)
        return histogram(cells, None, COARSE.size**2).view(COARSE.size, COARSE.size)

    def result(self, sums: Tensor) -> Tensor:
        """Return the correlation; NaN where all errors or all scores share a cell."""
        errors, scores = sums.sum(1), sums.sum(0)
        a, b = (_centered_ranks(counts) for counts in (errors, scores))
        spread = torch.sqrt((errors * a.square()).sum() * (scores * b.square()).sum())
        return torch.where(spread > 0, a @ sums @ b / spread, torch.nan)


def _centered_ranks(counts: Tensor) -> Tensor:
    """Return the mean rank of each cell's values less that of all, as a share of their number."""
    total = counts.sum().clamp(min=1.0)
    return (counts.cumsum(0) - counts / 2) / total - 0.5
