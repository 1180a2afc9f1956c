"""Side effects: what a model writes to while it runs, by which it has no single output to bound."""

from __future__ import annotations

import operator
from typing import Any

from torch import fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, OutputSpec

from intervalnn.network.capture.flat import where
from intervalnn.table import MissingRuleError, lookup, why_not
from intervalnn.torch_private import BatchNorm, Dropout

__all__ = ["refuse_side_effects", "refuse_training"]


def refuse_training(model: nn.Module) -> None:
    """Raise if a batch norm or a dropout of the model is in training mode."""
    for name, module in model.named_modules():
        if not module.training:
            continue
        if isinstance(module, BatchNorm) and module.track_running_stats:
            raise ValueError(
                f"{type(module).__name__} '{name}' is in training mode, where it depends on the whole batch and "
                "changes its statistics; call model.eval() first"
            )
        if isinstance(module, Dropout) and module.p > 0:
            raise ValueError(
                f"{type(module).__name__} '{name}' is active (training mode), so the model has no single "
                "prediction to bound; call model.eval() first"
            )


def refuse_side_effects(exported: ExportedProgram, shared: list[int]) -> None:
    """Raise if a program writes to a buffer, or to an input that shares its memory with another.

    Args:
        exported: The program.
        shared: For each input the first one that shares its memory, as
            :func:`intervalnn.network.capture.call.memory_shared` returns it.
    """
    inputs = list(exported.graph_signature.user_inputs)
    several = {place for place, first in enumerate(shared) if shared.count(first) > 1}
    for spec in exported.graph_signature.output_specs:
        if spec.kind == OutputKind.USER_INPUT_MUTATION and inputs.index(spec.target) in several:
            line = where(_node(spec, exported))
            raise ValueError(
                f"the model writes to an input that shares its memory with another one ({line}), which would change "
                "with it; pass x.clone() for one of the two"
            )
        if spec.kind == OutputKind.BUFFER_MUTATION:
            node, name = _node(spec, exported), str(spec.target).removeprefix("model.")
            _refuse_by_name(node)
            raise ValueError(
                f"the model writes to its buffer '{name}' while it runs ({where(node)}), so it has no single "
                "prediction to bound; call model.eval() first, or take the counter or cache out of the forward pass"
            )


def _node(spec: OutputSpec, exported: ExportedProgram) -> fx.Node:
    """Return the node of a program that makes an output."""
    nodes: dict[str, fx.Node] = {node.name: node for node in exported.graph.nodes}
    return nodes[spec.arg.name]


def _refuse_by_name(node: fx.Node) -> None:
    """Raise if a value comes from an operation that is refused in any model."""
    source: Any = node.args[0] if node.target is operator.getitem else node
    entry = lookup(source.target)
    if entry is not None and entry.even_plain:
        raise MissingRuleError(f"{why_not(source.target, entry)} ({where(node)})")
