"""Layers: which parameters of a model get gaps."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from intervalnn.network.capture.program import Program
from intervalnn.table import lookup

__all__ = ["Layers", "chosen", "did_you_mean", "last", "layer_of", "layers_in", "tied"]

Layers = str | int | Iterable[str] | Callable[[str, nn.Module], bool]


def tied(model: nn.Module) -> dict[str, str]:
    """Return for each parameter its name, or the first name of the one it is tied to."""
    first: dict[int, str] = {}
    return {
        name: first.setdefault(id(parameter), name)
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if parameter.is_floating_point() or parameter.is_complex()
    }


def layer_of(name: str) -> str:
    """Return the name of the layer that a parameter belongs to."""
    return name.rpartition(".")[0].partition("parametrizations")[0].rstrip(".")


def chosen(model: nn.Module, layers: Layers) -> list[str]:
    """Return the parameters that ``layers``, anything but a number, stands for."""
    names = list(tied(model))
    if isinstance(layers, str):
        if layers != "all":
            raise ValueError(
                f"layers must be 'all', a number, names or a predicate, got {layers!r}; for one name: [{layers!r}]"
            )
        return names
    if callable(layers) and not isinstance(layers, nn.Module | type):
        return [name for name in names if layers(layer_of(name), model.get_submodule(layer_of(name)))]
    known: Any = list(layers) if isinstance(layers, Iterable) and not isinstance(layers, Tensor) else [layers]
    if not all(isinstance(wanted, str) for wanted in known):
        raise TypeError(
            f"layers must be 'all', a number, names or a predicate, got {reprlib.repr(layers)}; names are those of "
            "model.named_modules() or model.named_parameters()"
        )
    found_all: list[str] = []
    for wanted in known:
        found = [name for name in names if name == wanted or name.startswith(wanted + ".")]
        if not found:
            raise ValueError(f"the model has no layer or parameter '{wanted}'{did_you_mean(wanted, _known(names))}")
        found_all += found
    return found_all


def _known(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(part for name in names for part in (layer_of(name), name) if part))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message: what ``name`` may have been meant to be."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=3) or known[:8]
    return f"; did you mean {' or '.join(repr(c) for c in close)}?" if close else "; it has no parameters at all"


def layers_in(program: Program) -> int:
    """Return how many weight layers there are."""
    return len({layer_of(name) for name in _weights_in_order(program)})


def last(count: int, program: Program, own: Mapping[str, str]) -> list[str]:
    """Return the parameters of the last ``count`` weight layers, by when they first run."""
    order = list(dict.fromkeys(layer_of(name) for name in _weights_in_order(program)))
    if not order:
        raise ValueError(
            f"layers={count} asks for the last weight layers (linear, convolution, embedding), and none of the model's "
            "parameters is the weight of one; give names, or layers='all'"
        )
    if not 0 < count <= len(order):
        raise ValueError(f"layers must be between 1 and {len(order)}, the number of weight layers, got {count}")
    last = set(order[-count:])
    return [name for name in own if layer_of(name) in last]


def _weights_in_order(program: Program) -> Iterator[str]:
    """Yield the parameters that products and look-ups multiply or index, in the order in which they run."""
    from_weights: dict[Any, list[str]] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            source = program.sources[node.name]
            if source.kind != "input":
                from_weights[node] = [source.name] if source.kind == "parameter" else []
        elif node.op == "call_function":
            parents = node.all_input_nodes
            if parents and all(p in from_weights for p in parents):
                from_weights[node] = [name for p in parents for name in from_weights[p]]
                continue
            entry = lookup(node.target)
            if (entry is not None and entry.prepare is not None) or "embedding" in str(node.target):
                yield from (name for p in parents for name in from_weights.get(p, []))
