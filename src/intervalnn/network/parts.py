"""The tensors inside any Python object, and the object again around others."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.torch_private import pytree

__all__ = ["Parts", "Structure", "is_plain"]

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


@dataclass(frozen=True, slots=True)
class Structure:
    """How tensors stand in what a model returns, in objects too that torch does not take apart.

    Attributes:
        spec: The structure that torch knows.
        objects: For each place in it an object, taken apart, whose tensors are put aside; None for anything else.
        counts: How many leaves each place stands for.
    """

    spec: pytree.TreeSpec
    objects: tuple[Parts | None, ...]
    counts: tuple[int, ...]

    @staticmethod
    def of(value: Any) -> tuple[list[Any], Structure]:
        """Return tensors, intervals and plain values, in order, and how they stand in ``value``.

        What cannot be taken apart, such as a generator, is among them.
        """
        places, spec = pytree.tree_flatten(value, is_leaf=lambda x: isinstance(x, Interval))
        objects = [_apart(place) for place in places]
        inside = [[p] if o is None else o.tensors for p, o in zip(places, objects, strict=True)]
        bare = tuple(None if o is None else replace(o, tensors=[]) for o in objects)
        leaves = [leaf for leaves in inside for leaf in leaves]
        return leaves, Structure(spec, bare, tuple(map(len, inside)))

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        """Return the value with others in the place of its leaves."""
        rest = iter(leaves)
        taken = ([next(rest) for _ in range(count)] for count in self.counts)
        places = [t[0] if o is None else o.rebuild(t) for t, o in zip(taken, self.objects, strict=True)]
        return pytree.tree_unflatten(places, self.spec)

    @staticmethod
    def map(change: Callable[[Any], Any], value: Any) -> Any:
        """Return a value with each leaf changed."""
        leaves, structure = Structure.of(value)
        return structure.rebuild([change(leaf) for leaf in leaves])


def _apart(value: Any) -> Parts | None:
    if isinstance(value, Tensor | Interval) or is_plain(value):
        return None
    try:
        return Parts.of(value)
    except TypeError:
        return None


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
