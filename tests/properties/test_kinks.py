"""Gradients where functions bend, jump or have several largest values: they depend on no choice of torch's.

Points lie on a grid of halves, where most functions of torch have their kinks, or all on one value, so that they tie;
and, to compare, anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor

from intervalnn import Interval
from properties.case import Case, Slot, intervals, outputs, points, with_intervals
from properties.cases import CASES
from properties.checks import is_rounded, real_parts

PLACES: dict[str, Callable[[Tensor], Tensor]] = {
    "anywhere": torch.clone,
    "halves": lambda x: (2 * x).round() / 2,
    "ones": torch.ones_like,
    "zeros": torch.zeros_like,
}


def _placed(case: Case, place: str, seed: int) -> Any:
    """Return arguments with closed gaps, whose points are on a grid."""
    snap = PLACES[place]

    def of(slot: Any, drawn: Any) -> Any:
        if not isinstance(slot, Slot):
            return drawn
        point = drawn if isinstance(drawn, Tensor) else drawn.point
        point = torch.complex(snap(point.real), snap(point.imag)) if point.is_complex() else snap(point)
        return point if isinstance(drawn, Tensor) else Interval.of(point)

    return pytree.tree_map(of, case.args, case.draw(seed, "no gaps"))


def _has_value(case: Case, args: Any) -> bool:
    """Say whether the plain operation takes these points; a matrix of ones has no inverse."""
    if "linalg" not in str(case.op) and "inverse" not in str(case.op):
        return True
    try:
        result = case.op(*points(args), **case.kwargs)
    except torch.linalg.LinAlgError:
        return False
    return "_ex" not in str(case.op) or not any(part.any() for part in outputs(result) if part.dtype == torch.int32)


def _near(x: Tensor, y: Tensor) -> Tensor:
    return torch.isclose(x, y, rtol=1e-4, atol=1e-5)


@dataclass
class Slopes:
    """The gaps of a result as a function of one vector, the gaps of all arguments."""

    case: Case
    args: Any
    random: torch.Generator

    def __call__(self, opened: Tensor) -> Tensor:
        places = [x.point for x in intervals(self.args) for _ in range(2)]
        gaps = [
            part.reshape(real_parts(place).shape)
            for part, place in zip(opened.split([real_parts(p).numel() for p in places]), places, strict=True)
        ]
        gaps = [torch.view_as_complex(g) if p.is_complex() else g for g, p in zip(gaps, places, strict=True)]
        points = (x.point for x in intervals(self.args))
        opened_args = [Interval(*parts) for parts in zip(points, gaps[::2], gaps[1::2], strict=True)]
        bounds = self.case.bounds(with_intervals(self.args, opened_args))
        return torch.cat([real_parts(gap).flatten() for bound in bounds for gap in (bound.below, bound.above)])

    @cached_property
    def closed(self) -> Tensor:
        count = sum(2 * real_parts(x.point).numel() for x in intervals(self.args))
        return torch.zeros(count, dtype=torch.float64, requires_grad=True)

    @cached_property
    def gaps(self) -> Tensor:
        return self(self.closed)

    @cached_property
    def live(self) -> Tensor:
        """Which gaps have a finite slope; that of a root at zero is not."""
        return self.gradient(torch.ones_like(self.gaps)).isfinite()

    def gradient(self, weights: Tensor) -> Tensor:
        """Return the gradient of a weighted sum of the gaps of the result."""
        chosen = weights != 0
        total = (self.gaps[chosen] * weights[chosen]).sum()
        if not total.requires_grad:
            return torch.zeros_like(self.closed)
        (found,) = torch.autograd.grad(total, self.closed, retain_graph=True, allow_unused=True)
        return torch.zeros_like(self.closed) if found is None else found

    def along(self, way: Tensor, step: float = 1e-8) -> Tensor:
        """Return how fast each gap opens as those of the arguments do."""
        return (self(step * way) - self.gaps.detach()) / step

    def ways(self, more: int = 8) -> tuple[Way, Way, list[tuple[Way, Way]]]:
        """Return ways to open the gaps: all alike; at random speeds; and pairs of those that do this in two steps.

        Some pair opens any two of the gaps in different steps.
        """
        size = self.closed.shape
        speeds = (0.1 + torch.rand(size, generator=self.random, dtype=torch.float64)) * self.live
        number = torch.arange(len(self.closed))
        halves = [(number >> bit) % 2 == 1 for bit in range((len(number) - 1).bit_length())]
        halves += [torch.rand(size, generator=self.random) < 0.5 for _ in range(more)]
        pairs = [(Way(self, speeds * half), Way(self, speeds * ~half)) for half in halves]
        return Way(self, self.live.double()), Way(self, speeds), pairs


@dataclass
class Way:
    """How fast the gaps of a result open as those of all arguments do, each at a speed of its own."""

    slopes: Slopes
    speeds: Tensor

    @cached_property
    def once(self) -> Tensor:
        return self.slopes.along(self.speeds)

    @cached_property
    def twice(self) -> Tensor:
        return self.slopes.along(self.speeds, 2e-8)

    @property
    def at_once(self) -> Tensor:
        """The slopes at the very start, from two places ahead."""
        return 2 * self.once - self.twice

    @property
    def steady(self) -> Tensor:
        """Whether each gap opens steadily, not with a jump nor as a root does."""
        return self.once.isfinite() & torch.isclose(self.once, self.twice, rtol=1e-2, atol=1e-5)


def slopes_at(case: Case, place: str, seed: int) -> Slopes | None:
    """Return the slopes of a case whose points lie at a place; None if the operation does not take them."""
    args = _placed(case, place, seed)
    return Slopes(case, args, torch.Generator().manual_seed(seed)) if _has_value(case, args) else None


def assert_slopes(slopes: Slopes, place: str) -> int:
    """Assert that the gradient at closed gaps is the slope of opening them; return how many of them have a slope."""
    if not slopes.closed.numel() or not slopes.gaps.isfinite().all():
        return 0
    alike, speeds, pairs = slopes.ways()
    steady = speeds.steady & alike.steady
    linear = steady & _near(speeds.once + alike.once, slopes.along(speeds.speeds + alike.speeds))
    for first, second in pairs:
        linear &= _near(first.once + second.once, speeds.once)
    weights = torch.rand(slopes.gaps.shape, generator=slopes.random, dtype=torch.float64)

    # Where the slope is one number for each gap, the gradient has them all; at a tie, that of opening all alike.
    gradient = torch.where(slopes.live, slopes.gradient(weights * linear), 0.0)
    at_ties = torch.where(slopes.live, slopes.gradient(weights * (steady & ~linear)), 0.0)

    for way in (speeds, *(first for first, _ in pairs)):
        expected, found = (torch.where(linear, way.at_once, 0.0) * weights).sum(), gradient @ way.speeds
        assert _near(found, expected), f"{place}: {found}, not {expected}"
    expected = (torch.where(steady & ~linear, alike.at_once, 0.0) * weights).sum()
    assert _near(at_ties.sum(), expected), f"{place}: {at_ties.sum()}, not {expected}, where values tie"
    return int(steady.sum())


@pytest.mark.rotating
@pytest.mark.parametrize("case", [case for case in CASES if not is_rounded(case)], ids=str)
def test_the_gradient_on_a_kink_is_the_slope_of_opening_closed_gaps(case: Case) -> None:
    found = {place: slopes_at(case, place, seed) for seed, place in enumerate(PLACES)}

    compared = sum(assert_slopes(slopes, place) for place, slopes in found.items() if slopes is not None)

    have_some = any(slopes and slopes.closed.numel() and slopes.gaps.numel() for slopes in found.values())
    assert compared or not have_some, "nothing was compared"


@pytest.mark.parametrize("case", [case for case in CASES if case.op is torch.ops.aten.atan.default], ids=str)
@pytest.mark.parametrize("seed", range(10, 20))
def test_ends_that_were_rounded_beyond_their_points_have_slopes(case: Case, seed: int) -> None:
    """Torch's complex ``atanh`` is not odd to the last digit, so an end may miss its point."""
    slopes = slopes_at(case, "anywhere", seed)

    assert slopes is not None
    assert assert_slopes(slopes, "anywhere")
