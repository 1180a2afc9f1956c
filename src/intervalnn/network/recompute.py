"""Activation checkpointing of graphs, and which networks use it just now."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from torch import fx, nn
from torch.fx.passes.split_module import split_module
from torch.utils.checkpoint import checkpoint

from intervalnn.network.programs import PROGRAMS, Recent
from intervalnn.network.ways import Way

__all__ = ["recomputed", "recomputing", "way_now"]

# Networks that use activation checkpointing in this thread, and how.
_RECOMPUTING: ContextVar[tuple[tuple[nn.Module, Way], ...]] = ContextVar("_RECOMPUTING", default=())


@contextlib.contextmanager
def recomputing(net: nn.Module) -> Iterator[None]:
    """Run the graphs of a network in such parts for a while, in this thread."""
    known: Recent[fx.GraphModule, Callable[..., Any]] = Recent(PROGRAMS)
    own = net, Way(lambda graph: known.get(graph, recomputed))
    token = _RECOMPUTING.set((*_RECOMPUTING.get(), own))
    try:
        yield
    finally:
        _RECOMPUTING.reset(token)


def way_now(net: nn.Module, usual: Way) -> Way:
    """Return how the graphs of a network are run now, in this thread."""
    return next((way for own, way in _RECOMPUTING.get() if own is net), usual)


_NODES = 8  # nodes of a part, which holds least on the networks tried


def recomputed(graph: fx.GraphModule) -> fx.GraphModule:
    """Return a graph cut into parts; only the values between the parts are kept for the backward pass.

    When the backward pass reaches a part, the same operations compute the values inside the part again. So gradients
    are the same. Checkpointing costs one more forward pass, and takes far less memory.
    """
    inside = [node for node in graph.graph.nodes if node.op not in ("placeholder", "output")]
    size = math.ceil(len(inside) / max(round(len(inside) / _NODES), 1))
    places = {node: place // size for place, node in enumerate(inside)}
    parts = split_module(graph, graph, places.__getitem__)
    for name, part in list(parts.named_children()):
        setattr(parts, name, _Checkpointed(part))
    return parts


class _Checkpointed(nn.Module):
    """A module that computes again in the backward pass."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any) -> Any:
        # Nothing in a graph over intervals is random, so there is no random state to keep.
        return checkpoint(self.module, *args, use_reentrant=False, preserve_rng_state=False)
