"""Job: what is trained, on which batches, and where."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from intervalnn.data.loading import batches
from intervalnn.network.network import IntervalNetwork
from intervalnn.training.batches import Batches, parts
from intervalnn.training.engine import Engine

__all__ = ["Job"]


@dataclass(frozen=True, slots=True)
class Job:
    """What one call of :func:`intervalnn.fit` trains.

    Attributes:
        method: The module whose parameters are trained.
        batches: What it is trained on.
        engine: Where it runs.
        device: Where its parameters are.
        precision: What a plain model is autocast to, if anything.
    """

    method: nn.Module
    batches: Batches
    engine: Engine
    device: torch.device
    precision: torch.dtype | None

    @staticmethod
    def of(method: Any, loader: Iterable[Any], engine: Engine, seed: int, precision: torch.dtype | None) -> Job:
        """Return the job, once it is known that there is something to train."""
        if not isinstance(method, nn.Module):
            raise TypeError(f"fit trains an IntervalNetwork or a module, got a {type(method).__name__}")
        if isinstance(method, IntervalNetwork) and precision is not None:
            raise ValueError(
                "precision would change the prediction of an interval network; "
                "for fast bounds use IntervalNetwork(model, gap_dtype=torch.bfloat16)"
            )
        found = Batches(batches(loader), seed=seed, rank=engine.rank, world=engine.world)
        model = method.model if isinstance(method, IntervalNetwork) else method
        first = next(model.parameters(), None)
        if first is None:
            raise ValueError(f"{type(method).__name__} has no parameters to train; calibrate it, if it is a method")
        if first.is_meta:
            raise ValueError("the model is on the meta device, where there are no numbers; load its weights first")
        return Job(method, found, engine, first.device, precision)

    @property
    def net(self) -> IntervalNetwork | None:
        """The method, if it is an interval network: then its gaps are what is trained."""
        return self.method if isinstance(self.method, IntervalNetwork) else None

    def first_batch(self) -> tuple[tuple[Any, ...], float]:
        """Return the arguments of the first batch, this process's share of it, and the weight of that share."""
        batch, weight = next(self.batches.epoch(0))
        return parts(batch, self.device)[0], weight

    def recomputing(self) -> AbstractContextManager[None]:
        """Return a context in which less is kept for the backward pass."""
        if self.net is None:
            raise ValueError("recompute is for interval networks; in a plain model use torch.utils.checkpoint")
        return self.net.recomputing()
