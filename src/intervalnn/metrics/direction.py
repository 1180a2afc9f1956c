"""Direction: how often the target lies on the side of the point to which the larger gap reaches."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor

from intervalnn.metrics.checks import compared, share
from intervalnn.metrics.summary import wilson
from intervalnn.prediction import Prediction

__all__ = ["DirectionCurve", "Directions", "direction_accuracy", "direction_curve"]

THRESHOLDS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)


class DirectionCurve(NamedTuple):
    """How often the direction is right among components whose strength is at least a threshold.

    The strength of a direction is the larger gap over the smaller one. Components with equal
    gaps have no direction and are never kept; of those kept, the ones whose target is the point itself
    cannot be judged. NaN where none is left to judge.

    Attributes:
        thresholds: Least strengths, ``(thresholds,)``.
        accuracy: Share of the judged components whose target lies where the direction says.
        kept: Share of all components that have a direction of at least this strength.
        majority: Share of the judged components on their more frequent side: what a constant direction would get.
        lower: Lower limit of the accuracy if components were independent (Wilson). Within an image they are not.
        upper: Upper limit.
        lower_over_samples: Lower limit of the accuracy when samples are drawn anew, and their components with them.
        upper_over_samples: Upper limit. Both are too narrow for a few samples only, and NaN where fewer than two
            have a component to judge.
        judged: How many components were judged.
    """

    thresholds: Tensor
    accuracy: Tensor
    kept: Tensor
    majority: Tensor
    lower: Tensor
    upper: Tensor
    lower_over_samples: Tensor
    upper_over_samples: Tensor
    judged: Tensor


def direction_accuracy(prediction: Prediction, target: Tensor, *, strength: float = 1.0) -> Tensor:
    """Return how often the direction of each sample is right, ``(batch,)``, among those of at least this strength.

    NaN where none can be judged. Half is not chance: see :attr:`DirectionCurve.majority`.

    Example:
        >>> zero, one = torch.zeros(1, 4), torch.ones(1, 4)
        >>> direction_accuracy(Prediction(zero, one, 3 * one, one), torch.tensor([[0.5, 2.0, -1.0, 0.0]]))
        tensor([0.6667], dtype=torch.float64)
    """
    _, judged, right, *_ = _counts(prediction, target, (strength,))[..., 0].unbind(1)
    return right / judged


def direction_curve(
    prediction: Prediction,
    target: Tensor,
    *,
    thresholds: tuple[float, ...] = THRESHOLDS,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
) -> DirectionCurve:
    """Return the accuracy of the direction over its strength, for all samples together.

    Args:
        prediction: What was predicted.
        target: The truth.
        thresholds: Least strengths, from 1.
        confidence: That of the limits.
        resamples: How often to draw the samples anew for the limits over samples (bootstrap,
            percentiles). By default they come from a formula, which is what many draws tend to.
        seed: Of these draws.
    """
    tally = Directions(thresholds, confidence)
    counts = _counts(prediction, target, thresholds)
    curve = tally.result(_sums(counts))
    if resamples is None:
        return curve
    lower, upper = _bootstrap(counts, confidence, resamples, seed)
    return curve._replace(lower_over_samples=lower, upper_over_samples=upper)


@dataclass(frozen=True, slots=True)
class Directions:
    """The :class:`DirectionCurve` of all samples; the limits over samples come from a formula.

    Attributes:
        thresholds: Least strengths, from 1.
        confidence: That of the limits.
    """

    thresholds: tuple[float, ...] = THRESHOLDS
    confidence: float = 0.95

    def __post_init__(self) -> None:
        _check(self.thresholds)
        share("confidence", self.confidence)

    def empty(self) -> Tensor:
        """Return the sums of no data."""
        return torch.zeros(9, len(self.thresholds), dtype=torch.float64)

    def count(self, prediction: Prediction, target: Tensor) -> Tensor:
        """Return the sums of a batch."""
        return _sums(_counts(prediction, target, self.thresholds))

    def result(self, sums: Tensor) -> DirectionCurve:
        """Return the curve."""
        kept, judged, right, above, right2, product, judged2, components, samples = sums
        accuracy = right / judged
        majority = torch.maximum(above, judged - above) / judged
        # How a ratio of sums varies as samples are drawn, linearised: each adds right - accuracy * judged.
        varied = (right2 - 2 * accuracy * product + accuracy.square() * judged2).clamp(min=0.0)
        reach = _z(self.confidence) * torch.sqrt(varied * samples / (samples - 1)) / judged
        reach = torch.where(samples > 1, reach, torch.nan)
        limits = (accuracy - reach).clamp(min=0.0), (accuracy + reach).clamp(max=1.0)
        thresholds = sums.new_tensor(self.thresholds)
        band = wilson(right, judged, self.confidence)
        return DirectionCurve(thresholds, accuracy, kept / components, majority, *band, *limits, judged)


def _counts(prediction: Prediction, target: Tensor, thresholds: tuple[float, ...]) -> Tensor:
    """Return of each sample how many are kept, judged, right, above, and there, ``(batch, 5, thresholds)``."""
    _check(thresholds)
    parts = compared(prediction, target)
    larger, smaller = torch.maximum(parts.above, parts.below), torch.minimum(parts.above, parts.below)
    direction, side = torch.sign(parts.above - parts.below), torch.sign(parts.distance)
    counts = []
    for threshold in thresholds:
        kept = (direction != 0) & (larger >= threshold * smaller)
        judged = kept & (side != 0)
        kinds = (kept, judged, judged & (side == direction), judged & (side > 0), torch.ones_like(kept))
        counts.append(torch.stack([kind.double().sum(1) for kind in kinds], 1))
    return torch.stack(counts, 2)


def _sums(counts: Tensor) -> Tensor:
    kept, judged, right, above, components = counts.unbind(1)
    products = (right * right, right * judged, judged * judged, components, (judged > 0).double())
    return torch.stack([part.sum(0) for part in (kept, judged, right, above, *products)])


def _bootstrap(counts: Tensor, confidence: float, resamples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return percentiles of the accuracy over draws of as many samples; NaN where a draw has none to judge."""
    judged, right = counts[:, 1].cpu(), counts[:, 2].cpu()
    drawn = torch.randint(len(counts), (resamples, len(counts)), generator=torch.Generator().manual_seed(seed))
    accuracy = right[drawn].sum(1) / judged[drawn].sum(1)
    tail = (1 - confidence) / 2
    lower, upper = accuracy.nanquantile(torch.tensor([tail, 1 - tail], dtype=torch.float64), 0).to(counts.device)
    several = ((judged > 0).sum(0) > 1).to(counts.device)
    return torch.where(several, lower, torch.nan), torch.where(several, upper, torch.nan)


def _check(thresholds: tuple[float, ...]) -> None:
    if not thresholds or not all(threshold >= 1 for threshold in thresholds):
        raise ValueError(f"thresholds must be 1 or more, the larger gap over the smaller one, got {thresholds}")


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
