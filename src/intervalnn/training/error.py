"""Error: the underlying model's mean absolute error, the unit for the first and for the largest allowed width."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.training.batches import parts
from intervalnn.training.explosion import bad_batch
from intervalnn.training.job import Job

__all__ = ["mean_absolute_error"]

SAMPLE = 16  # batches on which it is measured


@torch.no_grad()
def mean_absolute_error(job: Job, model: Callable[..., Any]) -> float:
    """Return the underlying model's error on the first batches of all processes."""
    total = torch.zeros(2, dtype=torch.float64, device=job.device)
    for output, target, weight in _outputs(job, model):
        if not isinstance(output, Tensor):
            return 1.0  # of several outputs, of which the loss alone knows what they are
        if output.shape != target.shape:
            raise ValueError(
                f"the target must have shape {tuple(output.shape)}, like the bounds, got {tuple(target.shape)}"
            )
        if weight:
            error = (output - target).abs().double()
            total += torch.stack((error.sum(), torch.full_like(error.sum(), error.numel())))
    error_sum, components = map(float, job.engine.sum(total))
    if not components:
        raise ValueError("the loader is empty: it must yield at least one batch")
    if not math.isfinite(error_sum):
        hint = bad_batch(job, job.batches, "loader") or "look for NaN in inputs, targets or weights"
        raise ValueError(f"the underlying model's error is not finite: {hint}")
    return max(error_sum / components, torch.finfo(torch.float32).tiny)


def _outputs(job: Job, model: Callable[..., Any]) -> Iterator[tuple[Any, Tensor, float]]:
    """Yield what the model makes of the first batches; the network itself sees the first, and so knows its layers."""
    for i, (batch, weight) in enumerate(islice(job.batches.epoch(0), SAMPLE)):
        args, target = parts(batch, job.device)
        output = job.net(*args) if job.net is not None and i == 0 else model(*args)
        yield output.point if isinstance(output, Interval) else output, target, weight
