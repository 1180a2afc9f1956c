"""The gaps can be trained: the bounds' gradients are true ones, at zero gaps too, where training starts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import intervalnn as inn
from intervalnn import Interval
from properties.case import Case, intervals, with_intervals
from properties.cases import CASES
from properties.checks import is_rounded, real_parts

aten = torch.ops.aten


def _is_cone(case: Case) -> bool:
    """Say whether the bounds grow as a norm, which has no slope where all gaps are zero."""
    spectral = case.op in (aten._linalg_eigh.default, aten._linalg_svd.default)
    return spectral or ("norm" in str(case.op) and "vector" not in str(case.op))


def _with_leaves(args: Any) -> tuple[Any, list[Tensor]]:
    leaves = [gap.clone().requires_grad_() for x in intervals(args) for gap in (x.below, x.above)]
    return _with_gaps(args, leaves), leaves


def _with_gaps(args: Any, gaps: list[Tensor]) -> Any:
    rest = iter(gaps)
    return with_intervals(args, [Interval(x.point, next(rest), next(rest)) for x in intervals(args)])


def _without_gaps(args: Any) -> Any:
    return _with_gaps(args, [torch.zeros_like(gap) for x in intervals(args) for gap in (x.below, x.above)])


def _gaps_of(case: Case, args: Any) -> list[Tensor]:
    return [real_parts(gap) for bound in case.bounds(args) for gap in (bound.below, bound.above)]


def _uniform(like: list[Tensor], random: torch.Generator) -> list[Tensor]:
    return [torch.rand(real_parts(part).shape, generator=random, dtype=torch.float64) for part in like]


def _total(gaps: list[Tensor], weights: list[Tensor]) -> Tensor:
    """Return a weighted sum of all gaps that are finite."""
    terms = (torch.where(gap.isfinite(), gap, 0.0) * weight for gap, weight in zip(gaps, weights, strict=True))
    return torch.stack([term.sum() for term in terms]).sum()


def _gradient(case: Case, args: Any, random: torch.Generator) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Return the weights of a total of the gaps, the gaps of the arguments, and the gradient of one in the other."""
    args, leaves = _with_leaves(args)
    gaps = _gaps_of(case, args)
    weights = _uniform(gaps, random)
    total = _total(gaps, weights)
    if not total.requires_grad:
        return weights, leaves, [torch.zeros_like(leaf) for leaf in leaves]
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    return (
        weights,
        leaves,
        [g if g is not None else torch.zeros_like(leaf) for g, leaf in zip(found, leaves, strict=True)],
    )


def _is_finite(case: Case, args: Any) -> bool:
    bounds = case.bounds(args)
    return all(part.isfinite().all() for bound in bounds for part in (bound.point, bound.below, bound.above))


@pytest.mark.rotating
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_gradient_at_zero_gaps_is_nan(case: Case) -> None:
    for pattern in ("no gaps", "at zero"):
        args = _without_gaps(case.draw(0, pattern))

        _, _, gradient = _gradient(case, args, torch.Generator().manual_seed(0))

        assert not _is_finite(case, args) or not any(real_parts(part).isnan().any() for part in gradient)


@pytest.mark.rotating
@pytest.mark.parametrize("case", [case for case in CASES if not is_rounded(case)], ids=str)
def test_the_gradient_is_the_slope_of_the_bounds(case: Case) -> None:
    for pattern in ("positive", "straddling") if _is_cone(case) else ("no gaps", "positive", "straddling"):
        args = case.draw(0, pattern)
        random = torch.Generator().manual_seed(1)

        weights, leaves, gradient = _gradient(case, args, random)
        step = _uniform(leaves, random)  # upward, since gaps are not negative
        expected = sum((real_parts(g) * d).sum() for g, d in zip(gradient, step, strict=True))

        moved = [real_parts(leaf.detach()) + 1e-7 * d for leaf, d in zip(leaves, step, strict=True)]
        gaps = [torch.view_as_complex(m) if leaf.is_complex() else m for m, leaf in zip(moved, leaves, strict=True)]
        wider = _with_gaps(args, gaps)
        if _is_finite(case, args) and _is_finite(case, wider):
            before, after = (_total(_gaps_of(case, a), weights) for a in (args, wider))
            assert torch.isclose((after - before) / 1e-7, torch.as_tensor(expected), rtol=1e-4, atol=1e-5), pattern


# Where functions bend, and the arguments beside x.
BENDS = [
    (aten.relu.default, 0.0), (aten.relu6.default, 0.0), (aten.relu6.default, 6.0), (aten.hardtanh.default, -1.0),
    (aten.hardtanh.default, 1.0), (aten.hardsigmoid.default, -3.0), (aten.hardsigmoid.default, 3.0),
    (aten.softshrink.default, -0.5), (aten.softshrink.default, 0.5), (aten.elu.default, 0.0, 0.5),
    (aten.celu.default, 0.0, 0.5), (aten.selu.default, 0.0), (aten.leaky_relu.default, 0.0, 0.3),
    (aten.clamp.default, 0.5, 0.5), (aten.clamp.default, 0.5, None, 0.5), (aten.clamp_min.default, 0.0, 0.0),
    (aten.clamp_max.default, 0.0, 0.0), (aten.abs.default, 0.0), (aten.square.default, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("op", "place", "rest"), [(op, at, rest) for op, at, *rest in BENDS], ids=str)
def test_the_gradient_of_closed_gaps_on_a_bend_is_the_slope_ahead(op: Any, place: float, rest: list[Any]) -> None:
    point = torch.tensor(place, dtype=torch.float64)
    for sides in ((0.0, 1.0),) if op is aten.abs.default else ((1.0, 0.0), (0.0, 1.0)):  # abs: the larger of the two
        leaves = [torch.zeros_like(point).requires_grad_() for _ in range(2)]
        closed = inn.apply(op, Interval(point, *leaves), *rest)
        opened = inn.apply(op, Interval(point, *(1e-7 * torch.tensor(s, dtype=torch.float64) for s in sides)), *rest)
        for name in ("below", "above"):
            gap = getattr(closed, name)
            found = torch.autograd.grad(gap, leaves, allow_unused=True, retain_graph=True) if gap.requires_grad else ()
            expected = sum(float(g) * s for g, s in zip(found, sides, strict=False) if g is not None)

            assert abs(float(getattr(opened, name)) / 1e-7 - expected) < 1e-5, name
