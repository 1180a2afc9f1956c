"""Opening: how gaps that are all zero start to grow, so that every layer has an equal share in the width."""

from __future__ import annotations

from typing import Any

import torch

from intervalnn.network.capture.call import Call
from intervalnn.network.scouts.scouted import features_of, gaps_of, normalise
from intervalnn.training.job import Job
from intervalnn.training.optimiser import Proportional
from intervalnn.training.recipe import Recipe

__all__ = ["balance_gaps", "optimizer_of"]

OPENING = 0.5  # width of the bounds to start from, in mean absolute errors
LEAST = 1e-4  # the smallest gap, in what it starts from

SCOUTS = 4e-3  # learning rate of the weights of scouts, which have no unit


def balance_gaps(job: Job) -> None:
    """Balance the gaps on the whole first batch, by the mean sensitivities over the processes' shares."""
    assert job.net is not None
    args, weight = job.first_batch()
    seen = job.net._read_by_scouts(Call.of(args, {}))
    normalise(job.net, [job.engine.sum(sums * (weight > 0)) for sums in seen])
    found = job.net.sensitivities(*args)
    own = torch.tensor(list(found.values()), dtype=torch.float64, device=job.device)
    mean = job.engine.sum(own * weight) / job.engine.world
    job.net.balance_by(dict(zip(found, mean.tolist(), strict=True)))


def optimizer_of(job: Job, recipe: Recipe) -> torch.optim.Optimizer:
    """Return what takes the steps: Adam, or steps in proportion to the size of balanced gaps.

    A group whose ``share`` is not one takes that share of the learning rate.
    """
    if job.net is None or not recipe.balanced or recipe.mae is None:
        return torch.optim.Adam(job.method.parameters())
    gaps, features = gaps_of(job.net), features_of(job.net)
    opening = OPENING * recipe.mae / max(len(job.net._opening), 1)  # each has an equal share in the width
    groups: list[dict[str, Any]] = [{"params": gaps}]
    if features:
        groups.append({"params": features, "proportional": False, "share": SCOUTS / recipe.lr})
    return Proportional(groups, start=opening, least=LEAST * opening)
