"""Scouting: which outputs of a program get a scout, and which values it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, fx

from intervalnn.network.capture.program import Program
from intervalnn.network.lifting.lift import Placed
from intervalnn.network.scouts.ranges import range_of
from intervalnn.network.scouts.reading import channels_of
from intervalnn.network.scouts.scout import Features, Lies, Scout, Widening
from intervalnn.network.scouts.taps import Fit, Tap, chosen, fitting, sizes, taps_of

__all__ = ["new_scouts", "placed"]


def new_scouts(program: Program, scout: Scout) -> dict[int, Widening]:
    """Return a scout for each output of a program that is a real number at each of its positions, by its number.

    An output from which no value of the model can be read has none.
    """
    taps = taps_of(program)
    outputs = _outputs(program)
    made = {number: _widening(node, taps, scout) for number, node in outputs.items()}
    return {number: widening for number, widening in made.items() if widening is not None}


def placed(program: Program, scouts: Mapping[int, Widening]) -> dict[int, Placed]:
    """Return where scouts stand in a program, which may have been captured at other sizes."""
    known = {tap.layer: tap.node for tap in taps_of(program)} if scouts else {}
    found = {}
    for number, widening in scouts.items():
        missing = [name for name in widening.taps if name not in known]
        if missing:
            raise ValueError(
                f"the scout reads what the layer '{missing[0]}' takes, and these arguments lead to no such value: "
                "the model does not run the layer, or without a batch; give arguments like those of the first call, or "
                "take scout=False"
            )
        found[number] = Placed(f"scout_{number}", widening, tuple(known[name] for name in widening.taps))
    return found


def _outputs(program: Program) -> dict[int, fx.Node]:
    """Return the outputs of real numbers."""
    values: Any = next(iter(reversed(program.graph.nodes))).args[0]
    tensors = {i: value for i, value in enumerate(values) if isinstance(value, fx.Node)}
    return {i: n for i, n in tensors.items() if isinstance(n.meta["val"], Tensor) and n.meta["val"].is_floating_point()}


def _widening(node: fx.Node, taps: Sequence[Tap], scout: Scout) -> Widening | None:
    """Return the scout of one output, laid out as the layers nearest to it are; None where nothing fits."""
    before = _ancestors(node)
    taps = [tap for tap in taps if tap.node in before]
    shape = sizes(node.meta["val"])
    if not taps or not shape:
        return None
    for grid, lies in _layouts(shape, grid=taps[-1].grid):
        whole = _unfolded(shape, grid, lies)
        fits = fitting(taps, whole, grid)
        if any(fit.how in ("same", "up", "down") for _, fit in fits) or (fits and not grid):
            few = [fit for _, fit in chosen(fits, scout.taps)]
            dims = len(whole) - 2 if grid else 0
            own = Fit("", whole[1 if grid else -1], grid)
            low, high = range_of(node)
            positions = whole[2:] if grid else whole[1:-1]
            channels = None
            if scout.body is not None:
                channels = channels_of(scout.body, _of_width(scout.width, positions, grid), dims)
            features = Features([*few, own], scout, dims, channels)
            return Widening(features, own.channels, dims, lies=lies, low=low, high=high)
    return None


def _of_width(width: int, positions: Sequence[int], grid: bool) -> tuple[int, ...]:
    """Return the sizes of what the layers of a scout take, for one sample."""
    return (1, width, *positions) if grid else (1, *positions, width)


def _layouts(shape: Sequence[int], *, grid: bool) -> list[tuple[bool, Lies]]:
    """Return how an output may be laid out, the likeliest first: with channels behind the batch, or last."""
    rank = len(shape)
    ways: list[tuple[bool, Lies, bool]] = [
        (True, "", 3 <= rank <= 5),
        (True, "folded", 2 <= rank <= 4),
        (False, "", rank > 1),
        (False, "folded", rank == 1),
    ]
    known = [(on_grid, lies) for on_grid, lies, fits in ways if fits]
    vector: list[tuple[bool, Lies]] = [(False, "vector")] if rank > 2 else []
    return [*sorted(known, key=lambda way: way[0] != grid), *vector]


def _unfolded(shape: Sequence[int], grid: bool, lies: Lies) -> tuple[int, ...]:
    if lies == "vector":
        return shape[0], math.prod(shape[1:])
    if lies == "folded":
        return (shape[0], 1, *shape[1:]) if grid else (*shape, 1)
    return tuple(shape)


def _ancestors(node: fx.Node) -> set[str]:
    """Return the names of all values from which a value is computed."""
    found, waiting = set(), [node]
    while waiting:
        for parent in waiting.pop().all_input_nodes:
            if parent.name not in found:
                found.add(parent.name)
                waiting.append(parent)
    return found
