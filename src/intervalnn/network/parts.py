"""The tensors inside any Python object, and the object again around others."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval

__all__ = ["Parts", "is_plain"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes, Enum, torch.dtype, torch.device, torch.layout)
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def is_plain(value: Any) -> bool:
    """Say whether a value is told from others by its type and its text alone."""
    return isinstance(value, _PLAIN + _SYMBOLS)


@dataclass(frozen=True, slots=True)
class Parts:
    """An object that is no tensor, taken apart.

    Attributes:
        tensors: The tensors and intervals inside, in the order in which they are met.
        types: Classes that the object refers to.
        content: All the rest, to the last byte: two objects with the same content differ in their tensors alone.
    """

    tensors: list[Any]
    types: tuple[type, ...]
    content: bytes

    @staticmethod
    def of(value: Any) -> Parts:
        """Take an object apart: a dataclass, a mapping of one's own, a batch of graphs.

        Raises:
            TypeError: If it holds what cannot be told from others by its content, such as a lambda or an open file.
        """
        file = io.BytesIO()
        writer = _Writer(file)
        try:
            writer.dump(value)
        except Exception as error:
            raise TypeError(
                f"an argument of type {type(value).__name__} cannot be taken apart into tensors and plain values "
                f"({type(error).__name__}: {error}), so a second one could not be told from it; pass its tensors "
                "as arguments of their own, or keep it as an attribute of the model"
            ) from error
        return Parts(writer.tensors, tuple(writer.types), file.getvalue())

    def rebuild(self, tensors: Sequence[Any]) -> Any:
        """Return the object with other tensors in the place of its own."""
        return _Reader(io.BytesIO(self.content), list(tensors), self.types).load()


class _Writer(pickle.Pickler):
    """Writes an object, and puts aside tensors, and classes, which need not have a name to be found by."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.tensors: list[Any] = []
        self.types: list[type] = []

    def persistent_id(self, value: Any) -> tuple[str, int] | None:
        if isinstance(value, Tensor | Interval):
            self.tensors.append(value)
            return "tensor", len(self.tensors) - 1
        if isinstance(value, type) and value.__module__ != "builtins":
            self.types.append(value)
            return "type", len(self.types) - 1
        return None


class _Reader(pickle.Unpickler):
    """Reads what :class:`_Writer` has written in this process."""

    def __init__(self, file: io.BytesIO, tensors: list[Any], types: tuple[type, ...]) -> None:
        super().__init__(file)
        self.kept = {"tensor": tensors, "type": types}

    def persistent_load(self, key: tuple[str, int]) -> Any:
        kind, index = key
        return self.kept[kind][index]
