"""Loading: what a loader yields, as the arguments of a model and a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

from intervalnn.torch_private import pytree

__all__ = ["arguments", "batches", "is_empty", "moved", "split"]


def split(batch: Any) -> tuple[Any, Tensor]:
    """Return the measurement and the target of a batch.

    Args:
        batch: A pair ``(x, y)``, or a mapping with the keys ``"input"`` and ``"target"``.

    Example:
        >>> split({"input": 1.0, "target": torch.zeros(2)})
        (1.0, tensor([0., 0.]))
    """
    if isinstance(batch, Mapping) and {"input", "target"} <= batch.keys():
        x, target = batch["input"], batch["target"]
    elif isinstance(batch, (tuple, list)) and len(batch) == 2:
        x, target = batch
    else:
        raise TypeError(f"a batch must be a pair (x, y) or a mapping with 'input' and 'target', got {_shown(batch)}")
    if not isinstance(target, Tensor):
        raise TypeError(f"the target of a batch must be a tensor, got a {type(target).__name__}")
    return x, target


def _shown(batch: Any) -> str:
    """Return what came instead of a pair, in words."""
    if isinstance(batch, Mapping):
        return f"a mapping with {sorted(batch)}"
    kind = type(batch).__name__
    return f"a {kind} of {len(batch)}" if isinstance(batch, tuple | list) else f"a {kind}"


def batches(loader: Any) -> Any:
    """Return a loader; raise for a data set, whose samples would be mistaken for batches."""
    if isinstance(loader, Dataset) and not isinstance(loader, IterableDataset):
        raise TypeError(
            f"a loader yields batches, and a {type(loader).__name__} samples; give DataLoader(it, batch_size)"
        )
    return loader


def arguments(x: Any, device: torch.device | None) -> tuple[Any, ...]:
    """Return a measurement as the arguments of a model, moved to a device if one is given.

    A tuple or a list holds several arguments.
    """
    args = tuple(x) if isinstance(x, tuple | list) else (x,)
    if device is None:
        return args
    found: tuple[Any, ...] = pytree.tree_map(
        lambda part: moved(part, device) if isinstance(part, Tensor) else part, args
    )
    return found


def moved(part: Tensor, device: torch.device) -> Tensor:
    """Return a tensor of a batch on the device of the method."""
    try:
        return part.to(device, non_blocking=True)
    except NotImplementedError as error:
        raise ValueError(
            f"a batch on {part.device} cannot be moved to {device}, where the model is: {error}"
        ) from error


def is_empty(target: Tensor) -> bool:
    """Say whether a batch has no samples, as the last one of some loaders has; it counts for nothing."""
    return target.dim() > 0 and len(target) == 0
