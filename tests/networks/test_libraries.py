"""Networks of other libraries, with random weights, converted without a single edit."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from soundness import fingerprint, leaves, misses, precision, set_random_gaps
from zoo import Case

import intervalnn as inn

LIBRARIES = {"monai": "MONAI", "transformers": "TRANSFORMERS"}  # by the name of their table


def cases(table: str) -> list[Any]:
    """Return the cases of all libraries; one that is absent is one case, which skips and says so."""
    found: list[Any] = []
    for library, own in LIBRARIES.items():
        try:
            zoo = importlib.import_module(f"{library}_zoo")
        except ImportError as error:
            reason = f"{library} is not installed ({error}); pip install {library}"
            found.append(pytest.param(None, id=library, marks=pytest.mark.skip(reason=reason)))
            continue
        for case in getattr(zoo, own if table == "converted" else "REFUSED"):
            slow = case.slow or table == "refused"
            found.append(pytest.param(case, id=f"{library}, {case}", marks=[pytest.mark.slow] * slow))
    return found


def build(case: Case, dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    try:
        return case.build(dtype)
    except ImportError as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.mark.rotating
@pytest.mark.parametrize("case", cases("converted"))
def test_no_draw_leaves_the_bounds_and_the_point_is_the_models_own(case: Case) -> None:
    build(case)
    dtype, rtol = precision(case)
    model, twin = build(case, dtype), build(case, dtype)
    args, kwargs = case.call(dtype)
    before = fingerprint(model)
    net = inn.IntervalNetwork(model, layers="all")
    set_random_gaps(net, rel=case.rel)

    outside, used = misses(net, twin, args, kwargs, draws=200, rtol=rtol)

    assert outside == 0
    assert used > 0
    assert fingerprint(model) == before
    with torch.no_grad():
        for bounds, output in zip(leaves(net(*args, **kwargs)), leaves(model(*args, **kwargs)), strict=True):
            if isinstance(bounds, inn.Interval):
                torch.testing.assert_close(bounds.point, output, rtol=rtol, atol=rtol / 10)


@pytest.mark.rotating
@pytest.mark.parametrize("case", cases("refused"))
def test_what_cannot_be_bounded_is_refused_with_the_line(case: Case) -> None:
    args, kwargs = case.call(torch.float64)

    with pytest.raises((ValueError, inn.MissingRuleError), match=r"(monai|transformers).*\.py:\d+|in module '"):
        inn.IntervalNetwork(build(case), layers="all")(*args, **kwargs)
