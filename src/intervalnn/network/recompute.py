"""Segments: a graph that keeps little for the backward pass, and computes the rest again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import fx
from torch.utils.checkpoint import checkpoint

__all__ = ["Segments"]


@dataclass(frozen=True, slots=True)
class _Segment:
    """A run of nodes, and the values that it takes from before and hands on.

    Attributes:
        graph: The nodes, from ``takes`` to ``makes``.
        takes: Values from outside that it reads.
        makes: Values of its own that others read.
        done: Values that nothing reads after it.
    """

    graph: fx.GraphModule
    takes: list[fx.Node]
    makes: list[fx.Node]
    done: list[fx.Node]


class Segments:
    """A graph cut into runs of nodes, of which only the values in between are kept for the backward pass.

    The values inside a run are computed again when the backward pass comes to it, by the same
    operations; so gradients are the same, for one more forward pass and far less memory.

    Args:
        module: The graph.
        count: How many runs; by default one for every few nodes, which holds least on the networks tried.
    """

    def __init__(self, module: fx.GraphModule, count: int | None = None) -> None:
        nodes = list(module.graph.nodes)
        self.inputs = [node for node in nodes if node.op == "placeholder"]
        self.output = nodes[-1]
        inside = nodes[len(self.inputs) : -1]
        size = math.ceil(len(inside) / (count or max(round(len(inside) / _NODES), 1)))
        runs = [inside[i : i + size] for i in range(0, len(inside), size)]
        self.segments = [_segment(module, run, inside) for run in runs]

    def __call__(self, *args: Any) -> Any:
        """Run the graph."""
        values = dict(zip(self.inputs, args, strict=True))
        for segment in self.segments:
            taken = [values[node] for node in segment.takes]
            # Nothing in a graph over intervals is random, so there is no random state to keep.
            made = checkpoint(segment.graph, *taken, use_reentrant=False, preserve_rng_state=False)
            values |= dict(zip(segment.makes, made, strict=True))
            for node in segment.done:
                del values[node]
        return fx.map_arg(self.output.args[0], lambda node: values[node])


_NODES = 8  # nodes of a run


def _segment(module: fx.GraphModule, run: list[fx.Node], inside: list[fx.Node]) -> _Segment:
    own = set(run)
    last = inside.index(run[-1])
    later = set(inside[last + 1 :])
    takes = list(dict.fromkeys(node for user in run for node in user.all_input_nodes if node not in own))
    makes = [node for node in run if any(user not in own for user in node.users)]
    done = [node for node in (*takes, *makes) if not any(u in later or u.op == "output" for u in node.users)]
    graph = fx.Graph()
    copies = {node: graph.placeholder(node.name) for node in takes}
    for node in run:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in makes))
    return _Segment(fx.GraphModule(module, graph), takes, makes, done)
