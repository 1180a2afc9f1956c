"""Standalone: an interval network as a program of plain tensors, for runtimes that know no intervals."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import Dim, ExportedProgram

from intervalnn.interval import Interval
from intervalnn.network.capture.capture import capture
from intervalnn.network.capture.program import Program
from intervalnn.network.capture.quiet import quiet
from intervalnn.network.capture.undisturbed import undisturbed
from intervalnn.network.network import IntervalNetwork
from intervalnn.network.search import planned
from intervalnn.prediction import Prediction
from intervalnn.saving.exporting.example import Example
from intervalnn.saving.exporting.names import flat
from intervalnn.saving.exporting.values import Value, described, number_or_name
from intervalnn.torch_private import guards_of, pytree

__all__ = ["Standalone", "standalones"]


@dataclass(frozen=True, slots=True, eq=False)
class Standalone:
    """An interval network as torch exports it.

    Attributes:
        exported: From the inputs to the outputs, by name; the split weights are constants in it.
        model: What the underlying model computes, with the lines of its code.
        inputs: What it takes, by name, in order.
        outputs: What it returns.
    """

    exported: ExportedProgram
    model: Program
    inputs: dict[str, Value]
    outputs: dict[str, Value]

    def takes(self, example: Example) -> bool:
        """Say whether the fixed sizes are those of an example, and those equal that must be."""
        named: dict[str, int] = {}
        return all(
            (named.setdefault(want, n) if isinstance(want, str) else want) == n for want, n in self._sizes(example)
        )

    def varying(self, example: Example) -> dict[str, int]:
        """Return the sizes of an example that may vary, by name."""
        return {axis: n for axis, n in self._sizes(example) if isinstance(axis, str)}

    def resized(self, example: Example, sizes: Mapping[str, int]) -> Example:
        """Return an example at other sizes of what may vary."""
        new = self.varying(example) | dict(sizes)
        return example.resized(
            [[new[n] if isinstance(n, str) else n for n in value.shape] for value in self.inputs.values()]
        )

    def _sizes(self, example: Example) -> Iterator[tuple[int | str, int]]:
        for value, shape in zip(self.inputs.values(), example.shapes, strict=True):
            yield from zip(value.shape, shape, strict=True)


def standalones(
    net: IntervalNetwork, example: Example, outputs: Sequence[str], *, dynamic: bool, conditions: bool = True
) -> Iterator[Standalone]:
    """Yield a network as one program: first for all sizes that torch can follow through the model, then for fewer.

    Args:
        net: The network.
        example: A call of it.
        outputs: What to return of each :class:`Prediction`.
        dynamic: Whether sizes may vary at all.
        conditions: Whether they may where the program does not hold for all of them, but for multiples of 16, say.
    """
    *attempts, last = _programs(net, example, dynamic)
    for program in attempts:
        holds = False
        with contextlib.suppress(Exception):  # torch may fail in many ways
            made = _standalone(net, program, example, outputs)
            holds = (conditions or not guards_of(made.exported)) and _holds(net, made, example, outputs)
        if holds:
            yield made
    yield _standalone(net, last, example, outputs)


def _holds(net: IntervalNetwork, made: Standalone, example: Example, outputs: Sequence[str]) -> bool:
    """Say whether a program predicts as the network does where the model goes another way, as far as that is found.

    A model may branch on sizes, and not every file can refuse those of the other branch: ONNX has no conditions.
    """
    run: Any = made.exported.module(check_guards=False)
    for other in filter(lambda each: each.runs(net.model), _beyond(made, example)):
        args, kwargs = other.arguments
        with contextlib.suppress(Exception), torch.no_grad():  # it may refuse
            wanted = flat(net.predict(*args, **kwargs), outputs)
            if not _is_same(run(*other.tensors), wanted):
                return False
    return True


def _is_same(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> bool:
    pairs = [(found[name].double(), wanted[name].double()) for name in wanted]
    if any(a.shape != b.shape for a, b in pairs):
        return False
    size = max((float(b.abs().nan_to_num(0.0, 0.0, 0.0).amax()) for _, b in pairs if b.numel()), default=0.0)
    return all(torch.allclose(a, b, rtol=1e-3, atol=1e-3 * size, equal_nan=True) for a, b in pairs)


def _beyond(made: Standalone, example: Example) -> Iterator[Example]:
    """Yield the example at sizes that do not meet the conditions of the program: near the numbers in these."""
    program = made.model
    numbers = {c for guard in program.guards for c in guard.co_consts if isinstance(c, int)}
    numbers |= {int(end) for ends in program.ranges.values() for end in ends if math.isfinite(end)}
    for axis, n in made.varying(example).items():
        tried = {n // 2, n + 1, *(c + d for c in numbers for d in (-1, 0, 1))}
        for size in sorted(tried & set(range(1, 2 * n + 2))):
            other = made.resized(example, {axis: size})
            if not program.fits(other.tensors):
                yield other


def _programs(net: IntervalNetwork, example: Example, dynamic: bool) -> Iterator[Program]:
    """Yield what the model computes: for any size of any dimension, for any batch, for these sizes alone."""
    batch = capture(net.model, example.call)
    read = [origin.index for origin in batch.read if origin.kind == "input"]
    if read:
        raise ValueError(
            f"{type(net.model).__name__} reads numbers of input {read[0]} (counted from 0) to choose its way or its "
            "sizes, so a file would hold for these numbers alone; give what it reads as a plain number, not as a tensor"
        )
    if dynamic:
        seen = [replace(batch, sizes=[(0,) * len(shape) for shape in example.shapes])]  # so that every size is new
        yield from (program for program in (capture(net.model, example.call, seen), batch) if any(_varying(program)))
    yield replace(batch, sizes=list(example.shapes))


def _varying(program: Program) -> list[dict[int, Any]]:
    """Return by input which dimensions may vary."""
    return [
        {d: Dim.AUTO for d, size in enumerate(sizes) if isinstance(number_or_name(size), str)}
        for sizes in program.sizes
    ]


def _standalone(net: IntervalNetwork, program: Program, example: Example, outputs: Sequence[str]) -> Standalone:
    module = _named(_Forward(net, program, outputs), example.names)

    def export() -> ExportedProgram:
        with torch.no_grad(), quiet():
            inputs, sizes = tuple(example.tensors), tuple(_varying(program))
            return torch.export.export(module, inputs, dynamic_shapes=sizes, strict=False)

    exported = undisturbed(export)
    nodes = {node.name: node.meta.get("val") for node in exported.graph.nodes}
    taken, returned = (
        [nodes[name] for name in of]
        for of in (exported.graph_signature.user_inputs, exported.graph_signature.user_outputs)
    )
    by_name = pytree.tree_unflatten(returned, exported.call_spec.out_spec)
    return Standalone(exported, program, *described(dict(zip(example.names, taken, strict=True)), by_name))


class _Forward(nn.Module):
    """From the tensors of a call to the named outputs, with weights that were split before."""

    def __init__(self, net: IntervalNetwork, program: Program, outputs: Sequence[str]) -> None:
        super().__init__()
        plan = planned(program, net)
        with torch.no_grad():
            self.prepared = plan.current().values
        self.lifted, self.returned = plan.lifted.run, program.returned
        self.changes = [change for change in (net.offsets, net.calibration) if change is not None]
        self.outputs = outputs

    def forward(self, *tensors: Tensor) -> dict[str, Tensor]:
        results = self.lifted(*self.prepared, *tensors)
        predictions = [self._prediction(x) if isinstance(x, Interval) else x for x in results]
        return flat(self.returned.rebuild(predictions), self.outputs)

    def _prediction(self, bounds: Interval) -> Prediction:
        prediction = Prediction.of(bounds)
        for change in self.changes:
            prediction = change(prediction)
        return prediction


def _named(module: nn.Module, names: Sequence[str]) -> fx.GraphModule:
    """Return a module whose forward takes its tensors under these names."""
    graph = fx.Graph()
    inputs = tuple(graph.placeholder(name) for name in names)
    graph.output(graph.call_module("network", inputs))
    return fx.GraphModule({"network": module}, graph).eval()
