"""Facts: what is known of each value of a program before anything runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from intervalnn.network.capture.program import Program
from intervalnn.table import Rule, lookup
from intervalnn.torch_private import pytree

__all__ = ["Fact", "Facts", "is_discrete", "is_real", "is_truth"]


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one value.

    Attributes:
        interval: Whether it may be an interval.
        weight: Whether it depends on the weights alone.
        nonneg: Whether it is never negative.
        hidden: For a result of several parts, those that are not intervals, with the reason.
        as_is: Whether it is made by a function that takes intervals, rather than by an operation that needs a rule.
        stretched: Whether the gaps of a weight are shares, which the inputs of its layers carry.
        told: What the rule that prepares a product is told beside the facts.
    """

    interval: bool
    weight: bool
    nonneg: bool = False
    hidden: dict[int, str] = field(default_factory=dict)
    as_is: bool = False
    stretched: bool = False
    told: dict[str, Any] = field(default_factory=dict)


class Facts(dict[fx.Node, Fact]):
    """A copy of a program, and the facts of its nodes, found one after the other.

    Args:
        program: The program. Each node of the copy names the one it comes from, as ``node.meta["of"]``.
        intervals: Placeholders that are intervals.
        by_input: Those of them that are weights with gaps as shares of every input.
    """

    def __init__(self, program: Program, intervals: Collection[str], by_input: Collection[str]) -> None:
        super().__init__()
        self.sources, self.intervals, self.by_input = program.sources, intervals, by_input
        self.graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
        for node in program.graph.nodes:
            copies[node] = self.graph.node_copy(node, copies.__getitem__)
            copies[node].meta["of"] = node
        self.named = {node.name: copy for node, copy in copies.items()}  # by their names in the program

    def find(self, node: fx.Node) -> None:
        """Take up the fact of a node, by those of what it takes."""
        if node not in self:
            self[node] = self._placeholder(node) if node.op == "placeholder" else self._result(node)

    def weight(self, node: fx.Node) -> bool:
        """Say whether what a node takes depends on the weights alone."""
        return all(self[parent].weight for parent in node.all_input_nodes)

    def insert(self, before: fx.Node, like: fx.Node, fn: Callable[..., Any], *args: Any, **known: Any) -> fx.Node:
        """Put a call in front of a node, which the node may then take.

        Args:
            before: The node.
            like: A value of the same shape and kind as the result.
            fn: What is called.
            args: Its arguments.
            known: The fact of the result, if ``fn`` takes intervals as they are; else it is found as usual.
        """
        with self.graph.inserting_before(before):
            made = self.graph.call_function(fn, args)
        made.meta |= like.meta | {"of": before.meta["of"]}
        if known:
            self[made] = Fact(weight=self.weight(before), as_is=True, **known)
        self.find(made)
        return made

    def _placeholder(self, node: fx.Node) -> Fact:
        return Fact(node.name in self.intervals, self.sources[node.name].kind != "input")

    def _result(self, node: fx.Node) -> Fact:
        weight, reached = self.weight(node), any(self[parent].interval for parent in node.all_input_nodes)
        if node.target is operator.getitem:
            whole, index = (self[node.args[0]], node.args[1])  # type: ignore[index]
            return Fact(whole.interval and index not in whole.hidden, weight, whole.nonneg)
        entry = lookup(node.target)
        if not reached or (entry is not None and entry.reads_shape_only):
            return Fact(False, weight, self._nonneg(node, entry))
        return Fact(True, weight, self._nonneg(node, entry), dict(entry.hidden) if entry is not None else {})

    def _nonneg(self, node: fx.Node, entry: Rule | None) -> bool:
        """Say whether the result is known never to be negative."""
        if entry is None:
            return False
        sign = entry.sign_of(*node.args, **node.kwargs)
        taken = pytree.tree_leaves([node.args[i] for i in entry.takes if i < len(node.args)])
        if sign == "unknown" or not is_real(node) or not all(is_real(n) or is_truth(n) for n in taken):
            return False
        if sign == "nonnegative":
            return True
        if any(isinstance(v, int | float) and v < 0 for v in node.kwargs.values()):
            return False
        return all(self._leaf_nonneg(leaf) for leaf in taken)

    def _leaf_nonneg(self, leaf: Any) -> bool:
        if isinstance(leaf, fx.Node):
            return self[leaf].nonneg or is_truth(leaf)
        return leaf is None or (isinstance(leaf, int | float) and leaf >= 0)


def tensors_of(value: Any) -> list[Tensor]:
    """Return examples of the tensors that a node makes; none of what is no node."""
    leaves = pytree.tree_leaves(value.meta["val"]) if isinstance(value, fx.Node) else []
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def is_real(value: Any) -> bool:
    """Say whether a value is in floating point: whole numbers wrap around, and complex ones have no sign."""
    return all(t.is_floating_point() for t in tensors_of(value))


def is_discrete(node: fx.Node) -> bool:
    """Say whether a value is made of truth values or whole numbers."""
    return not any(t.is_floating_point() or t.is_complex() for t in tensors_of(node)[:1])


def is_truth(value: Any) -> bool:
    """Say whether a value is made of truth values."""
    return all(t.dtype == torch.bool for t in tensors_of(value))
