"""Gaps in bfloat16 are as wide as exact ones, up to the margin that the search for attacks states."""

from __future__ import annotations

import pytest
import torch

import intervalnn as inn
from architectures import architecture
from attack import margin


@torch.no_grad()
def _opened(net: inn.IntervalNetwork, seed: int, *, lopsided: bool) -> None:
    """Give every parameter gaps that bfloat16 holds exactly."""
    generator = torch.Generator().manual_seed(seed)
    for name in net.names:
        for side, gap in enumerate(net.gaps.get_submodule(name).sides):
            size = 1e-6 if lopsided and side == seed // 2 else 1e-2
            gap.copy_((size * torch.rand(gap.shape, generator=generator)).bfloat16())


@pytest.mark.rotating
@pytest.mark.parametrize("kind", ["weight", "symmetric", "input"])
@pytest.mark.parametrize("depth", [1, 4])
def test_gaps_in_bfloat16_are_too_small_by_the_stated_margin_at_most(kind: inn.Kind, depth: int) -> None:
    share = 1 - margin(depth, torch.bfloat16)
    for seed in range(4):
        made = architecture(1000 * depth + seed, depth)
        model, x = made.model.double(), made.x.double()
        bounds = []
        for gap_dtype in (torch.float64, torch.bfloat16):
            net = inn.IntervalNetwork(model, layers="all", kind=kind, gap_dtype=gap_dtype)
            _opened(net, seed, lopsided=seed % 2 == 0)
            with torch.no_grad():
                bounds.append(net(x))
        exact, rounded = bounds

        for side in ("below", "above"):
            wide, narrow = (getattr(each, side).double() for each in (rounded, exact))
            least = (wide / narrow.clamp_min(1e-30)).min()
            assert (wide >= share * narrow - 1e-9).all(), f"{made.layers}, {side}: {least} times, not {share}"
