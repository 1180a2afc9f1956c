"""Taps: values that a model computes on the way to an output, from which a scout may learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx

from intervalnn.network.capture.program import Program
from intervalnn.network.layers import did_you_mean, layer_of
from intervalnn.table import lookup

__all__ = ["Fit", "Tap", "chosen", "fitting", "sizes", "taps_of"]


@dataclass(frozen=True, slots=True)
class Tap:
    """A value that a weight layer takes.

    Attributes:
        layer: Name of the layer that takes it, with its number behind a # where the layer runs several times.
        node: Name of the value in the program's graph.
        grid: Whether its channels stand behind the batch, as a convolution has them; else they stand last.
        shape: Its sizes in the call that was captured.
    """

    layer: str
    node: str
    grid: bool
    shape: tuple[int, ...]

    @property
    def channels(self) -> int:
        """How many channels it has."""
        return self.shape[1 if self.grid else -1]


@dataclass(frozen=True, slots=True)
class Fit:
    """How a tap is brought to the positions of an output.

    Attributes:
        layer: See :class:`Tap`.
        channels: How many channels it has.
        grid: Whether its channels stand behind the batch.
        how: ``"same"`` positions; ``"up"``, repeated; ``"down"``, means over windows; ``"mean"`` over all positions;
            ``"spread"``, one value for all positions.
        window: Of ``"down"``.
    """

    layer: str
    channels: int
    grid: bool
    how: str = "same"
    window: tuple[int, ...] = ()


def taps_of(program: Program) -> list[Tap]:
    """Return what the weight layers of a program take, in the order in which they run, each value once."""
    found: dict[str, Tap] = {}
    runs: Counter[str] = Counter()
    for node, value, name, grid in _layers(program):
        runs[name] += 1
        tensor = value.meta["val"]
        if isinstance(tensor, Tensor) and tensor.is_floating_point() and tensor.dim() > 1 and node is not None:
            label = name if runs[name] == 1 else f"{name}#{runs[name]}"
            if isinstance(tensor.shape[1 if grid else -1], int):
                found.setdefault(value.name, Tap(label, value.name, grid, sizes(tensor)))
    return list(found.values())


def _layers(program: Program) -> Iterator[tuple[fx.Node, fx.Node, str, bool]]:
    """Yield each weight layer: its call, the value that it takes, its name, and whether it is a convolution."""
    weights: dict[fx.Node, str] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            source = program.sources[node.name]
            if source.kind != "input":
                weights[node] = source.name if source.kind == "parameter" else ""
        elif node.op == "call_function":
            parents = node.all_input_nodes
            if parents and all(parent in weights for parent in parents):
                weights[node] = next(filter(None, (weights[parent] for parent in parents)), "")
                continue
            entry = lookup(node.target)
            operation = str(node.target)
            named = [weights[parent] for parent in parents if weights.get(parent)]
            value = next((parent for parent in parents if parent not in weights), None)
            if named and value is not None and ((entry is not None and entry.prepare is not None) or "mm" in operation):
                yield node, value, layer_of(named[0]), "conv" in operation


def sizes(tensor: Tensor) -> tuple[int, ...]:
    """Return the sizes that a value had when it was captured, those that may vary too."""
    return tuple(size if isinstance(size, int) else size.node.hint for size in tensor.shape)


def fitting(taps: Iterable[Tap], shape: Sequence[int], grid: bool) -> list[tuple[Tap, Fit]]:
    """Return the taps that fit an output, and how.

    Args:
        taps: What :func:`taps_of` returned.
        shape: Sizes of the output, with its channels; these stand behind the batch, or last.
        grid: Which of both.
    """
    pairs = ((tap, _fit(tap, shape, grid)) for tap in taps)
    return [(tap, fit) for tap, fit in pairs if fit is not None]


def _fit(tap: Tap, shape: Sequence[int], grid: bool) -> Fit | None:
    how = _on_grid(tap, shape) if grid else _in_rows(tap, shape)
    return None if how is None else Fit(tap.layer, tap.channels, tap.grid, *how)


def _on_grid(tap: Tap, shape: Sequence[int]) -> tuple[Any, ...] | None:
    if tap.shape[0] != shape[0]:
        return None
    if not tap.grid:
        return ("spread",) if len(tap.shape) == 2 else None
    own, wanted = tap.shape[2:], tuple(shape[2:])
    if len(own) != len(wanted):
        return None
    if own == wanted:
        return ("same",)
    if all(a <= b for a, b in zip(own, wanted, strict=True)):
        return ("up",)
    if all(a % b == 0 for a, b in zip(own, wanted, strict=True)):
        return "down", tuple(a // b for a, b in zip(own, wanted, strict=True))
    return None


def _in_rows(tap: Tap, shape: Sequence[int]) -> tuple[Any, ...] | None:
    if not tap.grid and tap.shape[:-1] == tuple(shape[:-1]):
        return ("same",)
    if len(shape) == 2 and tap.shape[0] == shape[0] and len(tap.shape) > 2:
        return ("mean",)
    return None


def chosen(fits: Sequence[tuple[Tap, Fit]], taps: int | Sequence[str]) -> list[tuple[Tap, Fit]]:
    """Return those of the fitting taps that are asked for: by the names of their layers, or so many over all depths."""
    if not isinstance(taps, int):
        known = {tap.layer: (tap, fit) for tap, fit in fits}
        for name in taps:
            if name not in known:
                raise ValueError(
                    f"no value that fits the output is taken by a layer '{name}'{did_you_mean(name, known)}"
                )
        return [known[name] for name in taps]
    if len(fits) <= taps:
        return list(fits)
    if taps == 1:
        return [fits[0]]
    return [fits[round(i * (len(fits) - 1) / (taps - 1))] for i in range(taps)]
