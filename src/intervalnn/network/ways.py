"""Ways: how the graphs of a program are run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, fx, nn

from intervalnn.interval import Interval
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.failures import refuse_failure
from intervalnn.network.capture.given import given
from intervalnn.network.capture.turns import TURNS
from intervalnn.network.plan import Plan, Prepared
from intervalnn.torch_private import pytree

__all__ = ["Way", "bounds", "outputs", "uncompiled"]

_NOT_WHOLE = (
    "an IntervalNetwork finds its program in Python; call net.compile() instead, or torch.compile(net) without "
    "fullgraph=True, and write files with intervalnn.export"
)
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Way:
    """How graphs are run.

    Attributes:
        run: From a graph to what runs it.
        compiled: Whether a compiler runs it, which in training takes what is made of the weights along.
        overwrites: Whether a call returns tensors that the next one writes into.
    """

    run: Callable[[fx.GraphModule], Callable[..., Any]] = lambda graph: graph
    compiled: bool = False
    overwrites: bool = False


def uncompiled(fn: Function) -> Function:
    """Keep torch's compiler out of a function.

    What torch has for that is taken only where a compiler is at work: while another thread captures a program, torch's
    own wrapper writes to a table that all threads share.
    """
    apart = torch.compiler.disable(fn, reason=_NOT_WHOLE)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (apart if torch.compiler.is_dynamo_compiling() else fn)(*args, **kwargs)

    return call  # type: ignore[return-value]


def bounds(model: nn.Module, call: Call, plan: Plan, way: Way) -> Any:
    """Return what a call of a model returns, with an interval for each tensor.

    Args:
        model: The underlying model.
        call: The call.
        plan: The program for it.
        way: How that is run.
    """
    try:
        if torch.compiler.is_dynamo_compiling():
            found = outputs(plan, call.tensors, way)
        else:
            with TURNS.together():
                found = outputs(plan, call.tensors, way)
    except Exception as error:
        refuse_failure(error, model, plan, call, _inputs(plan, call.tensors))
        raise
    return plan.program.returned.rebuild(found)


def outputs(plan: Plan, tensors: Sequence[Tensor | Interval], way: Way) -> tuple[Any, ...]:
    """Return the outputs of a program for the tensors of a call."""
    inputs = _inputs(plan, tensors)
    if way.compiled and plan.training:  # what is made of the weights is made anew at each step
        found = way.run(plan.whole())(*plan.points, *inputs)
    else:
        prepared = _prepared(plan, way)
        found = prepared.or_endless(way.run(plan.lifted.run)(*prepared.values, *inputs))
    if way.overwrites:
        found = pytree.tree_map_only(Tensor, Tensor.clone, found)
    return found  # type: ignore[no-any-return]


def _inputs(plan: Plan, tensors: Sequence[Tensor | Interval]) -> list[Tensor | Interval]:
    return [given(plan.program.taking(x), plan.gap_dtype) for x in tensors]


@uncompiled
def _prepared(plan: Plan, way: Way) -> Prepared:
    return plan.current(static=way.compiled)
