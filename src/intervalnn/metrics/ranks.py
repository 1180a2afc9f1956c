"""Ranks: what to do with ties."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["averaged_over_ties", "ranks"]


def averaged_over_ties(ordered: Tensor, values: Tensor) -> Tensor:
    """Return the values with those at equal places of ``ordered`` replaced by their mean; both ``(batch, n)``."""
    new = (ordered[:, 1:] != ordered[:, :-1]).long()
    run = torch.cat((new.new_zeros(len(new), 1), new.cumsum(1)), 1)
    sums = torch.zeros_like(values).scatter_add(1, run, values)
    counts = torch.zeros_like(values).scatter_add(1, run, torch.ones_like(values))
    return (sums / counts.clamp(min=1.0)).gather(1, run)


def ranks(values: Tensor) -> Tensor:
    """Return the rank of each value in its row, from 1; ties get the mean of theirs.

    Example:
        >>> ranks(torch.tensor([[3.0, 1.0, 3.0]]))
        tensor([[2.5000, 1.0000, 2.5000]], dtype=torch.float64)
    """
    ordered, order = values.sort(1)
    places = torch.arange(1, values.shape[1] + 1, dtype=torch.float64, device=values.device).expand(values.shape)
    averaged = averaged_over_ties(ordered, places)
    return torch.empty_like(averaged).scatter_(1, order, averaged)
