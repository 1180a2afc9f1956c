"""Faithful: whether a captured program returns what the model itself returns."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx, nn

from intervalnn.interval import Interval
from intervalnn.network.capture import Call, Program
from intervalnn.network.failures import refuse_call
from intervalnn.network.parts import is_plain
from intervalnn.network.twin import twin

__all__ = ["refuse_unfaithful"]

_REPEATS = 8  # calls of a model that draws random numbers, which may agree by chance


def refuse_unfaithful(model: nn.Module, call: Call, program: Program) -> None:
    """Raise if the model, called twice, does not return what its program does.

    ``torch.export`` writes down what one call computes. What the model keeps from one call to the next, or draws at
    random in Python, stands in the program as it was in that one call. So both run on the given input and on a second
    one. Rounding may differ, where torch has taken an operation apart.

    Args:
        model: The model. A fresh twin of it runs, so that the model itself is left as it is.
        call: The call that was captured.
        program: What was captured.
    """
    own, given = twin(model), _points(call)
    values, before, drawn = _weights(model, program), _attributes(own), _draws()
    if any(tensor.is_meta for tensor in (*given, *values.values())):
        return  # there are no numbers to compare
    inputs = [given, _second(given)]
    for turn, tensors in enumerate(inputs + [given] * _REPEATS):
        if turn >= len(inputs) and _draws() == drawn:
            return
        found = _run(own, call, tensors)
        if found is None:  # it may refuse the second input, which nobody gave
            if turn != 1:
                refuse_call(model, call)
            continue
        off = _difference(found, _leaves(_replay(program, values, tensors)))
        if off:
            raise ValueError(_told(model, off, turn, _changed(own, before), _draws() != drawn))


def _points(call: Call) -> list[Tensor]:
    return [(t.point if isinstance(t, Interval) else t).detach() for t in call.tensors]


def _second(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return other inputs of the same kind: numbers in another order, closer to zero; indices and masks as they are."""
    return [0.875 * t.flip(tuple(range(t.dim()))) if _is_number(t) else t for t in tensors]


def _is_number(x: Tensor) -> bool:
    return (x.is_floating_point() or x.is_complex()) and x.layout == torch.strided


@torch.no_grad()
def _run(model: nn.Module, call: Call, tensors: Sequence[Tensor]) -> list[Any] | None:
    """Return what the model returns, or None if it takes no such input; it may write to copies of its inputs."""
    args, kwargs = call.rebuild([tensor.clone() for tensor in tensors])
    try:
        return _leaves(model(*args, **kwargs))
    except Exception:
        return None


def _weights(model: nn.Module, program: Program) -> dict[str, Tensor]:
    """Return what the program reads of the model, by placeholder."""
    held = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
    known = program.constants | held
    return {name: known[s.name].detach() for name, s in program.sources.items() if s.name in known}


@torch.no_grad()
def _replay(program: Program, weights: dict[str, Tensor], tensors: Sequence[Tensor]) -> Any:
    """Return what the program returns for its points."""
    sources = program.sources.items()
    values = [tensors[s.index] if s.kind == "input" else weights.get(name) for name, s in sources]
    return fx.Interpreter(fx.GraphModule({}, program.graph)).run(*values)


def _leaves(output: Any) -> list[Any]:
    return [leaf for leaf in pytree.tree_leaves(output) if leaf is not None]


def _difference(own: list[Any], found: list[Any]) -> str:
    """Say by how much two outputs differ, beyond rounding; nothing if they do not."""
    for a, b in zip(own, found, strict=False):
        if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
            continue
        if a.shape != b.shape:
            return f"the shape {tuple(b.shape)} instead of {tuple(a.shape)}"
        if not (a.is_floating_point() or a.is_complex()):
            if not torch.equal(a, b):
                return f"other values of {a.dtype}"
            continue
        size = a[a.isfinite()].abs().max().item() if a.isfinite().any() else 0.0
        rounding = torch.finfo(a.dtype).eps ** 0.5 * size
        if not torch.allclose(a, b.to(a.dtype), rtol=0.0, atol=rounding, equal_nan=True):
            off = (a - b)[a.isfinite() & b.isfinite()].abs()
            return f"values that are off by up to {off.max().item() if off.numel() else torch.inf:.3g}, of {size:.3g}"
    return ""


def _draws() -> list[Any]:
    """Return the states of the random numbers that all share."""
    numpy: Any = sys.modules.get("numpy")
    states = [random.getstate(), torch.get_rng_state().tolist()]
    return states if numpy is None else [*states, repr(numpy.random.get_state(legacy=False))]


def _attributes(model: nn.Module) -> dict[str, tuple[Any, int]]:
    """Return what the modules hold besides parameters and other modules, and how long it is."""
    held = ((name, vars(module) | module._buffers) for name, module in model.named_modules())
    return {
        f"{name}.{key}".lstrip("."): (value, len(value) if isinstance(value, list | dict | set) else 0)
        for name, items in held
        for key, value in items.items()
        if key not in _BOOKKEEPING
    }


_BOOKKEEPING = set(vars(nn.Module()))


def _changed(model: nn.Module, before: dict[str, tuple[Any, int]]) -> list[str]:
    """Return the names of attributes that are others than before."""
    missing = object(), 0
    return [name for name, now in _attributes(model).items() if not _same(before.get(name, missing), now)]


def _same(a: tuple[Any, int], b: tuple[Any, int]) -> bool:
    equal = a[0] is b[0] or (type(a[0]) is type(b[0]) and is_plain(a[0]) and a[0] == b[0])
    return equal and a[1] == b[1]


def _told(model: nn.Module, off: str, turn: int, changed: list[str], draws: bool) -> str:
    names = ", ".join(f"'{name}'" for name in changed)
    several = "s" if len(changed) > 1 else ""
    why = (
        f"its forward changes the attribute{several} {names}, which it may read in the next call"
        if changed
        else "it draws random numbers"
        if draws
        else "it may keep something from one call to the next, or read a clock or random numbers"
    )
    which = "the input" if turn != 1 else "a second input"
    return (
        f"{type(model).__name__} has no one output to bound: for {which} its captured program returns {off}; {why}. "
        "Pass what changes as an argument, return what is new, and draw random numbers outside of the model"
    )
