"""Engine: where training runs, on one process or on many."""

from __future__ import annotations

import os
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn

from intervalnn.torch_private import pytree

__all__ = ["Engine", "FabricEngine", "TorchEngine"]


class Engine(Protocol):
    """What the training loop asks of the machinery below it."""

    @property
    def rank(self) -> int:
        """Number of this process."""
        ...

    @property
    def world(self) -> int:
        """How many processes there are."""
        ...

    def wrap(self, module: nn.Module) -> nn.Module:
        """Return the module whose forward pass takes part in the exchange of gradients."""
        ...

    def backward(self, loss: Tensor) -> None:
        """Compute gradients, the same on all processes: the mean over them."""
        ...

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over all processes."""
        ...

    def broadcast(self, value: Any) -> Any:
        """Return the first process's value on all of them."""
        ...


class TorchEngine:
    """Torch's own engine: one process, or as many as ``torchrun`` has started (DDP).

    Under ``torchrun`` the process group is made on first use: nccl for tensors on a GPU, gloo
    for others. Several machines need nothing but the launcher's own arguments.

    Every process holds the whole network, because the bounds of a layer need all of its weights. Fewer layers take less
    memory, as does ``kind="input"``, whose moments and gradients are small. In a training loop of your own,
    ``torch.distributed.fsdp.fully_shard(net)`` shards gaps and moments.
    """

    def __init__(self) -> None:
        if not dist.is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ:
            local = int(os.environ.get("LOCAL_RANK", "0"))
            if torch.cuda.device_count() > local:
                torch.cuda.set_device(local)
            dist.init_process_group()
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
        value = value.clone()
        if self.world > 1:
            dist.all_reduce(value)
        return value

    def broadcast(self, value: Any) -> Any:
        """Return the first process's value on all of them."""
        values = [value]
        if self.world > 1:
            dist.broadcast_object_list(values)
        return values[0]


class FabricEngine:
    """Lightning Fabric as the engine, for its strategies, launchers and plugins (extra ``fabric``).

    Args:
        fabric: A Fabric that was launched. Leave its precision at 32 bits for interval networks, and
            its loaders alone: :func:`intervalnn.fit` shares the batches out. A strategy of several
            processes must allow for unused parameters (``"ddp_find_unused_parameters_true"``).
    """

    def __init__(self, fabric: Any) -> None:
        self.fabric = fabric
        self.rank: int = fabric.global_rank
        self.world: int = fabric.world_size

    def wrap(self, module: nn.Module) -> nn.Module:
        """Return the module under Fabric's strategy."""
        return _Unflattened(self.fabric.setup_module(_Flattened(module)))

    def backward(self, loss: Tensor) -> None:
        """Compute gradients the way of Fabric's strategy."""
        self.fabric.backward(loss)

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over all processes."""
        summed: Tensor = self.fabric.all_reduce(value.clone(), reduce_op="sum")
        return summed

    def broadcast(self, value: Any) -> Any:
        """Return the first process's value on all of them."""
        return self.fabric.broadcast(value)


class _Flattened(nn.Module):
    """A module whose output is a tuple of tensors, because Fabric refuses frozen dataclasses such as intervals."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self.spec: pytree.TreeSpec | None = None

    def forward(self, *args: Any) -> tuple[Any, ...]:
        """Run the module, and keep the form of its output."""
        leaves, self.spec = pytree.tree_flatten(self.module(*args))
        return tuple(leaves)


class _Unflattened(nn.Module):
    """What Fabric has made of a :class:`_Flattened` module, with its output in the first form again."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any) -> Any:
        """Run the module."""
        leaves = self.module(*args)
        spec = self.module.module.spec
        assert spec is not None
        return pytree.tree_unflatten(leaves, spec)


def any_engine(engine: Engine | None) -> Engine:
    """Return the engine given, or torch's own."""
    return TorchEngine() if engine is None else engine
