"""Program: what a model computes, as a flat graph without side effects."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from intervalnn.interval import Interval
from intervalnn.network.capture.capture_errors import object_of_cpp
from intervalnn.network.capture.flat import where
from intervalnn.network.capture.parts import Structure
from intervalnn.network.capture.settled import Origin
from intervalnn.table import aten
from intervalnn.torch_private import GUARD_NAMES, guards_of

__all__ = ["Program", "Source", "at_start", "laid_out", "program_of"]

_COPIES = {aten.clone.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default}
_READS_LAYOUT = {aten.as_strided.default, aten.sym_stride.int, aten.sym_storage_offset.default}


@dataclass(frozen=True, slots=True)
class Source:
    """Where one input of the graph comes from.

    Attributes:
        kind: ``"parameter"``, ``"buffer"``, ``"constant"`` or ``"input"``.
        name: Its name in the model, for the first three.
        index: Which of the tensors of the call it is, for an input.
        view_of: For a constant, the parameters of the model whose memory it looks at in part.
    """

    kind: str
    name: str = ""
    index: int = -1
    view_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """What a model computes, as a flat graph without side effects.

    Attributes:
        graph: The graph; its placeholders are the parameters, buffers, constants and inputs.
        sources: Where each placeholder comes from, in order.
        constants: Tensors that the model holds without having registered them, by name.
        returned: How its outputs stand in what the model returns.
        sizes: For each input tensor its sizes: a number, or the name of a size that may vary.
        ranges: Least and largest value of each size that may vary.
        guards: Conditions on the sizes under which the program is the model's own.
        reads_layout: Whether it reads where in memory the entries of a tensor lie.
        read: What the values follow from that the model has read while it was captured.
    """

    graph: fx.Graph
    sources: dict[str, Source]
    constants: dict[str, Tensor]
    returned: Structure
    sizes: list[tuple[int | str, ...]]
    ranges: dict[str, tuple[float, float]]
    guards: list[CodeType]
    reads_layout: bool
    read: tuple[Origin, ...] = ()

    def taking(self, x: Tensor | Interval) -> Tensor | Interval:
        """Return an input as the program takes it: at the start of its memory, if the program reads where it lies."""
        return at_start(x) if self.reads_layout and isinstance(x, Tensor) else x

    def holds(self, model: nn.Module, tensors: Sequence[Tensor | Interval]) -> bool:
        """Say whether the values are what they were that the model has read; on a GPU this waits for the device."""
        return all(origin.holds(model, tensors) for origin in self.read)

    def fits(self, tensors: Sequence[Tensor | Interval]) -> bool:
        """Say whether the program holds for inputs of these sizes."""
        known: dict[str, int] = {}
        for tensor, sizes in zip(tensors, self.sizes, strict=True):
            for size, wanted in zip(tensor.shape, sizes, strict=True):
                if isinstance(wanted, str):
                    low, high = self.ranges.get(wanted, (0, math.inf))
                    if not (low <= size <= high and known.setdefault(wanted, size) == size):
                        return False
                elif size != wanted:
                    return False
        local = {"L": {"tensors": tensors}}
        return all(eval(guard, _KNOWN_TO_GUARDS, local) for guard in self.guards)  # noqa: S307 - torch's own text


_BUILTINS = {"max": max, "min": min, "abs": abs, "round": round, "int": int, "float": float}
_KNOWN_TO_GUARDS = {"__builtins__": _BUILTINS, "math": math, "torch": torch, **GUARD_NAMES}


def program_of(
    exported: ExportedProgram, model: nn.Module, returned: Structure, read: tuple[Origin, ...] = ()
) -> Program:
    """Return an exported program of :class:`intervalnn.network.capture.flat.Flat` as one of the model inside of it.

    Raises:
        ValueError: If it holds an object of C++.
    """
    sources, constants = _sources(exported, model), exported.constants.items()
    reads_layout = any(node.target in _READS_LAYOUT for node in exported.graph.nodes)
    placeholders = {node.name: node for node in exported.graph.nodes if node.op == "placeholder"}
    shapes = [placeholders[name].meta["val"].shape for name, source in sources.items() if source.kind == "input"]
    return Program(
        _trimmed(exported.graph, _outputs(exported), reads_layout),
        sources,
        {_own_name(name): value for name, value in constants if isinstance(value, Tensor)},
        returned,
        [tuple(n if isinstance(n, int) else str(n.node.expr) for n in shape) for shape in shapes],
        {str(size): (_number(r.lower), _number(r.upper)) for size, r in exported.range_constraints.items()},
        [compile(guard, "<guard>", "eval") for guard in guards_of(exported)],
        reads_layout,
        read,
    )


def at_start(x: Tensor) -> Tensor:
    """Return a tensor at the start of its memory, laid out as before."""
    return laid_out(x, x) if x.layout == torch.strided and x.storage_offset() else x


def laid_out(x: Tensor, like: Tensor) -> Tensor:
    """Return a copy of a tensor, laid out as another one of its shape; what lies in one place there is one entry."""
    if like.layout != torch.strided:
        return x.clone()
    for dim, stride in enumerate(like.stride()):
        x = x.narrow(dim, 0, 1) if stride == 0 and x.shape[dim] > 1 else x
    try:
        place = torch.empty_strided(x.size(), like.stride(), dtype=x.dtype, device=x.device)
        return place.copy_(x).expand(like.size())
    except RuntimeError:  # entries that overlap otherwise cannot be written each
        return x.expand(like.size()).clone()


_KINDS = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
    InputKind.USER_INPUT: "input",
}


def _sources(exported: ExportedProgram, model: nn.Module) -> dict[str, Source]:
    """Return where each placeholder comes from, in order."""
    sources: dict[str, Source] = {}
    inputs = itertools.count()
    memory = {_storage(parameter) for parameter in model.parameters()} - {0}  # a buffer may lie in a parameter's
    for spec in exported.graph_signature.input_specs:
        if spec.kind not in _KINDS:
            node = next(n for n in exported.graph.nodes if n.name == spec.arg.name)
            user = next(iter(node.users), node)
            raise ValueError(object_of_cpp(exported.constants.get(spec.target), where(user)))
        kind, name = _KINDS[spec.kind], _own_name(spec.target or "")
        tensor = {"constant": exported.constants, "buffer": exported.state_dict}.get(kind, {}).get(spec.target or "")
        own = _held(tensor, model) if kind == "constant" or _storage(tensor) in memory else None
        index = next(inputs) if kind == "input" else -1
        sources[spec.arg.name] = replace(own, name=own.name or name) if own else Source(kind, name, index)
    return sources


def _own_name(target: str) -> str:
    """Return the name in the model of what the exported module holds."""
    return str(target).removeprefix("model.")


def _held(constant: Any, model: nn.Module) -> Source | None:
    """Return the parameter or buffer that ``constant`` is, or looks at in part, if it is one.

    A forward may reach a parameter through a list or an object rather than by name. Torch then takes the parameter for
    a constant, and its gaps would be ignored.
    """
    if not isinstance(constant, Tensor) or constant.layout != torch.strided or not constant.numel():
        return None
    views = []
    parameters, buffers = (each(remove_duplicate=False) for each in (model.named_parameters, model.named_buffers))
    for kind, name, tensor in (*(("parameter", *p) for p in parameters), *(("buffer", *b) for b in buffers)):
        if tensor.layout != torch.strided or tensor.device != constant.device or not tensor.numel():
            continue
        if _memory(tensor) == _memory(constant) and tensor.stride() == constant.stride():
            return Source(kind, name)
        (start, end), (first, last) = _memory(tensor)[:2], _memory(constant)[:2]
        if kind == "parameter" and start < last and first < end:
            views.append(name)
    return Source("constant", "", view_of=tuple(views)) if views else None


def _storage(x: Any) -> int:
    return x.untyped_storage().data_ptr() if isinstance(x, Tensor) and x.layout == torch.strided else 0


def _memory(x: Tensor) -> tuple[Any, ...]:
    """Return the addresses at which a tensor begins and ends in memory, its dtype and its shape."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return x.data_ptr(), x.data_ptr() + span * x.element_size(), x.dtype, x.shape


def _number(bound: Any) -> float:
    try:
        return int(bound)
    except (OverflowError, TypeError, ValueError, AttributeError):
        return math.inf


def _outputs(exported: ExportedProgram) -> list[int]:
    """Return which outputs of the graph the model returns; the others are writes to its inputs."""
    specs = exported.graph_signature.output_specs
    return [i for i, spec in enumerate(specs) if spec.kind == OutputKind.USER_OUTPUT]


def _trimmed(graph: fx.Graph, keep: list[int], reads_layout: bool) -> fx.Graph:
    """Drop what the model does not return, and copies: nothing is written to in place any more."""
    output = next(iter(reversed(graph.nodes)))
    output.args = (tuple(output.args[0][i] for i in keep),)
    for node in list(graph.nodes):
        if node.target is aten._assert_tensor_metadata.default:  # torch's own check of a dtype it has just seen
            graph.erase_node(node)
        elif node.target in _COPIES and not node.kwargs and not reads_layout:
            node.replace_all_uses_with(node.args[0])
    graph.eliminate_dead_code()
    return graph
