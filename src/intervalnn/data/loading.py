"""Pairs: what a method predicts for each batch of a loader, and the target."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset

from intervalnn.prediction import Method, Prediction

__all__ = [
    "arguments",
    "batches",
    "checked",
    "is_empty",
    "is_fitted",
    "moved",
    "one",
    "predicted",
    "refuse_unfitted",
    "split",
    "stand_in",
    "summed",
    "without",
]


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


def is_fitted(method: Any) -> bool:
    """Say whether a method that learns from data has done so; one that says nothing of it counts as fitted.

    A baseline tells by ``fitted``. An interval network shows it: some gap is not zero, or offsets move its bounds.
    """
    gaps = getattr(method, "gaps", None)
    if isinstance(gaps, nn.Module):
        return getattr(method, "offsets", None) is not None or any(bool(gap.any()) for gap in gaps.parameters())
    return bool(getattr(method, "fitted", True))


def refuse_unfitted(method: Any, name: str) -> None:
    """Raise if a method was never fitted, and should have been: what it predicts then means nothing."""
    if not is_fitted(method):
        raise ValueError(f"{name} was never fitted; call inn.fit(method, train) first")


def predicted(method: Method, loader: Iterable[Any]) -> Iterator[tuple[Prediction, Tensor]]:
    """Yield for each batch what the method predicts and the target, on the device of the prediction.

    The measurement is moved to ``method.device``, where the method has one.
    """
    prediction = None
    for i, batch in enumerate(batches(loader), 1):
        x, target = split(batch)
        if is_empty(target):
            continue
        with torch.no_grad():
            prediction = method.predict(*arguments(x, getattr(method, "device", None)))
        yield prediction, checked(prediction, target, f"batch {i}")
    if prediction is None:
        raise ValueError("the loader is empty: it must yield at least one batch")


def batches(loader: Any) -> Any:
    """Return a loader, once it is known not to be a data set, whose samples would pass for batches."""
    if isinstance(loader, Dataset) and not isinstance(loader, IterableDataset):
        raise TypeError(
            f"a loader yields batches, and a {type(loader).__name__} samples; give DataLoader(it, batch_size)"
        )
    return loader


def arguments(x: Any, device: torch.device | None) -> tuple[Any, ...]:
    """Return a measurement as the arguments of a model, on a device if there is one to go to.

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


def one(prediction: Any) -> Prediction:
    """Return what a method predicts, once it is known to be a single prediction."""
    if not isinstance(prediction, Prediction):
        raise TypeError(f"predict must return one Prediction, got a {type(prediction).__name__}; wrap the method")
    return prediction


def checked(prediction: Prediction, target: Tensor, where: str = "the batch") -> Tensor:
    """Return the target on the device of the prediction, once it is known that the two can be compared."""
    point = one(prediction).point
    if target.shape != point.shape:
        raise ValueError(
            f"target must have shape {tuple(point.shape)}, like the prediction, got {tuple(target.shape)}; "
            "reshape one of them in the loader"
        )
    if point.is_complex() or target.is_complex():
        raise TypeError("complex predictions cannot be ordered; predict real and imaginary part apart")
    target = moved(target, point.device)
    parts = {"target": target, "point": point, "gap below": prediction.below, "gap above": prediction.above}
    for name, part in parts.items():
        if not bool(part.isfinite().all()):
            first = int((~part.isfinite()).flatten(1).any(1).nonzero()[0]) if part.dim() > 1 else 0
            raise ValueError(
                f"the {name} must be finite, got NaN or infinity in sample {first} of {where}; leave out such samples"
            )
        if name.startswith("gap") and bool((part < 0).any()):
            raise ValueError(f"the {name} of a prediction must be >= 0, got {float(part.min())}; see Prediction")
    return target


def stand_in(method: Any) -> Any:
    """Return a shallow copy of a method, whose attributes may be set without changing those of the method itself.

    Other threads may predict with the method meanwhile.
    """
    if not isinstance(method, nn.Module):
        return copy.copy(method)
    copied = object.__new__(type(method))
    copied.__dict__.update(method.__dict__)
    copied.__dict__["_modules"] = dict(copied._modules)
    return copied


def without(method: Any, *names: str) -> Any:
    """Return a method that does not do to its bounds afterwards what these names say, such as ``"calibration"``."""
    off = [name for name in names if getattr(method, name, None) is not None]
    method = stand_in(method) if off else method
    for name in off:
        setattr(method, name, None)
    return method


def summed(x: Tensor) -> Tensor:
    """Return the sum of ``x`` over all processes; ``x`` itself where there is just one."""
    if dist.is_available() and dist.is_initialized():
        x = x.clone()
        dist.all_reduce(x)
    return x
