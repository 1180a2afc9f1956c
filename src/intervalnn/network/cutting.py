"""Cutting: a call taken a few samples at a time, and what comes back joined again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.given import refuse_input
from intervalnn.network.capture.parts import Structure

__all__ = ["cut", "joined"]


def cut(call: Call, size: int) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield the arguments of calls for ``size`` samples each, along the first dimension of every tensor."""
    if size < 1:
        raise ValueError(f"batch_size must be at least 1, got {size}")
    for x in call.tensors:
        refuse_input(x.point if isinstance(x, Interval) else x)
    total = call.tensors[0].shape[:1] if call.tensors else (1,)  # none at all is refused where it is captured
    if not total or any(t.shape[:1] != total for t in call.tensors):
        shapes = [tuple(t.shape) for t in call.tensors]
        raise ValueError(f"with batch_size, all tensors must have one first dimension, got shapes {shapes}")
    for start in range(0, max(*total, 1), size):
        yield call.rebuild([t[start : start + size] for t in call.tensors])


def joined(parts: Sequence[Any]) -> Any:
    """Join the outputs of several calls along their first dimension."""
    flat = [Structure.of(part) for part in parts]
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    return flat[0][1].rebuild([_cat(column) for column in columns])


def _cat(column: tuple[Any, ...]) -> Any:
    if isinstance(column[0], Interval):
        return Interval(*(torch.cat(part) for part in zip(*((x.point, x.below, x.above) for x in column), strict=True)))
    return torch.cat(column) if isinstance(column[0], Tensor) else column[0]
