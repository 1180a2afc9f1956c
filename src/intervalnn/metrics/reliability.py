"""Reliability: at which levels, for which widths and in which places bounds hold."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor

from intervalnn.metrics.checks import compared, share
from intervalnn.metrics.sketches import FINE, histogram
from intervalnn.metrics.tally import tallied
from intervalnn.prediction import Prediction

__all__ = [
    "CalibrationCurve",
    "CalibrationLevels",
    "MissedPlaces",
    "SizeStratifiedCoverage",
    "WidthStrata",
    "calibration_curve",
    "miscoverage_map",
    "size_stratified_coverage",
]

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


# --- levels ---


class CalibrationCurve(NamedTuple):
    """The share that should lie inside, and the share that does.

    Attributes:
        levels: What intervals are made to cover, ``(levels,)``.
        shares: What they cover, over all components of all samples.
        components: How many components there were.
    """

    levels: Tensor
    shares: Tensor
    components: Tensor


def calibration_curve(
    prediction: Prediction, target: Tensor, *, levels: tuple[float, ...] = LEVELS, coverage: float = 0.9
) -> CalibrationCurve:
    """Return what the intervals of each level cover, for all samples together; see :class:`CalibrationLevels`."""
    return tallied(CalibrationLevels(levels, coverage), prediction, target)


@dataclass(frozen=True, slots=True)
class CalibrationLevels:
    """The :class:`CalibrationCurve` of all samples.

    Predictions with a deviation have the central interval of their normal density at each level.
    Those with bounds only have one interval, at the level ``coverage``; for the others both of its gaps are
    scaled as those of a normal density would be, by ``z(level) / z(coverage)`` where ``z(p)`` is the
    quantile at ``(1 + p) / 2``. So the curve of bounds alone judges their shape as well as their size.

    Attributes:
        levels: What intervals should cover, between 0 and 1.
        coverage: What the bounds of the predictions should cover.
    """

    levels: tuple[float, ...] = LEVELS
    coverage: float = 0.9

    def __post_init__(self) -> None:
        for level in (*self.levels, self.coverage):
            share("each of levels and coverage", level)

    def empty(self) -> Tensor:
        """Return the sums of no data."""
        return torch.zeros(len(self.levels) + 1, dtype=torch.float64)

    def count(self, prediction: Prediction, target: Tensor) -> Tensor:
        """Return how many components are inside at each level, and how many there are."""
        parts = compared(prediction, target)
        below, above, nominal = parts.below, parts.above, _z(self.coverage)
        if parts.deviation is not None:
            below, above, nominal = parts.deviation, parts.deviation, 1.0
        sums = self.empty().to(below.device)
        for place, level in enumerate(self.levels):
            factor = _z(level) / nominal
            sums[place] = ((parts.distance <= factor * above) & (-parts.distance <= factor * below)).sum()
        sums[-1] = below.numel()
        return sums

    def result(self, sums: Tensor) -> CalibrationCurve:
        """Return the curve."""
        return CalibrationCurve(sums.new_tensor(self.levels), sums[:-1] / sums[-1], sums[-1])


def _z(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


# --- widths ---


class SizeStratifiedCoverage(NamedTuple):
    """Coverage among narrow bounds, wide ones, and those between.

    Attributes:
        edges: Stratum ``i`` has the widths from ``edges[i]`` on, up to and without ``edges[i + 1]``.
        shares: Share of its components that are covered; NaN where it is empty.
        counts: How many components it has.
    """

    edges: Tensor
    shares: Tensor
    counts: Tensor


def size_stratified_coverage(prediction: Prediction, target: Tensor, *, bins: int = 4) -> SizeStratifiedCoverage:
    """Return the coverage within each of ``bins`` strata of width, for all samples together.

    See :class:`WidthStrata`. The smallest share is what is called size-stratified coverage.
    """
    return tallied(WidthStrata(bins), prediction, target)


@dataclass(frozen=True, slots=True)
class WidthStrata:
    """The :class:`SizeStratifiedCoverage` of all samples.

    The strata are as equal in number as widths allow that are known to a part in 512: such as
    share a cell of that size stay together, so that strata may be empty.

    Attributes:
        bins: How many strata.
    """

    bins: int = 4

    def __post_init__(self) -> None:
        if not self.bins >= 1:
            raise ValueError(f"bins must be at least 1, got {self.bins}")

    def empty(self) -> Tensor:
        """Return the sums of no data."""
        return torch.zeros(2, FINE.size, dtype=torch.float64)

    def count(self, prediction: Prediction, target: Tensor) -> Tensor:
        """Return how many components have each width, and how many of them are covered."""
        parts = compared(prediction, target)
        cells = FINE.cells(parts.width)
        return torch.stack([histogram(cells, weights, FINE.size) for weights in (None, parts.inside)])

    def result(self, sums: Tensor) -> SizeStratifiedCoverage:
        """Return the strata."""
        full = sums[0].nonzero().flatten()
        counts, covered = sums[:, full]
        middle = (counts.cumsum(0) - counts / 2) / counts.sum()
        stratum = (middle * self.bins).long().clamp(max=self.bins - 1)
        edges, none = FINE.edges().to(sums.device), torch.zeros(self.bins, dtype=torch.float64, device=sums.device)
        total, inside = (none.index_add(0, stratum, part) for part in (counts, covered))
        first = torch.searchsorted(stratum, torch.arange(self.bins, device=sums.device))
        ends = torch.cat((full, full[-1:] + 1))
        limits = (
            torch.cat((edges[ends[first]], edges[ends[-1:]]))
            if len(full)
            else none.new_full((self.bins + 1,), torch.nan)
        )
        return SizeStratifiedCoverage(limits, inside / total, total)


# --- places ---


def miscoverage_map(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the share of the samples whose bounds miss the target at each place, of the shape of a signal."""
    missed = ~compared(prediction, target).inside
    return missed.double().mean(0).view(target.shape[1:])


@dataclass(frozen=True, slots=True)
class MissedPlaces:
    """The :func:`miscoverage_map` of all samples, which must have one shape.

    Attributes:
        shape: That of a signal, without the batch.
    """

    shape: tuple[int, ...]

    def empty(self) -> Tensor:
        """Return the sums of no data."""
        return torch.zeros(2, *self.shape, dtype=torch.float64)

    def count(self, prediction: Prediction, target: Tensor) -> Tensor:
        """Return how many samples are missed at each place, and how many there are."""
        inside = compared(prediction, target).inside
        if target.shape[1:] != self.shape:
            raise ValueError(
                f"a map of miscoverage needs signals of shape {self.shape}, got {tuple(target.shape[1:])}; "
                "keep one for each shape, or cut them"
            )
        missed = (~inside).double().sum(0).view(self.shape)
        return torch.stack((missed, torch.full_like(missed, len(inside))))

    def result(self, sums: Tensor) -> Tensor:
        """Return the map."""
        return sums[0] / sums[1]
