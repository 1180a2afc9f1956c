"""Sums: what an epoch measures, added up batch by batch."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.training.engine import Engine

__all__ = ["Means", "Sums"]


class Means(NamedTuple):
    """What an epoch measured so far.

    Attributes:
        loss: Mean loss, over the samples.
        coverage: Share of the targets between the bounds; NaN for a plain model.
        width: Mean width of the bounds; NaN for a plain model.
    """

    loss: float
    coverage: float
    width: float


class Sums:
    """Sums of what an epoch measures, on the device until someone asks."""

    def __init__(self, device: torch.device) -> None:
        self.sums = torch.zeros(5, dtype=torch.float64, device=device)  # loss, samples, inside, width, components

    @torch.no_grad()
    def add(self, loss: Tensor, output: Any, target: Tensor, weight: float) -> None:
        """Count a batch; a share without weight belongs to others."""
        if not weight:
            return
        samples = torch.full_like(self.sums[0], len(target))
        found = [loss.double() * samples, samples, *torch.zeros_like(self.sums[2:])]
        if isinstance(output, Interval):
            inside, width = output.contains(target).sum().double(), output.width.double().sum()
            found[2:] = [inside, width, torch.full_like(inside, target.numel())]
        self.sums += torch.stack(found)

    def means(self, engine: Engine, name: str = "loader") -> Means:
        """Return the means over all processes."""
        loss, samples, inside, width, components = engine.sum(self.sums).tolist()
        if not samples:
            raise ValueError(f"the {name} is empty: it must yield at least one batch")
        if not components:
            return Means(loss / samples, math.nan, math.nan)
        return Means(loss / samples, inside / components, width / components)
