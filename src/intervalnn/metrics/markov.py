"""Markov: the coverage bound of the interval loss beside the coverage found, batch by batch (App. A)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from intervalnn.calibration.guarantee import MarkovCurve, markov_of, markov_sums
from intervalnn.metrics.checks import compared
from intervalnn.prediction import Prediction

__all__ = ["MarkovBound"]


@dataclass(frozen=True, slots=True)
class MarkovBound:
    """The :class:`intervalnn.guarantee.MarkovCurve` of all samples.

    :func:`intervalnn.guarantee.markov_curve` gives the same for a method and a loader.

    Attributes:
        beta: The tightness parameter of the interval loss.
        factors: Multiples of ``beta`` by which to move the bounds out, the paper's lambda.
        alpha: The share of its components that a sample may have outside.
    """

    beta: float
    factors: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
    alpha: float = 0.1

    def __post_init__(self) -> None:
        if not self.beta > 0 or not self.factors or not min(self.factors) > 0:
            raise ValueError(f"beta and factors must be positive, got {self.beta} and {self.factors}")

    def empty(self) -> Tensor:
        """Return the sums of no data."""
        return torch.zeros(3 + 2 * len(self.factors), dtype=torch.float64)

    def count(self, prediction: Prediction, target: Tensor) -> Tensor:
        """Return the sums of a batch."""
        compared(prediction, target)
        target = target.detach().to(prediction.point.device)
        return markov_sums(prediction, target, self.beta, torch.tensor(self.factors, dtype=torch.float64), self.alpha)

    def result(self, sums: Tensor) -> MarkovCurve:
        """Return the curve."""
        return markov_of(sums, self.beta, sums.new_tensor(self.factors), self.alpha)
