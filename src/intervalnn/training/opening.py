"""Opening: how gaps that are all zero start to grow, so that every layer has an equal share in the width."""

from __future__ import annotations

import torch

from intervalnn.training.job import Job
from intervalnn.training.optimiser import Proportional
from intervalnn.training.recipe import Recipe

__all__ = ["balance_gaps", "optimizer_of"]

OPENING = 0.5  # width of the bounds to start from, in mean absolute errors
LEAST = 1e-4  # the smallest gap, in what it starts from


def balance_gaps(job: Job) -> None:
    """Balance the gaps on the whole of the first batch, whatever the process's share of it."""
    assert job.net is not None
    args, weight = job.first_batch()
    found = job.net.sensitivities(*args)
    own = torch.tensor(list(found.values()), dtype=torch.float64, device=job.device)
    mean = job.engine.sum(own * weight) / job.engine.world
    job.net.balance_by(dict(zip(found, mean.tolist(), strict=True)))


def optimizer_of(job: Job, recipe: Recipe) -> torch.optim.Optimizer:
    """Return what takes the steps: Adam, or steps in proportion to the size of balanced gaps."""
    parameters = job.method.parameters()
    if job.net is None or not recipe.balanced or recipe.mae is None:
        return torch.optim.Adam(parameters)
    opening = OPENING * recipe.mae / max(len(job.net.names), 1)  # each has an equal share in the width
    return Proportional(parameters, start=opening, least=LEAST * opening)
