"""Values: what goes in and comes out of a program, with the sizes that may vary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

__all__ = ["Size", "Value", "described", "number_or_name"]

Size = int | str


@dataclass(frozen=True, slots=True)
class Value:
    """What goes in or comes out under one name.

    Attributes:
        shape: Its sizes: numbers, and names of those that may vary.
        dtype: Its data type.
    """

    shape: tuple[Size, ...]
    dtype: str


def described(inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> tuple[dict[str, Value], dict[str, Value]]:
    """Describe what goes in and what comes out, with plain names for the sizes that vary.

    Sizes that must be equal have the same name.
    """
    axes = _axes(inputs)
    taken, returned = ({name: _value(x, axes) for name, x in values.items()} for values in (inputs, outputs))
    return taken, returned


def number_or_name(size: Any) -> Size:
    """Return one of torch's sizes as a number where it is fixed: torch may find that only one will do."""
    return int(size) if str(size).isdecimal() else str(size)


def _axes(inputs: Mapping[str, Tensor]) -> dict[str, str]:
    """Return plain names for the sizes that vary, by torch's own."""
    axes: dict[str, str] = {}
    for name, tensor in inputs.items():
        for d, size in enumerate(map(number_or_name, tensor.shape)):
            if isinstance(size, str) and size not in axes:
                usual = _usual_name(d, tensor.dim())
                axes[size] = f"{name}_{d}" if usual is None or usual in axes.values() else usual
    return axes


def _usual_name(d: int, rank: int) -> str | None:
    if d == 0:
        return "batch"
    if rank == 3:
        return "length"
    return {(4, 2): "height", (4, 3): "width", (5, 2): "depth", (5, 3): "height", (5, 4): "width"}.get((rank, d))


def _value(x: Tensor, axes: Mapping[str, str]) -> Value:
    def named(size: Size) -> Size:
        if isinstance(size, int):
            return size
        return axes.get(size) or re.sub(r"\w+", lambda found: axes.get(found[0], found[0]), size)

    return Value(tuple(named(number_or_name(size)) for size in x.shape), str(x.dtype).removeprefix("torch."))
