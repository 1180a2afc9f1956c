"""Fingerprint: what tells one model from another, and how two of them differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn.files.container import sha256

__all__ = ["difference", "fingerprint", "named_tensors"]

Fingerprint = dict[str, Any]  # plain values, so that it can be written as JSON


def fingerprint(model: nn.Module) -> Fingerprint:
    """Return what tells a model from others, as plain values.

    These are ``"tensors"``: shape, dtype and checksum of every parameter and buffer, and which
    of them are tied; ``"modules"``: the class of every module and its settings, the plain values
    among its public attributes (a stride, a slope, a mode); and ``"digest"``, one checksum over
    all tensors. What a forward does beyond that is not seen: code has no fingerprint.

    Example:
        >>> a, b = nn.Linear(2, 1), nn.Linear(2, 1)
        >>> difference(fingerprint(a), fingerprint(nn.Linear(3, 1)))
        "parameter 'weight' must have shape (1, 2), got (1, 3)"
        >>> _ = b.load_state_dict(a.state_dict())
        >>> fingerprint(a) == fingerprint(b)
        True
    """
    first: dict[int, str] = {}
    tensors = {
        name: _tensor(name, kind, tensor, first.setdefault(id(tensor), name))
        for name, kind, tensor in named_tensors(model)
    }
    modules = {name: _module(module) for name, module in model.named_modules(remove_duplicate=False)}
    digest = hashlib.sha256(json.dumps(tensors).encode()).hexdigest()
    return {"digest": digest, "tensors": tensors, "modules": modules}


def named_tensors(model: nn.Module) -> Iterator[tuple[str, str, Tensor]]:
    """Yield name, kind and value of every parameter and buffer, under each of their names."""
    for name, parameter in model.named_parameters(remove_duplicate=False):
        yield name, "parameter", parameter
    for name, buffer in model.named_buffers(remove_duplicate=False):
        yield name, "buffer", buffer


def difference(want: Fingerprint, got: Fingerprint, *, values: bool = True) -> str | None:
    """Return the first difference between two models in words, or None if there is none.

    Args:
        want: The model as it must be.
        got: The model as it is.
        values: Compare the numbers too, not the structure alone.
    """
    checks = chain(
        _structures(want["tensors"], got["tensors"]),
        _modules(want["modules"], got["modules"]),
        _values(want["tensors"], got["tensors"]) if values else (),
    )
    return next(checks, None)


def _tensor(name: str, kind: str, tensor: Tensor, same_as: str) -> dict[str, Any]:
    if tensor.device.type == "meta" or tensor.layout != torch.strided:
        where = "the meta device" if tensor.device.type == "meta" else f"the layout {tensor.layout}"
        raise ValueError(f"{kind} '{name}' must be a dense tensor with values, got one on {where}")
    about = {"kind": kind, "shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}
    return {**about, **({"same_as": same_as} if same_as != name else {"sha256": sha256(tensor)})}


def _module(module: nn.Module) -> dict[str, Any]:
    settings = {
        name: repr(value)
        for name, value in sorted(vars(module).items())
        if name != "training" and not name.startswith("_") and _is_plain(value, module)
    }
    return {"class": type(module).__name__, "settings": settings}


def _is_plain(value: Any, module: nn.Module) -> bool:
    """Return whether a value is a setting; a string of a user's own module may be a path or a label."""
    if isinstance(value, tuple | list):
        return all(_is_plain(each, module) for each in value)
    kinds = (bool, int, float, str) if type(module).__module__.startswith("torch.nn.") else (bool, int, float)
    return value is None or type(value) in kinds


def _structures(want: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[str]:
    for name, wanted in want.items():
        kind, came = wanted["kind"], got.get(name)
        if came is None:
            yield f"the model must have a {kind} '{name}' of shape {tuple(wanted['shape'])}, and has none"
            return
        if came["kind"] != kind:
            yield f"'{name}' must be a {kind}, got a {came['kind']}"
        if came["shape"] != wanted["shape"]:
            yield f"{kind} '{name}' must have shape {tuple(wanted['shape'])}, got {tuple(came['shape'])}"
        if came["dtype"] != wanted["dtype"]:
            yield f"{kind} '{name}' must have dtype {wanted['dtype']}, got {came['dtype']}"
        if came.get("same_as") != wanted.get("same_as"):
            yield f"{kind} '{name}' must be {_tie(wanted)}, got one that is {_tie(came)}"
    for name in (extra for extra in got if extra not in want):
        yield f"the model must not have a {got[name]['kind']} '{name}', and has one"


def _tie(about: Mapping[str, Any]) -> str:
    return f"tied to '{about['same_as']}'" if "same_as" in about else "tied to none before it"


def _modules(want: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[str]:
    """Yield differences between modules; a setting that only one side knows came with another version."""
    for name, wanted in want.items():
        what, came = f"module '{name}'" if name else "the model", got.get(name)
        if came is None:
            yield f"the model must have a module '{name}' of class {wanted['class']}, and has none"
            return
        if came["class"] != wanted["class"]:
            yield f"{what} must be of class {wanted['class']}, got {came['class']}"
        for key, value in wanted["settings"].items():
            if came["settings"].get(key, value) != value:
                yield f"{what} must have {key}={value}, got {came['settings'][key]}"
    for name in (extra for extra in got if extra not in want):
        yield f"the model must not have a module '{name}', and has one of class {got[name]['class']}"


def _values(want: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[str]:
    for name, wanted in want.items():
        ours, theirs = wanted.get("sha256"), got[name].get("sha256")
        if ours != theirs:
            yield f"{wanted['kind']} '{name}' must have values of sha256 {ours[:12]}..., got {theirs[:12]}..."
