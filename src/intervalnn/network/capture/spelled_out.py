"""Operations that torch spells out under autograd's key, where no table of decompositions is asked, kept whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx
from torch.export import ExportedProgram

__all__ = ["kept_whole"]

_aten = torch.ops.aten


@torch.library.custom_op("intervalnn::softshrink", mutates_args=())
def _softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    return torch.nn.functional.softshrink(x, lambd)


@torch.library.custom_op("intervalnn::hardshrink", mutates_args=())
def _hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    return torch.nn.functional.hardshrink(x, lambd)


@_softshrink.register_fake
@_hardshrink.register_fake
def _(x: Tensor, lambd: float = 0.5) -> Tensor:
    return torch.empty_like(x)


_STAND_INS = {
    _aten.softshrink.default: torch.ops.intervalnn.softshrink.default,
    _aten.hardshrink.default: torch.ops.intervalnn.hardshrink.default,
}
_MEANT = {own: meant for meant, own in _STAND_INS.items()}


def kept_whole(program: ExportedProgram, decompose: Callable[[ExportedProgram], ExportedProgram]) -> ExportedProgram:
    """Return ``decompose(program)``, in which these operations stand for themselves, not for comparisons."""
    _replace(program.graph, _STAND_INS)
    decomposed = decompose(program)
    _replace(decomposed.graph, _MEANT)
    return decomposed


def _replace(graph: fx.Graph, others: dict[Any, Any]) -> None:
    for node in graph.nodes:
        node.target = others.get(node.target, node.target)
