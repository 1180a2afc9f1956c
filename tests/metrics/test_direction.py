"""The direction curve against plain counting, and its limits against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from intervalnn import metrics
from intervalnn.metrics import Directions
from intervalnn.prediction import Prediction
from metrics.draws import Draw, drawn, samples, tied


def correlated(n: int, seed: int, size: int = 100) -> tuple[Prediction, Tensor]:
    """Return images in each of which the direction is right with a probability of its own, .65 on average."""
    noise = torch.Generator().manual_seed(seed)
    chance = 0.4 + 0.5 * torch.rand(n, 1, generator=noise)
    above = torch.rand(n, size, generator=noise) < 0.5
    right = torch.rand(n, size, generator=noise) < chance
    gap = torch.ones(n, size)
    target = torch.where(above == right, 1.0, -1.0)
    return Prediction(
        torch.zeros(n, size), torch.where(above, gap, 2 * gap), torch.where(above, 2 * gap, gap), gap
    ), target


@pytest.mark.parametrize("draw", [drawn, tied])
def test_the_curve_counts_what_plain_loops_count(draw: Draw) -> None:
    prediction, target = draw((4, 30), 1)
    thresholds = (1.0, 1.5, 3.0, 1e9)

    found = metrics.direction_curve(prediction, target, thresholds=thresholds)

    for i, threshold in enumerate(thresholds):
        kept, right, above = 0, [], []
        for own in samples(prediction, target):
            for down, up, point, truth in zip(own.below, own.above, own.point, own.target, strict=True):
                if down == up or max(down, up) < threshold * min(down, up):
                    continue
                kept += 1
                if truth != point:
                    right.append((up > down) == (truth > point))
                    above.append(truth > point)
        assert found.kept[i].item() == pytest.approx(kept / 120)
        assert found.judged[i].item() == len(right)
        wanted = [np.mean(right), max(np.mean(above), 1 - np.mean(above))] if right else [math.nan] * 2
        np.testing.assert_allclose([found.accuracy[i], found.majority[i]], wanted, rtol=1e-12)
        np.testing.assert_allclose([found.lower[i], found.upper[i]], metrics.wilson(sum(right), len(right)), rtol=1e-12)


def test_limits_over_samples_follow_their_formula() -> None:
    prediction, target = correlated(4, seed=0)

    found = metrics.direction_curve(prediction, target, thresholds=(1.0,), confidence=0.9)

    right = metrics.direction_accuracy(prediction, target).numpy() * 100
    reach = 1.6448536 * np.sqrt(4 / 3 * np.sum((right - right.mean()) ** 2)) / 400
    assert found.lower_over_samples.item() == pytest.approx(right.mean() / 100 - reach, rel=1e-6)
    assert found.upper_over_samples.item() == pytest.approx(right.mean() / 100 + reach, rel=1e-6)


def test_zero_gaps_have_no_direction_and_a_single_gap_has_any_strength() -> None:
    zero = torch.zeros(1, 2)
    prediction = Prediction(zero, zero, torch.tensor([[0.0, 1.0]]), zero)

    found = metrics.direction_curve(prediction, torch.ones(1, 2), thresholds=(1.0, 1e6))

    assert found.kept.tolist() == [0.5, 0.5] and found.accuracy.tolist() == [1.0, 1.0]


def test_batches_add_up_to_the_whole() -> None:
    prediction, target = drawn((6, 30))
    tally = Directions(thresholds=(1.0, 2.0))

    parts = sum((tally.count(prediction[i : i + 2], target[i : i + 2]) for i in (0, 2, 4)), tally.empty())

    whole = metrics.direction_curve(prediction, target, thresholds=(1.0, 2.0))
    for found, wanted in zip(tally.result(parts), whole, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_limits_over_samples_hold_where_those_of_independent_components_fail() -> None:
    held = {"components": 0, "samples": 0, "bootstrap": 0}

    for seed in range(200):
        prediction, target = correlated(30, seed)
        plain = metrics.direction_curve(prediction, target, thresholds=(1.0,))
        drawn_anew = metrics.direction_curve(prediction, target, thresholds=(1.0,), resamples=200, seed=seed)
        held["components"] += bool(plain.lower <= 0.65 <= plain.upper)
        held["samples"] += bool(plain.lower_over_samples <= 0.65 <= plain.upper_over_samples)
        held["bootstrap"] += bool(drawn_anew.lower_over_samples <= 0.65 <= drawn_anew.upper_over_samples)

    assert held["components"] < 150
    assert held["samples"] >= 180 and held["bootstrap"] >= 178


def test_the_formula_gives_what_many_draws_tend_to() -> None:
    prediction, target = correlated(100, seed=0)

    formula = metrics.direction_curve(prediction, target, thresholds=(1.0, 1.5))
    draws = metrics.direction_curve(prediction, target, thresholds=(1.0, 1.5), resamples=4000)

    torch.testing.assert_close(formula.lower_over_samples, draws.lower_over_samples, atol=0.004, rtol=0)
    torch.testing.assert_close(formula.upper_over_samples, draws.upper_over_samples, atol=0.004, rtol=0)


def test_draws_depend_on_their_seed_alone() -> None:
    prediction, target = correlated(10, seed=0)

    torch.manual_seed(1)
    first = metrics.direction_curve(prediction, target, thresholds=(1.0,), resamples=50, seed=3)
    torch.manual_seed(2)
    again, other = (
        metrics.direction_curve(prediction, target, thresholds=(1.0,), resamples=50, seed=seed) for seed in (3, 4)
    )

    assert torch.equal(first.lower_over_samples, again.lower_over_samples)
    assert not torch.equal(first.lower_over_samples, other.lower_over_samples)


@pytest.mark.parametrize("resamples", [None, 20])
def test_one_sample_has_no_limits_over_samples(resamples: int | None) -> None:
    found = metrics.direction_curve(*drawn((1, 30)), resamples=resamples)

    assert found.lower_over_samples.isnan().all() and found.upper_over_samples.isnan().all()
    assert found.lower[0].isfinite()


@pytest.mark.parametrize("resamples", [None, 20])
def test_samples_without_a_component_to_judge_do_not_make_limits(resamples: int | None) -> None:
    prediction, target = correlated(5, seed=0)
    target[1:] = 0.0  # where it is the point itself

    found = metrics.direction_curve(prediction, target, thresholds=(1.0,), resamples=resamples)

    assert found.accuracy.isfinite().all() and found.lower_over_samples.isnan().all()


@pytest.mark.parametrize("thresholds", [(), (0.5,), (2.0, math.nan)])
def test_thresholds_below_one_are_refused(thresholds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="thresholds must be 1 or more"):
        metrics.direction_curve(*drawn(), thresholds=thresholds)
