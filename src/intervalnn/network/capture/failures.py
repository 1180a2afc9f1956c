"""Why a call went wrong, when the program runs: the model itself, or a rule, in the model's line."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx, nn

from intervalnn.interval import Interval
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.capture_errors import line_of
from intervalnn.network.capture.flat import where
from intervalnn.network.plan import Plan
from intervalnn.table import MissingRuleError

__all__ = ["refuse_call", "refuse_failure"]


def refuse_call(model: nn.Module, call: Call) -> None:
    """Raise if the model itself does not take a call, whatever its intervals."""
    args, kwargs = call.rebuild([t.point if isinstance(t, Interval) else t for t in call.tensors])
    try:
        model(*args, **kwargs)
    except Exception as error:
        given = ", ".join(f"{t.dtype} of shape {tuple(t.shape)}" for t in call.tensors)
        line = line_of(error, (__file__, "refuse_call"))
        raise ValueError(
            f"{f'{line}: ' if line else ''}the model itself does not take this input, {given}{_own(model)}: "
            f"{_first(error)}"
        ) from error


def _own(model: nn.Module) -> str:
    """Say in what dtype and where the parameters of a model are, as the end of what came instead."""
    kinds = sorted({f"{p.dtype} on {p.device}" for p in model.parameters()})
    return f" (its parameters are {' and '.join(kinds)})" if kinds else ""


def refuse_failure(error: Exception, model: nn.Module, plan: Plan, call: Call, inputs: list[Any]) -> None:
    """Raise what says more than ``error`` about a program that failed while it ran, if there is more to say.

    Raises:
        ValueError: If the model itself does not take the call.
        RuntimeError: If derivatives are asked for in forward mode.
        MissingRuleError: If it does, so that a rule has failed; the message has the operation and the model's line.
    """
    if isinstance(error, MissingRuleError | ValueError | MemoryError | torch.OutOfMemoryError):
        return
    if "jvp function" in str(error):
        raise RuntimeError(
            "an IntervalNetwork has no derivatives in forward mode (torch.autograd.forward_ad); take them in reverse, "
            "by torch.autograd.grad, torch.autograd.functional.jacobian or torch.autograd.functional.jvp"
        ) from error
    refuse_call(model, call)
    found = _failing(plan, inputs)
    if found is None:
        return
    node, own = found
    raise MissingRuleError(
        f"{node.target} cannot be bounded here ({_first(own)}); keep its arguments out of reach of the interval "
        f"layers, or add a rule with intervalnn.rule(torch.ops.{node.target}, replace=True) ({where(node)})"
    ) from error


def _failing(plan: Plan, inputs: list[Any]) -> tuple[fx.Node, Exception] | None:
    """Run a program again, node by node; return the operation of the model that fails, if one does."""
    weights: Any = [weight.around(weight.read().detach(), plan.gap_dtype) for weight in plan.weights]
    for graph, rest in ((plan.lifted.prepare, []), (plan.lifted.run, inputs)):
        steps = _Steps(graph)
        try:
            weights = steps.run(*weights, *rest)
        except Exception:
            return steps.failed
    return None


class _Steps(fx.Interpreter):
    """Runs a graph and remembers where it failed."""

    extra_traceback = False
    failed: tuple[fx.Node, Exception] | None = None

    def run_node(self, n: fx.Node) -> Any:
        try:
            return super().run_node(n)
        except Exception as error:
            self.failed = (n.meta["of"], error) if "of" in n.meta else None
            raise


def _first(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
