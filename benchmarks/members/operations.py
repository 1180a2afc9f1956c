"""Every rule with new draws: its bounds contain what they should, and its gradient is the slope of opening a gap."""

from __future__ import annotations

from random import Random

import torch

from members.checking import Fault, need
from properties import test_gradients
from properties.case import PATTERNS, samples
from properties.cases import CASES
from properties.checks import assert_gaps, assert_inside, is_rounded

SLOPES = [case for case in CASES if not is_rounded(case) and not test_gradients._is_cone(case)]


def bounds(random: Random) -> str:
    """Try one operation and one way in which its intervals lie."""
    case, pattern, seed = random.choice(CASES), random.choice(PATTERNS), random.getrandbits(31)
    args = case.draw(seed, pattern)
    said = f"{case}, {pattern}, seed {seed}"
    results = zip(*(case.plain(values) for values in samples(args, seed)), strict=True)
    for bound, values in zip(case.bounds(args), results, strict=True):
        try:
            assert_gaps(bound)
            assert_inside(bound, torch.stack(values), said)
        except AssertionError as error:
            raise Fault(f"{said}: {error}"[:300]) from error
    return "bounded"


def slopes(random: Random) -> str:
    """Try one operation from closed gaps: the gradient is that of finite differences, on the side that opens."""
    case, seed, side = random.choice(SLOPES), random.getrandbits(31), random.randrange(2)
    args = test_gradients._without_gaps(case.draw(seed, random.choice(["no gaps", "some gaps", "at zero"])))
    generator = torch.Generator().manual_seed(seed)
    weights, leaves, gradient = test_gradients._gradient(case, args, generator)
    step = [d * (k % 2 == side) for k, d in enumerate(test_gradients._uniform(leaves, generator))]
    expected = float(sum((test_gradients.real_parts(g) * d).sum() for g, d in zip(gradient, step, strict=True)))
    opened = [1e-7 * d for d in step]
    gaps = [torch.view_as_complex(o) if leaf.is_complex() else o for o, leaf in zip(opened, leaves, strict=True)]
    wider = test_gradients._with_gaps(args, gaps)
    if test_gradients._is_finite(case, args) and test_gradients._is_finite(case, wider):
        slope = float(test_gradients._total(test_gradients._gaps_of(case, wider), weights)) / 1e-7
        close = abs(slope - expected) <= 1e-5 + 1e-3 * abs(slope)
        need(close, f"{case}, seed {seed}, side {side}: the slope is {slope:.6g}, the gradient {expected:.6g}")
    return "bounded"


__all__ = ["bounds", "slopes"]
