"""Compiling: torch's compiler as a way to run graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from intervalnn.network.programs import PROGRAMS, Recent
from intervalnn.network.ways import Way
from intervalnn.rules.products.gpu import one_pass, teach_compiler
from intervalnn.torch_private import compiler_modes

__all__ = ["compiled"]


def compiled(device: Callable[[], torch.device], options: dict[str, Any]) -> Way:
    """Return how graphs are run by torch's compiler.

    Args:
        device: Says where they run, once it is known.
        options: What ``torch.compile`` takes.
    """
    own = dict(options)
    fuse = own.get("backend", "inductor") == "inductor"
    chosen: dict[str, Any] = {}
    if fuse:  # torch takes either a mode or options
        teach_compiler()
        chosen = _mode(own.pop("mode", None) or "default") | (own.pop("options", None) or {})
    known: Recent[fx.GraphModule, Callable[..., Any]] = Recent(2 * PROGRAMS)  # of each one for training too

    def compile_one(graph: fx.GraphModule) -> Callable[..., Any]:
        more = {"options": one_pass(graph, device()) | chosen} if fuse else {}
        return torch.compile(graph, **(own | more))

    overwrites = chosen.get("triton.cudagraphs", False)
    return Way(lambda graph: known.get(graph, compile_one), compiled=True, overwrites=overwrites)


def _mode(name: str) -> dict[str, Any]:
    """Return the options of torch's compiler that a mode stands for."""
    modes = compiler_modes()
    if name not in modes:
        raise ValueError(f"mode must be one of {', '.join(map(repr, modes))}, got {name!r}")
    return modes[name]
