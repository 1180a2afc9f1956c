"""A twin of a module: other objects around the same tensors, so that what happens to it happens to no one else."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any

from torch import Tensor, nn

__all__ = ["twin"]


def twin(model: nn.Module) -> nn.Module:
    """Return a copy of a module and of all that it holds in Python, which shares every tensor with it.

    While ``torch.export`` captures a module, it puts stand-ins in the place of its parameters, and the module's own
    forward may leave a trace of them in attributes, lists and closures. All this happens to the twin. The module
    itself is only read, and may run in another thread meanwhile.
    """
    copy: nn.Module = _twin(model, {})
    return copy


def _twin(value: Any, made: dict[int, tuple[Any, Any]]) -> Any:
    """Return the twin of any value; ``made`` has those that exist, and keeps the originals alive."""
    if id(value) in made:
        return made[id(value)][1]
    kind = type(value)
    if isinstance(value, Tensor) or kind in _ATOMS:
        return value
    if kind in _CONTAINERS:
        return _twin_container(value, made)
    if kind is types.MethodType:
        return types.MethodType(value.__func__, _twin(value.__self__, made))
    if kind is types.FunctionType:
        return _twin_function(value, made)
    if kind is functools.partial:
        parts = _twin((value.func, value.args, value.keywords), made)
        return functools.partial(parts[0], *parts[1], **parts[2])
    if isinstance(value, nn.Module) or _is_plain(kind):
        copy = object.__new__(kind)
        made[id(value)] = value, copy
        copy.__dict__.update({name: _twin(item, made) for name, item in list(value.__dict__.items())})
        return copy
    return value


def _twin_container(value: Any, made: dict[int, tuple[Any, Any]]) -> Any:
    if isinstance(value, tuple):
        copy = tuple(_twin(item, made) for item in value)
        same = all(a is b for a, b in zip(copy, value, strict=True))
        return value if same else copy
    copy = value.copy()  # which keeps the factory of a defaultdict, and the length of a deque
    made[id(value)] = value, copy
    if isinstance(value, dict):
        for key, item in list(value.items()):
            copy[key] = _twin(item, made)
    elif isinstance(value, set):
        copy.clear()
        copy.update(_twin(item, made) for item in list(value))
    else:
        for place, item in enumerate(list(value)):
            copy[place] = _twin(item, made)
    return copy


def _twin_function(value: types.FunctionType, made: dict[int, tuple[Any, Any]]) -> types.FunctionType:
    """Return a function over twins of what it has closed over; the function itself where it has closed over nothing."""
    if not value.__closure__:
        return value
    cells = tuple(types.CellType() for _ in value.__closure__)
    copy = types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, cells)
    copy.__kwdefaults__ = value.__kwdefaults__
    copy.__dict__.update(value.__dict__)
    made[id(value)] = value, copy
    for cell, own in zip(cells, value.__closure__, strict=True):
        try:
            cell.cell_contents = _twin(own.cell_contents, made)
        except ValueError:  # a name that has no value yet
            continue
    return copy


def _is_plain(kind: type) -> bool:
    """Say whether objects of a class are nothing but their ``__dict__``: no slots, no tricks, no part written in C."""
    return (
        not issubclass(kind, type | BaseException | types.ModuleType)
        and kind.__new__ is object.__new__
        and kind.__dictoffset__ != 0
        and not any(base.__dict__.get("__slots__") for base in kind.__mro__)
        and all(base.__module__ not in _LEFT_ALONE for base in kind.__mro__[:-1])
    )


_ATOMS = {type(None), bool, int, float, complex, str, bytes, types.BuiltinFunctionType, types.ModuleType, type}
_CONTAINERS = {dict, list, tuple, set, collections.OrderedDict, collections.defaultdict, collections.deque}
_LEFT_ALONE = {"threading", "logging", "weakref", "io", "_io", "re", "pathlib"}
