"""Every rule with new draws: its bounds contain what they should, and its gradient is the slope of opening a gap."""

from __future__ import annotations

from random import Random

import torch

from members.checking import Fault
from properties import test_kinks
from properties.case import PATTERNS, samples
from properties.cases import CASES
from properties.checks import assert_gaps, assert_inside, is_rounded

SLOPES = [case for case in CASES if not is_rounded(case)]


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
    """Try one operation from closed gaps: the gradient is the slope of opening them, on kinks and at ties too."""
    case, place, seed = random.choice(SLOPES), random.choice(list(test_kinks.PLACES)), random.getrandbits(31)
    found = test_kinks.slopes_at(case, place, seed)
    try:
        if found is not None:
            test_kinks.assert_slopes(found, place)
    except AssertionError as error:
        raise Fault(f"{case}, seed {seed}: {error}"[:300]) from error
    return "bounded"


__all__ = ["bounds", "slopes"]
