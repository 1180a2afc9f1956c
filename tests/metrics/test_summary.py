"""Means that leave out the undefined, and limits of shares, against NumPy and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from intervalnn.metrics import mean_defined, wilson
from intervalnn.metrics.summary import NO_MOMENTS, mean_of, merged, moments

numbers = st.lists(st.one_of(st.just(math.nan), st.floats(-1e6, 1e6)), max_size=30)


@given(values=numbers)
def test_the_mean_is_that_of_the_defined_numbers(values: list[float]) -> None:
    mean, sd, defined, total = mean_defined(torch.tensor(values, dtype=torch.float64))

    known = [value for value in values if not math.isnan(value)]
    assert (defined, total) == (len(known), len(values))
    assert mean == pytest.approx(np.mean(known) if known else math.nan, nan_ok=True, abs=1e-9)
    assert sd == pytest.approx(np.std(known, ddof=1) if len(known) > 1 else math.nan, nan_ok=True, abs=1e-8)


@given(parts=st.lists(numbers, max_size=6))
def test_moments_of_parts_merge_into_those_of_the_whole(parts: list[list[float]]) -> None:
    each = [moments(torch.tensor(part, dtype=torch.float64)) for part in parts]

    found = mean_of(merged(torch.stack([torch.tensor(NO_MOMENTS, dtype=torch.float64), *each])))

    whole = mean_defined(torch.tensor([value for part in parts for value in part], dtype=torch.float64))
    assert found == pytest.approx(whole, nan_ok=True, rel=1e-9, abs=1e-8)


def test_the_spread_of_numbers_far_from_zero_is_kept() -> None:
    values = 1e9 + torch.arange(1000, dtype=torch.float64) / 1000

    found = mean_of(merged(torch.stack([moments(part) for part in values.split(7)])))

    assert found.sd == pytest.approx(np.std(values.numpy(), ddof=1), rel=1e-6)


def test_nothing_defined_gives_nan_and_a_count_of_zero() -> None:
    mean, sd, defined, total = mean_defined(torch.tensor([math.nan, math.nan]))

    assert math.isnan(mean) and math.isnan(sd) and (defined, total) == (0, 2)


def test_an_infinite_number_makes_the_mean_infinite_in_parts_too() -> None:
    values = torch.tensor([1.0, math.inf, 2.0, 3.0])

    parts = mean_of(merged(torch.stack([moments(part) for part in values.split(1)])))

    for found in (mean_defined(values), parts):
        assert found.mean == math.inf and math.isnan(found.sd) and found.defined == 4


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(("hits", "n"), [(0, 5), (5, 5), (3, 10), (90, 100), (123456, 200000)])
def test_wilson_is_that_of_scipy(hits: int, n: int, confidence: float) -> None:
    lower, upper = wilson(hits, n, confidence)

    wanted = stats.binomtest(hits, n).proportion_ci(confidence, method="wilson")
    assert (lower.item(), upper.item()) == pytest.approx(tuple(wanted), abs=1e-12)


def test_wilson_takes_tensors_and_knows_nothing_of_nothing() -> None:
    lower, upper = wilson(torch.tensor([0, 9]), torch.tensor([0, 10]))

    assert (lower[0].item(), upper[0].item()) == pytest.approx((0.0, 1.0))
    assert (lower[1].item(), upper[1].item()) == pytest.approx([float(end) for end in wilson(9, 10)])


def test_shares_in_the_place_of_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="hits must lie between 0 and n"):
        wilson(3, 2)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1, got 95"):
        wilson(1, 2, 95)
