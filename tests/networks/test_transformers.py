"""Networks of Hugging Face transformers, from random weights, converted without a single edit."""

from __future__ import annotations

import pytest
import torch
from soundness import fingerprint, leaves, misses, set_random_gaps
from zoo import Case

import intervalnn as inn

pytest.importorskip("transformers", reason="transformers is not installed; pip install transformers")

from transformers_zoo import REFUSED, TRANSFORMERS


def build(case: Case) -> torch.nn.Module:
    try:
        return case.build(torch.float64)
    except ImportError as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.mark.parametrize("case", [pytest.param(c, id=str(c), marks=[pytest.mark.slow] * c.slow) for c in TRANSFORMERS])
def test_no_draw_leaves_the_bounds_and_the_point_is_the_models_own(case: Case) -> None:
    model, twin = build(case), build(case)
    args, kwargs = case.call(torch.float64)
    before = fingerprint(model)
    net = inn.IntervalNetwork(model)
    set_random_gaps(net, rel=case.rel)

    outside, used = misses(net, twin, args, kwargs, draws=20, rtol=1e-9)

    assert outside == 0
    assert used > 0
    assert fingerprint(model) == before
    with torch.no_grad():
        for bounds, output in zip(leaves(net(*args, **kwargs)), leaves(model(*args, **kwargs)), strict=True):
            if isinstance(bounds, inn.Interval):
                torch.testing.assert_close(bounds.point, output, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(c, id=str(c)) for c in REFUSED])
def test_what_cannot_be_bounded_is_refused_with_the_line(case: Case) -> None:
    args, kwargs = case.call(torch.float64)

    with pytest.raises((ValueError, inn.MissingRuleError), match=r"transformers.*\.py:\d+|in module '"):
        inn.IntervalNetwork(build(case))(*args, **kwargs)
