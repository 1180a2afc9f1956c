"""Engine: where training runs, on one process or on many."""

from __future__ import annotations

import os
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn

__all__ = ["Engine", "TorchEngine"]


class Engine(Protocol):
    """What the training loop asks of the machinery below it; Lightning Fabric can stand behind it too."""

    rank: int
    world: int

    def wrap(self, module: nn.Module) -> nn.Module:
        """Return the module whose forward pass takes part in the exchange of gradients."""
        ...

    def backward(self, loss: Tensor) -> None:
        """Compute gradients, the same on all processes."""
        ...

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over all processes."""
        ...

    def barrier(self) -> None:
        """Wait until all processes have come here."""
        ...


class TorchEngine:
    """Torch's own engine: one process, or as many as ``torchrun`` has started (DDP).

    Under ``torchrun`` the process group is made on first use: nccl where there is a GPU for
    each process, else gloo. Several machines need nothing but the launcher's own arguments.
    """

    def __init__(self) -> None:
        if not dist.is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ:
            local = int(os.environ.get("LOCAL_RANK", "0"))
            cuda = torch.cuda.is_available() and torch.cuda.device_count() > local
            if cuda:
                torch.cuda.set_device(local)
            dist.init_process_group("nccl" if cuda else "gloo")
        on = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if on else 0
        self.world = dist.get_world_size() if on else 1

    def wrap(self, module: nn.Module) -> nn.Module:
        """Return the module under DDP, or itself where there is one process alone."""
        if self.world == 1:
            return module
        return nn.parallel.DistributedDataParallel(module, find_unused_parameters=True)

    def backward(self, loss: Tensor) -> None:
        """Compute gradients; DDP averages them over the processes on the way."""
        loss.backward()

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over all processes."""
        if self.world > 1:
            dist.all_reduce(value)
        return value

    def barrier(self) -> None:
        """Wait until all processes have come here."""
        if self.world > 1:
            dist.barrier()


def any_engine(engine: Any) -> Engine:
    """Return the engine given, or torch's own."""
    chosen: Engine = TorchEngine() if engine is None else engine
    return chosen
