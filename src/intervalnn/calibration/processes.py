"""Processes: numbers of each put together, where several calibrate."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

__all__ = ["count", "largest", "summed"]


def count() -> int:
    """Return how many processes there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def summed(x: Tensor) -> Tensor:
    """Return the sum of ``x`` over all processes; ``x`` itself where there is just one."""
    return _reduced(x, "SUM")


def largest(x: Tensor) -> Tensor:
    """Return the largest ``x`` of all processes; ``x`` itself where there is just one."""
    return _reduced(x, "MAX")


def _reduced(x: Tensor, how: str) -> Tensor:
    if count() == 1:
        return x
    x = x.clone()
    dist.all_reduce(x, getattr(dist.ReduceOp, how))
    return x
