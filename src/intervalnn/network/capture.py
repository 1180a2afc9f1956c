"""An unmodified module to one flat graph of ATen operations, by ``torch.export``."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx, nn
from torch._ops import OpOverload
from torch.export import Dim
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP

from intervalnn.interval import Interval
from intervalnn.network.capture_errors import Following, is_of_model, object_of_cpp, untraceable
from intervalnn.network.parts import Parts, is_plain
from intervalnn.network.quiet import quiet
from intervalnn.network.spelled_out import kept_whole
from intervalnn.network.torch_private import decomposed, itself_alone, without_effect_tokens
from intervalnn.network.twin import Twin
from intervalnn.network.undisturbed import undisturbed
from intervalnn.table import RULES, MissingRuleError, aten, lookup, overloads, why_not

# Taken apart although the table knows them: it refuses them, and what they are made of may have rules.
_DECOMPOSED_ANYWAY = {aten.as_strided, aten.item, aten.native_dropout, aten.rrelu_with_noise}
_COPIES = {aten.clone.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default}
_READS_LAYOUT = {aten.as_strided.default, aten.sym_stride.int, aten.sym_storage_offset.default}
# What torch says of itself while it captures; what the model says is let through.
_OF_TORCH = [
    (".*LeafSpec", FutureWarning, ""),
    (".*assigned during export", UserWarning, ""),
    ("", Warning, r"torch\.|copyreg"),
]


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
class Call:
    """The tensors of one call of a model, and what is needed to call it again with others.

    Attributes:
        leaves: Tensors and plain values; objects that torch does not know how to flatten, taken apart.
        spec: How the leaves stand in the arguments.
        tensors: The tensors and intervals, each once, however often it was passed.
    """

    leaves: list[Any]
    spec: pytree.TreeSpec
    tensors: list[Tensor | Interval]

    @staticmethod
    def of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Take a call apart."""
        leaves, spec = pytree.tree_flatten((args, kwargs), is_leaf=lambda x: isinstance(x, Interval))
        leaves = [x if isinstance(x, Tensor | Interval) or is_plain(x) else Parts.of(x) for x in leaves]
        inside = (x.tensors if isinstance(x, Parts) else [x] for x in leaves if not is_plain(x))
        once = {id(tensor): tensor for tensors in inside for tensor in tensors}
        return Call(leaves, spec, list(once.values()))

    @property
    def key(self) -> Any:
        """What another call must have in common with this one to share its program, sizes aside."""
        places = {id(tensor): place for place, tensor in enumerate(self.tensors)}
        described = (_described(leaf, places) for leaf in self.leaves)
        kinds = ((type(t), t.dtype, t.dim(), str(t.device), _order(t)) for t in self.tensors)
        return (_structure(self.spec), torch.get_default_dtype(), *described, *kinds, *_shared(self.tensors))

    def rebuild(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with other tensors in the place of the tensors."""
        others = {id(own): other for own, other in zip(self.tensors, tensors, strict=True)}

        def put(leaf: Any) -> Any:
            if isinstance(leaf, Parts):
                return leaf.rebuild([others[id(tensor)] for tensor in leaf.tensors])
            return others.get(id(leaf), leaf) if isinstance(leaf, Tensor | Interval) else leaf

        args, kwargs = pytree.tree_unflatten([put(leaf) for leaf in self.leaves], self.spec)
        return args, kwargs


def _described(leaf: Any, places: dict[int, int]) -> Any:
    """Return what tells an argument from others, but for the values of its tensors."""
    if isinstance(leaf, Parts):
        return leaf.content, leaf.types, tuple(places[id(tensor)] for tensor in leaf.tensors)
    return places[id(leaf)] if isinstance(leaf, Tensor | Interval) else (type(leaf), repr(leaf))


def _structure(spec: pytree.TreeSpec) -> Any:
    """Return what tells one structure of arguments from others, to the last byte."""
    text = str(spec)
    if "object at 0x" in text or "..." in text:  # a context that does not show all that it holds
        return Parts.of(spec).content
    return text


def _order(x: Tensor | Interval) -> tuple[int, ...] | None:
    """Return in which order the dimensions of a tensor lie in memory; None for the usual one."""
    point = x.point if isinstance(x, Interval) else x
    if point.layout != torch.strided:
        return (-1,)
    strides = point.stride()
    return None if point.is_contiguous() else tuple(sorted(range(point.dim()), key=lambda d: -strides[d]))


def _shared(tensors: Sequence[Tensor | Interval]) -> list[int]:
    """Return for each tensor the first one that shares its memory."""
    points = [t.point if isinstance(t, Interval) else t for t in tensors]
    if len(points) < 2:
        return []
    strided = [t.layout == torch.strided and not t.is_meta for t in points]
    places = [
        t.untyped_storage().data_ptr() if s else -1 - i for i, (t, s) in enumerate(zip(points, strided, strict=True))
    ]
    return [places.index(place) for place in places]


@dataclass(frozen=True, slots=True)
class Program:
    """What a model computes, as a flat graph without side effects.

    Attributes:
        graph: The graph; its placeholders are the parameters, buffers, constants and inputs.
        sources: Where each placeholder comes from, in order.
        constants: Tensors that the model holds without having registered them, by name.
        out_spec: Structure of what the model returns.
        sizes: For each input tensor its sizes: a number, or the name of a size that may vary.
        ranges: Least and largest value of each size that may vary.
        guards: Conditions on the sizes under which the program is the model's own.
    """

    graph: fx.Graph
    sources: dict[str, Source]
    constants: dict[str, Tensor]
    out_spec: pytree.TreeSpec
    sizes: list[tuple[int | str, ...]]
    ranges: dict[str, tuple[float, float]]
    guards: list[CodeType]

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
        return all(eval(guard, _GUARD_NAMES, local) for guard in self.guards)  # noqa: S307 - torch's own text


_BUILTINS = {"max": max, "min": min, "abs": abs, "round": round, "int": int, "float": float}
_GUARD_NAMES = {"__builtins__": _BUILTINS, "math": math, "torch": torch, **SYMPY_INTERP}


class _Flat(nn.Module):
    """The model as a function of its tensors alone."""

    def __init__(self, model: nn.Module, call: Call) -> None:
        super().__init__()
        self.model = model
        self.call = call
        self.training = False

    def forward(self, *tensors: Tensor) -> Any:
        args, kwargs = self.call.rebuild(tensors)
        return self.model(*args, **kwargs)


def capture(model: nn.Module, call: Call, before: Sequence[Program] = ()) -> Program:
    """Return the program that ``model`` runs for ``call``, which is only looked at, not kept.

    The program holds for any size of the first dimension, the batch, and of those dimensions in
    which the call differs from the ones before. The others stay as they are: torch reasons about
    every size that may vary, and for some models takes minutes over it.

    Args:
        model: The model, in eval mode.
        call: An example of how it is called.
        before: Programs of earlier calls, whose sizes were others.

    Raises:
        ValueError: If the program depends on values (a branch, a loop), or changes the
            model while it runs; the message names the line.
    """
    refuse_training(model)
    points = [t.point if isinstance(t, Interval) else t for t in call.tensors]
    twin = Twin(model)
    exported = undisturbed(lambda: _export(_Flat(twin.module, call), points, before))
    _refuse_side_effects(exported, _shared(points))
    return _program(exported, len(points), model)


def _export(flat: _Flat, points: list[Tensor], before: Sequence[Program]) -> torch.export.ExportedProgram:
    def varies(i: int, d: int, n: int) -> bool:
        return n > 1 and (d == 0 or any(program.sizes[i][d] != n for program in before))

    varying = tuple(
        {d: Dim.AUTO if varies(i, d, n) else Dim.STATIC for d, n in enumerate(p.shape)} for i, p in enumerate(points)
    )

    def export(sizes: Any) -> torch.export.ExportedProgram:
        fresh = tuple(p.detach() for p in points)  # torch marks those it was given as varying
        with torch.no_grad(), quiet(_OF_TORCH, ["stderr"]), itself_alone():
            with Following():
                program = torch.export.export(flat, fresh, dynamic_shapes=sizes, strict=False)
            return without_effect_tokens(kept_whole(program, lambda known: decomposed(known, *_decompositions())))

    with contextlib.suppress(Exception):
        return export({"tensors": varying})
    try:  # with sizes that do not vary: torch has less to reason about, and other sizes are captured anew
        return export(None)
    except Exception as error:
        raise untraceable(error, flat.model, (__file__, "forward")) from error


def _decompositions() -> tuple[dict[Any, Any], list[OpOverload]]:
    """Return torch's table of decompositions, less every operation that has a rule of its own, and these."""
    table = dict(torch.export.default_decompositions())
    known = (overload for operation in RULES for overload in overloads(operation))
    whole = [overload for overload in known if overload.overloadpacket not in _DECOMPOSED_ANYWAY]
    for overload in whole:
        table.pop(overload, None)
    table[aten.rrelu_with_noise_functional.default] = _settled_rrelu  # torch has none
    return table, whole


def _settled_rrelu(
    x: Tensor, noise: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Any:
    """Take a randomised leaky unit apart, which in eval mode has the mean of its slopes and draws nothing."""
    if training:
        return NotImplemented
    return aten.leaky_relu(x, (lower + upper) / 2), noise


def refuse_training(model: nn.Module) -> None:
    """Raise if a batch norm or a dropout of the model is in training mode."""
    for name, module in model.named_modules():
        if not module.training:
            continue
        if isinstance(module, nn.modules.batchnorm._NormBase) and module.track_running_stats:
            raise ValueError(
                f"{type(module).__name__} '{name}' is in training mode, where it depends on the whole batch and "
                "changes its statistics; call model.eval() first"
            )
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0:
            raise ValueError(
                f"{type(module).__name__} '{name}' is active (training mode), so the model has no single "
                "prediction to bound; call model.eval() first"
            )


def _refuse_side_effects(exported: torch.export.ExportedProgram, shared: list[int]) -> None:
    inputs = list(exported.graph_signature.user_inputs)
    for spec in exported.graph_signature.output_specs:
        if spec.kind == OutputKind.USER_INPUT_MUTATION and shared:
            place = inputs.index(spec.target)
            if shared.count(shared[place]) > 1:
                node = next(n for n in exported.graph.nodes if n.name == spec.arg.name)
                raise ValueError(
                    f"the model writes to an input that shares its memory with another one ({where(node)}), which "
                    "would change with it; pass x.clone() for one of the two"
                )
        if spec.kind == OutputKind.BUFFER_MUTATION:
            name = str(spec.target).removeprefix("model.")
            node = next(n for n in exported.graph.nodes if n.name == spec.arg.name)
            _refuse_by_name(node)
            raise ValueError(
                f"the model writes to its buffer '{name}' while it runs ({where(node)}), so it has no single "
                "prediction to bound; call model.eval() first, or take the counter or cache out of the forward pass"
            )


def _refuse_by_name(node: fx.Node) -> None:
    """Raise if a value comes from an operation that is refused in any model."""
    source: Any = node.args[0] if node.target is operator.getitem else node
    entry = lookup(source.target)
    if entry is not None and entry.even_plain:
        raise MissingRuleError(f"{why_not(source.target, entry)} ({where(node)})")


def _program(exported: torch.export.ExportedProgram, inputs: int, model: nn.Module) -> Program:
    kinds = {
        InputKind.PARAMETER: "parameter",
        InputKind.BUFFER: "buffer",
        InputKind.CONSTANT_TENSOR: "constant",
        InputKind.USER_INPUT: "input",
    }
    sources, index = {}, 0
    for spec in exported.graph_signature.input_specs:
        if spec.kind not in kinds:
            node = next(n for n in exported.graph.nodes if n.name == spec.arg.name)
            user = next(iter(node.users), node)
            raise ValueError(object_of_cpp(exported.constants.get(spec.target), where(user)))
        kind = kinds[spec.kind]
        name = str(spec.target or "").removeprefix("model.")
        own = _held(exported.constants[spec.target], model) if kind == "constant" else None
        sources[spec.arg.name] = replace(own, name=own.name or name) if own else Source(kind, name, index)
        index += kind == "input"
    assert index == inputs, (index, inputs)
    graph = exported.graph
    placeholders = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    shapes = [placeholders[name].meta["val"].shape for name, source in sources.items() if source.kind == "input"]
    sizes = [tuple(n if isinstance(n, int) else str(n.node.expr) for n in shape) for shape in shapes]
    ranges = {str(s): (_number(r.lower), _number(r.upper)) for s, r in exported.range_constraints.items()}
    constants = {str(k).removeprefix("model."): v for k, v in exported.constants.items() if isinstance(v, Tensor)}
    keep = _outputs(exported)
    return Program(
        _trimmed(graph, keep), sources, constants, exported.call_spec.out_spec, sizes, ranges,
        [compile(guard, "<guard>", "eval") for guard in exported._guards_code],
    )  # fmt: skip


def _held(constant: Any, model: nn.Module) -> Source | None:
    """Return the parameter or buffer that ``constant`` is, or looks at in part, if it is one.

    A forward may reach a parameter without its name, by a list or an object that holds it. Torch then takes it for a
    constant, and its gaps would be ignored.
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


def _memory(x: Tensor) -> tuple[Any, ...]:
    """Return where a tensor begins and ends in memory, and as what it is read there."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return x.data_ptr(), x.data_ptr() + span * x.element_size(), x.dtype, x.shape


def _number(bound: Any) -> float:
    try:
        return int(bound)
    except (OverflowError, TypeError, ValueError, AttributeError):
        return math.inf


def _outputs(exported: torch.export.ExportedProgram) -> list[int]:
    """Return which outputs of the graph the model returns; the others are writes to its inputs."""
    specs = exported.graph_signature.output_specs
    return [i for i, spec in enumerate(specs) if spec.kind == OutputKind.USER_OUTPUT]


def _trimmed(graph: fx.Graph, keep: list[int]) -> fx.Graph:
    """Drop what the model does not return, and copies: nothing is written to in place any more."""
    output = next(iter(reversed(graph.nodes)))
    output.args = (tuple(output.args[0][i] for i in keep),)
    reads_layout = any(node.target in _READS_LAYOUT for node in graph.nodes)
    for node in list(graph.nodes):
        if node.target is aten._assert_tensor_metadata.default:  # torch's own check of a dtype it has just seen
            graph.erase_node(node)
        elif node.target in _COPIES and not node.kwargs and not reads_layout:
            node.replace_all_uses_with(node.args[0])
    graph.eliminate_dead_code()
    return graph


def where(node: fx.Node) -> str:
    """Say which module and which line of the user's code a node comes from."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values()]
    module = (paths[-1] if paths else "").removeprefix("model").removeprefix(".")
    text = f"in module '{module}'" if module else "in the model's forward"
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").strip().splitlines()]
    frames = [(lines[i], lines[i + 1]) for i in range(len(lines) - 1) if lines[i].startswith("File ")]
    inside = max((i for i, (place, _) in enumerate(frames) if __file__ in place), default=len(frames))
    for place, code in reversed(frames[inside + 1 :]):
        file, _, rest = place.removeprefix('File "').partition('", line ')
        if is_of_model(file):
            return f'{text}, {file}:{rest.split(",")[0]} ("{code}")'
    return text
