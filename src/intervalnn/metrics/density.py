"""Density: how well a normal density around the point describes the target."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from intervalnn.metrics.checks import compared
from intervalnn.prediction import Prediction

__all__ = ["crps", "nll"]


def crps(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the continuous ranked probability score of each sample, ``(batch,)`` (Gneiting and Raftery, 2007).

    Where the deviation is zero it is the absolute error.

    Example:
        >>> sure = Prediction.symmetric(torch.zeros(1, 2), torch.zeros(1, 2), coverage=0.9)
        >>> crps(sure, torch.tensor([[1.0, 3.0]]))
        tensor([2.], dtype=torch.float64)
    """
    distance, deviation = _normal(prediction, target, "crps")
    z = torch.where(deviation > 0, distance / deviation, 0.0)
    density = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    score = distance * torch.erf(z / math.sqrt(2)) + deviation * (2 * density - 1 / math.sqrt(math.pi))
    return torch.where(deviation > 0, score, distance.abs()).mean(1)


def nll(prediction: Prediction, target: Tensor, *, floor: float = 0.0) -> Tensor:
    """Return the negative log-likelihood of each sample, ``(batch,)``, on average over its components, in nats.

    A deviation of zero makes it infinite, with the sign of being right (minus) or wrong (plus);
    and NaN where a sample has both.

    Args:
        prediction: What was predicted.
        target: The truth.
        floor: Deviations below it are raised to it.
    """
    distance, deviation = _normal(prediction, target, "nll")
    if not floor >= 0:
        raise ValueError(f"floor must be >= 0, got {floor}")
    deviation = deviation.clamp(min=floor)
    z = distance / torch.where(deviation > 0, deviation, 1.0)
    sure = torch.where(distance == 0, -math.inf, math.inf)
    found = z * z / 2 + deviation.log() + math.log(2 * math.pi) / 2
    return torch.where(deviation > 0, found, sure).mean(1)


def _normal(prediction: Prediction, target: Tensor, name: str) -> tuple[Tensor, Tensor]:
    parts = compared(prediction, target)
    if parts.deviation is None:
        raise ValueError(
            f"{name} needs a density, and this prediction has bounds only; "
            "take winkler or pinball, or a method whose predictions have a deviation"
        )
    return parts.distance, parts.deviation
