"""A twin of a module: other objects that hold the same, so that what happens to it happens to no one else."""

from __future__ import annotations

import collections
import copy
import functools
import random
import sys
import types
import weakref
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Twin"]


class Twin:
    """A copy of a module and of all that it holds in Python.

    While ``torch.export`` captures a module, it puts stand-ins in the place of its parameters, and the module's own
    forward may leave a trace of them in attributes, lists and closures. All this happens to the twin. The module
    itself is only read, and may run in another thread meanwhile.

    Args:
        model: The module.
        with_tensors: Whether tensors are copied too, so that the twin may write to them. Tensors that share memory
            in the module share memory in the twin. Else the twin holds the tensors of the module.

    Attributes:
        module: The copy. What it holds by weak references lives as long as the twin.
        generators: The copies of the random generators that it holds.
    """

    def __init__(self, model: nn.Module, *, with_tensors: bool = False) -> None:
        self.with_tensors = with_tensors
        self.generators: list[Any] = []
        self._made: dict[int, tuple[Any, Any]] = {}  # by identity, with the originals, which must live as long
        self._memory: dict[Any, torch.UntypedStorage] = {}
        self._taken = [_memory(tensor) for tensor in (*model.parameters(), *model.buffers()) if not tensor.is_meta]
        self.module: nn.Module = self._of(model)

    def _of(self, value: Any) -> Any:
        """Return the twin of any value."""
        if id(value) in self._made:
            return self._made[id(value)][1]
        kind = type(value)
        if kind in _ATOMS or (isinstance(value, Tensor) and not self.with_tensors):
            return value
        if isinstance(value, Tensor):
            return self._keep(value, self._tensor(value))
        if _is_container(kind):
            return self._container(value)
        if kind in (weakref.ref, *weakref.ProxyTypes):
            return self._reference(value)
        if _is_generator(value):
            self.generators.append(self._keep(value, _copied_generator(value)))
            return self.generators[-1]
        if kind is types.BuiltinMethodType:
            own = value.__self__
            bound = _is_generator(own) and own is not random.random.__self__  # type: ignore[attr-defined] # all have it
            return getattr(self._of(own), value.__name__) if bound else value
        if kind is types.MethodType:
            return types.MethodType(value.__func__, self._of(value.__self__))
        if kind is types.FunctionType:
            return self._function(value)
        if kind is functools.partial:
            function, args, kwargs = self._of((value.func, value.args, value.keywords))
            return functools.partial(function, *args, **kwargs)
        if _is_array(value):
            first = value.__array_interface__["data"][0]
            shared = any(start <= first < end for start, end in self._taken)
            return value if shared else self._keep(value, value.copy())
        return self._object(value) if issubclass(kind, nn.Module) or _is_plain(kind) else value

    def _keep(self, value: Any, copied: Any) -> Any:
        self._made[id(value)] = value, copied
        return copied

    def _object(self, value: Any) -> Any:
        copied = self._keep(value, object.__new__(type(value)))
        self._attributes(value, copied)
        return copied

    def _attributes(self, value: Any, copied: Any) -> None:
        for name in _slots(type(value)):
            if hasattr(value, name):
                object.__setattr__(copied, name, self._of(getattr(value, name)))  # as frozen dataclasses forbid theirs
        if hasattr(value, "__dict__"):
            copied.__dict__.update({name: self._of(item) for name, item in list(value.__dict__.items())})

    def _container(self, value: Any) -> Any:
        kind: Any = type(value)
        own = _container_of(kind)
        if own is tuple:
            items = tuple(self._of(item) for item in value)
            same = all(a is b for a, b in zip(items, value, strict=True))
            return value if same else tuple.__new__(kind, items)
        # The methods of Python's own containers, since a subclass may forbid its own, as frozen dicts do.
        copied = self._keep(value, own.copy(value) if kind is own else kind.__new__(kind))
        own.clear(copied)  # a copy has the factory of a defaultdict, and the length of a deque
        if issubclass(own, dict):
            for key, item in list(own.items(value)):
                own.__setitem__(copied, self._of(key) if isinstance(key, nn.Module | Tensor) else key, self._of(item))
        else:
            add = own.add if own is set else own.append
            for item in list(own.__iter__(value)):
                add(copied, self._of(item))
        if kind is not own:
            self._attributes(value, copied)
        return copied

    def _function(self, value: types.FunctionType) -> types.FunctionType:
        """Return a function over twins of what it has closed over, and of its defaults; itself where it has none."""
        defaults, by_name = self._of(value.__defaults__), self._of(value.__kwdefaults__)
        if not value.__closure__ and defaults is value.__defaults__ and not by_name:
            return value
        cells = tuple(types.CellType() for _ in value.__closure__ or ())
        copied = types.FunctionType(value.__code__, value.__globals__, value.__name__, defaults, cells)
        copied.__kwdefaults__ = by_name
        copied.__dict__.update(value.__dict__)
        self._keep(value, copied)
        for cell, own in zip(cells, value.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self._of(own.cell_contents)
            except ValueError:  # a name that has no value yet
                continue
        return copied

    def _reference(self, value: Any) -> Any:
        """Return a weak reference to the twin of a module, such as the one that this one is a part of."""
        try:
            target = value() if type(value) is weakref.ref else value.__repr__.__self__
        except ReferenceError:
            return value
        make = weakref.ref if type(value) is weakref.ref else weakref.proxy
        return make(self._of(target)) if isinstance(target, nn.Module) else value

    def _tensor(self, value: Tensor) -> Tensor:
        """Return a tensor with memory of its own, which it shares with the copies of what shares its memory."""
        with torch.no_grad():
            copied = self._view(value)
        if isinstance(value, nn.Parameter):
            copied = nn.Parameter(copied, requires_grad=False)
        if type(copied) is not type(value):
            copied = copied.as_subclass(type(value))
        copied.requires_grad_(value.requires_grad)
        self._keep(value, copied)
        copied.__dict__.update({name: self._of(item) for name, item in value.__dict__.items()})
        return copied

    def _view(self, value: Tensor) -> Tensor:
        value = value.detach()
        if value.layout != torch.strided or value.is_meta or value.is_conj() or value.is_neg():
            return value.clone()
        memory = value.untyped_storage()
        key = value.device, memory.data_ptr()
        if key not in self._memory:
            self._memory[key] = memory.clone()
        empty = torch.empty(0, dtype=value.dtype, device=value.device)
        return empty.set_(self._memory[key], value.storage_offset(), value.size(), value.stride())


def _memory(x: Tensor) -> tuple[int, int]:
    """Return where the memory of a tensor begins and ends, if it has any."""
    if x.layout != torch.strided:
        return 0, 0
    storage = x.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _is_array(value: Any) -> bool:
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray


def _container_of(kind: type) -> Any:
    """Return which of Python's own containers a class is, or extends."""
    return next((base for base in kind.__mro__ if base in _CONTAINERS), None)


def _is_container(kind: type) -> bool:
    """Say whether a class is one of Python's own containers, or one with more methods that is made like it."""
    own = _container_of(kind)
    if own is tuple:
        return kind is tuple or hasattr(kind, "_fields")
    return own is kind or (own in (dict, list, set, collections.OrderedDict) and kind.__new__ is own.__new__)


def _slots(kind: type) -> list[str]:
    """Return the names of the slots of a class."""
    return [
        name for base in kind.__mro__ if "__slots__" in vars(base)
        for name, slot in vars(base).items() if isinstance(slot, types.MemberDescriptorType)
    ]  # fmt: skip


def _is_plain(kind: type) -> bool:
    """Say whether objects of a class are nothing but their attributes: no tricks, no part written in C."""
    return (
        not issubclass(kind, type | BaseException | types.ModuleType)
        and kind.__new__ is object.__new__
        and (kind.__dictoffset__ != 0 or bool(_slots(kind)))
        and all(base.__module__ not in _LEFT_ALONE for base in kind.__mro__[:-1])
    )


def _is_generator(value: Any) -> bool:
    """Say whether a value is a random generator of Python, NumPy or torch, whose state can be copied."""
    numpy: Any = sys.modules.get("numpy")
    kinds = (random.Random, torch.Generator)
    kinds += () if numpy is None else (numpy.random.Generator, numpy.random.RandomState)
    return isinstance(value, kinds) and not isinstance(value, random.SystemRandom)


def _copied_generator(value: Any) -> Any:
    return value.clone_state() if isinstance(value, torch.Generator) else copy.deepcopy(value)


_ATOMS = {type(None), bool, int, float, complex, str, bytes, types.ModuleType, type}
_CONTAINERS = {dict, list, tuple, set, collections.OrderedDict, collections.defaultdict, collections.deque}
_LEFT_ALONE = {"threading", "logging", "weakref", "io", "_io", "re", "pathlib"}
