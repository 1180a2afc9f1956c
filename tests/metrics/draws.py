"""What the tests of the metrics judge: predictions and targets drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from intervalnn.prediction import Prediction

Array = NDArray[np.float64]
Draw = Callable[..., tuple[Prediction, Tensor]]
Metric = Callable[[Prediction, Tensor], Tensor]
SHAPES = [(3, 40), (5,), (1, 7), (4, 1), (2, 1, 9), (3, 2, 4, 5), (2, 1, 3, 4, 5)]


def drawn(
    shape: tuple[int, ...] = (3, 40), seed: int = 0, dtype: torch.dtype = torch.float64
) -> tuple[Prediction, Tensor]:
    """Return a prediction whose errors grow with its score, and the target."""
    noise = torch.Generator().manual_seed(seed)
    point, below, above, error = torch.randn(4, *shape, generator=noise, dtype=torch.float64)
    below, above = below.abs() + 0.05, above.abs() + 0.05
    deviation = (below + above) / 3
    parts = (point, below, above, below + above, deviation, point + deviation * error)
    *prediction, target = (part.to(dtype) for part in parts)
    return Prediction(*prediction), target


def tied(shape: tuple[int, ...] = (3, 60), seed: int = 0) -> tuple[Prediction, Tensor]:
    """Return a prediction and a target of whole numbers, so that many are equal."""
    parts = torch.randint(0, 4, (6, *shape), generator=torch.Generator().manual_seed(seed)).double()
    point, below, above, score, deviation, target = parts
    return Prediction(point, below, above, score, deviation), target


@dataclass(frozen=True)
class Sample:
    """One sample, flat, in NumPy."""

    point: Array
    lower: Array
    upper: Array
    below: Array
    above: Array
    score: Array
    deviation: Array
    target: Array

    @property
    def error(self) -> Array:
        return np.abs(self.point - self.target)


def samples(prediction: Prediction, target: Tensor) -> list[Sample]:
    names = ("point", "lower", "upper", "below", "above", "score", "deviation")
    prediction = prediction.to(torch.float64)
    flat = [prediction[name].reshape(len(target), -1).numpy() for name in names]
    return [Sample(*own) for own in zip(*flat, target.double().reshape(len(target), -1).numpy(), strict=True)]


def bounds_only(prediction: Prediction) -> Prediction:
    return Prediction(prediction.point, prediction.below, prediction.above, prediction.score)
