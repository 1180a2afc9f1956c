"""The tensors inside any Python object, and the object again around others."""

from __future__ import annotations

import io
import pickle
import sys
import types
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.torch_private import pytree

__all__ = ["Parts", "Structure", "is_plain"]

_PLAIN = {type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout}
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def is_plain(value: Any) -> bool:
    """Say whether its type and its text identify a value, as with numbers, text, dtypes and devices."""
    return type(value) in _PLAIN or isinstance(value, _SYMBOLS)


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
        """Return the object with other tensors in the place of its own.

        Raises:
            TypeError: If its class does not put together again what it has taken apart.
        """
        try:
            return _Reader(io.BytesIO(self.content), list(tensors), self.types).load()
        except Exception as error:
            names = ", ".join(kind.__name__ for kind in self.types)
            raise TypeError(
                f"an argument with objects of type {names} cannot be put together again around other tensors "
                f"({type(error).__name__}: {error}); pass its tensors as arguments of their own"
            ) from error


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

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        if isinstance(value, Tensor | Interval):
            self.tensors.append(value)
            return "tensor", len(self.tensors) - 1
        if isinstance(value, type) and value.__module__ != "builtins":
            self.types.append(value)
            return "type", len(self.types) - 1, _settings(value)
        return None

    def reducer_override(self, value: Any) -> Any:
        """Write all attributes of a Python object, those too that its class leaves out of a copy."""
        kind = type(value)
        if kind is torch.Generator:
            raise TypeError("a torch.Generator draws other numbers in each call; pass what it draws")
        if kind is weakref.ref:
            return _referring, (value(),)
        if not _is_made_of_attributes(kind):
            return NotImplemented
        slots = {name: getattr(value, name) for name in _slots(kind) if hasattr(value, name)}
        return _blank, (kind,), (getattr(value, "__dict__", {}), slots), None, None, _fill


class _Reader(pickle.Unpickler):
    """Reads what :class:`_Writer` has written in this process."""

    def __init__(self, file: io.BytesIO, tensors: list[Any], kinds: tuple[type, ...]) -> None:
        super().__init__(file)
        self.kept = {"tensor": tensors, "type": kinds}

    def persistent_load(self, key: tuple[Any, ...]) -> Any:
        return self.kept[key[0]][key[1]]


def _settings(kind: type) -> dict[str, Any]:
    """Return the plain values that a class holds for all its objects."""
    held = {name: value for base in reversed(kind.__mro__[:-1]) for name, value in vars(base).items()}
    return {name: value for name, value in held.items() if is_plain(value) and not name.startswith("__")}


def _is_made_of_attributes(kind: type) -> bool:
    """Say whether objects of a class are nothing but their attributes, and not of Python's own library."""
    new: Any = kind.__new__
    return (
        new is object.__new__
        and not issubclass(kind, type | types.ModuleType)
        and kind.__module__.partition(".")[0] not in sys.stdlib_module_names - {"__main__"}
        and bool(kind.__dictoffset__ or _slots(kind))
        and _is_made_in_python(kind)
    )


def _is_made_in_python(kind: type) -> bool:
    try:
        return type(object.__new__(kind)) is kind
    except TypeError:  # which says so of classes that are written in C
        return False


def _slots(kind: type) -> list[str]:
    """Return the names of the slots of a class."""
    return [
        name for base in kind.__mro__ if "__slots__" in vars(base)
        for name, slot in vars(base).items() if isinstance(slot, types.MemberDescriptorType)
    ]  # fmt: skip


def _blank(kind: type) -> Any:
    return object.__new__(kind)


def _fill(value: Any, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
    attributes, slots = state
    for name, item in slots.items():
        object.__setattr__(value, name, item)  # as frozen dataclasses forbid theirs
    if attributes:
        value.__dict__.update(attributes)


def _referring(target: Any) -> Any:
    return weakref.ref(target) if target is not None else lambda: None
