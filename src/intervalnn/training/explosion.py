"""Explosion: when training has failed, and which batch or which layer is to blame."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from intervalnn.torch_private import pytree
from intervalnn.training.batches import Batches, parts
from intervalnn.training.job import Job
from intervalnn.training.sums import Means

__all__ = ["bad_batch", "refuse_explosion"]


def refuse_explosion(
    job: Job, found: Means, *, epoch: int, lr: float, widest: float, validation: Batches | None = None
) -> None:
    """Raise where training has failed: the loss is not finite, or the bounds have exploded.

    Args:
        job: What is trained.
        found: What the epoch measured.
        epoch: Its number, from 0.
        lr: The learning rate, for the message.
        widest: The mean width from which on training has failed.
        validation: What it was measured on, if not on the job's own batches.
    """
    if math.isfinite(found.loss) and not found.width > widest:
        return
    what = f"the loss became {found.loss:.3g}" + (f" and the mean width {found.width:.3g}" if job.net else "")
    hint = None if validation is None else bad_batch(job, validation, "validation loader")
    hint = hint or bad_batch(job, job.batches, "loader") or _widest_layer(job)
    raise FloatingPointError(f"in epoch {epoch + 1} {what} (lr {lr:.3g}); {hint}")


@torch.no_grad()
def bad_batch(job: Job, batches: Batches, name: str) -> str | None:
    """Say which batch of a loader, and which sample of the batch, has or makes numbers that are not finite."""
    for i, batch in enumerate(batches.in_order(), 1):
        args, target = parts(batch, job.device)
        for what, value in (("inputs", args), ("target", target)):
            if (sample := _not_finite(value)) is not None:
                found = f"batch {i} of the {name} has NaN or infinity in its {what} (sample {sample})"
                return f"{found}; leave such samples out"
        if job.net is not None and (sample := _not_finite(job.net.model(*args))) is not None:
            return f"the model makes NaN or infinity of finite inputs, in batch {i} of the {name} (sample {sample})"
    return None


def _not_finite(values: Any) -> int | None:
    """Return the number of the first sample in which some tensor is not finite."""
    for tensor in pytree.tree_leaves(values):
        if isinstance(tensor, Tensor) and not bool(tensor.isfinite().all()):
            return int((~tensor.isfinite()).reshape(len(tensor), -1).any(1).nonzero()[0]) if tensor.dim() else 0
    return None


def _widest_layer(job: Job) -> str:
    if job.net is None:
        return "try a lower lr"
    rows = job.net.explain(*job.first_batch()[0]).rows
    # If gaps are NaN, the most sensitive one is named, since the gaps themselves no longer tell.
    worst = max(rows, key=lambda row: (row.width if math.isfinite(row.width) else math.inf, row.sensitivity))
    share = f" ({worst.share:.0%} of the width)" if math.isfinite(worst.share) else ""
    return (
        f"'{worst.name}' opens the bounds most{share}. Try a lower lr, fewer layers (layers=4), balance=True, "
        "or a cap on the gaps"
    )
