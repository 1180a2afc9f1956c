"""Pairs: what a method predicts for each batch of a loader, and the target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from intervalnn.data.loading import arguments, batches, is_empty, moved, split
from intervalnn.prediction import Method, Prediction, one

__all__ = ["checked", "predicted"]


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
