"""Paper: two metrics as the published code computed them, for comparison with its numbers and nothing else."""

from __future__ import annotations

import torch
from torch import Tensor

from intervalnn.metrics.checks import compared
from intervalnn.prediction import Prediction

__all__ = ["paper_coverage", "paper_pwcc"]


def paper_coverage(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the share of each sample's components with ``target <= upper``, ``(batch,)``; for comparison only.

    The published code counts misses above alone, so that 89 % may stand for about 78 %.
    :func:`intervalnn.metrics.coverage` counts both.
    """
    parts = compared(prediction, target)
    return (parts.distance <= parts.above).double().mean(1)


def paper_pwcc(prediction: Prediction, target: Tensor) -> Tensor:
    """Return the cosine similarity of absolute error and score over the MSE, ``(batch,)``; for comparison only.

    The published code takes the cosine for the correlation: a constant score, which says nothing,
    has a large one. :func:`intervalnn.metrics.pwcc` takes the correlation. NaN where it is undefined.
    """
    parts = compared(prediction, target)
    error, score = (part / part.amax(1, keepdim=True) for part in (parts.error, parts.score))
    cosine = (error * score).sum(1) / torch.sqrt(error.square().sum(1) * score.square().sum(1))
    return cosine / parts.distance.square().mean(1)
