"""Graphs that keep little for the backward pass and compute the rest again, and the networks that do so just now."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from torch import fx, nn
from torch.utils.checkpoint import checkpoint

from intervalnn.network.programs import PROGRAMS, Recent
from intervalnn.network.ways import Way

__all__ = ["Segments", "recomputing", "way_now"]

# Networks that compute again what they do not keep, in this thread, and how.
_RECOMPUTING: ContextVar[tuple[tuple[nn.Module, Way], ...]] = ContextVar("_RECOMPUTING", default=())


@contextlib.contextmanager
def recomputing(net: nn.Module) -> Iterator[None]:
    """Run the graphs of a network in segments for a while, in this thread."""
    known: Recent[fx.GraphModule, Callable[..., Any]] = Recent(PROGRAMS)
    own = net, Way(lambda graph: known.get(graph, Segments))
    token = _RECOMPUTING.set((*_RECOMPUTING.get(), own))
    try:
        yield
    finally:
        _RECOMPUTING.reset(token)


def way_now(net: nn.Module, usual: Way) -> Way:
    """Return how the graphs of a network are run now, in this thread."""
    return next((way for own, way in _RECOMPUTING.get() if own is net), usual)


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
