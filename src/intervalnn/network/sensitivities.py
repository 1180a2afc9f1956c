"""Sensitivities: how much wider the bounds get per unit of gap, parameter by parameter."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.given import recordable
from intervalnn.network.capture.turns import TURNS
from intervalnn.network.gaps import Gaps
from intervalnn.network.plan import Plan
from intervalnn.network.recompute import recomputed
from intervalnn.network.scouts.scout import Looking, Widening
from intervalnn.network.ways import Way, outputs

__all__ = ["looks", "mean_gap", "slopes"]


def slopes(plan: Plan, gaps: Mapping[str, Gaps], call: Call, way: Way) -> dict[str, float]:
    """Return the derivative of the mean width of the outputs by all gaps of a parameter at once.

    Args:
        plan: The program for the call, around weights with these gaps.
        gaps: The gaps, by parameter.
        call: The call.
        way: How the program is run.
    """
    if way.compiled:  # for a single call no compiler pays
        way = Way(recomputed)
    with torch.inference_mode(False), torch.enable_grad(), TURNS.together():
        found = outputs(plan, [recordable(x) for x in call.tensors], way)
        width = torch.stack([_real(x.width).double().mean() for x in found if isinstance(x, Interval)]).mean()
        ends = [end for gap in gaps.values() for end in gap.sides]
        each = torch.autograd.grad(width, ends, allow_unused=True) if width.requires_grad else [None] * len(ends)
    totals = iter([0.0 if slope is None else float(slope.double().sum()) for slope in each])
    return {name: sum(next(totals) for _ in gap.sides) for name, gap in gaps.items()}


def looks(plan: Plan, call: Call) -> list[Tensor]:
    """Return what :class:`intervalnn.network.scouts.scout.Looking` sums up of each value that a program's scouts read.

    Args:
        plan: The program for the call.
        call: The call.
    """
    looking: list[Looking] = []

    def look(scout: Widening) -> Looking:
        looking.append(Looking(scout))
        return looking[-1]

    with torch.no_grad(), TURNS.together():
        outputs(plan.with_scouts(look), call.tensors, Way())
    return [sums for each in looking for sums in each.sums]


def mean_gap(x: Interval) -> float:
    """Return the mean of the gaps of an interval, over its entries and both sides."""
    return float(_real(x.width.detach()).mean()) / 2


def _real(width: Tensor) -> Tensor:
    return torch.view_as_real(width) if width.is_complex() else width
