"""Correlation and sparsification against SciPy, plain NumPy and closed forms."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from scipy import stats

from intervalnn import metrics
from intervalnn.metrics import RankCorrelation, Sparsification
from intervalnn.prediction import Prediction
from metrics.draws import Array, Draw, Metric, drawn, samples, tied


def scored(error: Array, score: Array) -> tuple[Prediction, torch.Tensor]:
    """Return a prediction of zero with this score, one row for each sample, and targets this far off."""
    target = torch.as_tensor(np.atleast_2d(error), dtype=torch.float64)
    own = torch.as_tensor(np.atleast_2d(score), dtype=torch.float64)
    return Prediction(torch.zeros_like(target), own, own, own), target


# --- correlation ---


@pytest.mark.parametrize("draw", [drawn, tied])
@pytest.mark.parametrize("seed", range(5))
def test_correlations_are_those_of_scipy(draw: Draw, seed: int) -> None:
    prediction, target = draw((4, 50), seed)

    pearson, spearman, pwcc = (f(prediction, target) for f in (metrics.pearson, metrics.spearman, metrics.pwcc))

    for i, own in enumerate(samples(prediction, target)):
        wanted = stats.pearsonr(own.error, own.score).statistic
        assert pearson[i].item() == pytest.approx(wanted, abs=1e-12)
        assert spearman[i].item() == pytest.approx(stats.spearmanr(own.error, own.score).statistic, abs=1e-12)
        assert pwcc[i].item() == pytest.approx(wanted / np.mean(own.error**2), abs=1e-11)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e150])
def test_correlations_do_not_depend_on_the_unit(scale: float) -> None:
    prediction, target = drawn()
    scaled = Prediction(*(scale * prediction[name] for name in ("point", "below", "above", "score")))

    for metric in (metrics.pearson, metrics.spearman, metrics.ause):
        assert torch.allclose(metric(scaled, scale * target), metric(prediction, target), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", [metrics.pearson, metrics.spearman, metrics.pwcc])
def test_constant_errors_or_scores_leave_the_correlation_undefined_and_never_zero(metric: Metric) -> None:
    rising = np.arange(1.0, 8.0)
    flat = np.full(7, 0.1)  # whose mean is not exactly itself

    prediction, target = scored(np.stack([flat, rising, 0 * flat, rising]), np.stack([rising, flat, rising, rising]))

    assert metric(prediction, target).isnan().tolist() == [True, True, True, False]
    assert metric(*scored(rising[:1], rising[:1])).isnan().all()


def test_pwcc_of_the_paper_praises_a_score_that_says_nothing() -> None:
    prediction, target = scored(np.arange(1.0, 9.0), np.ones(8))

    assert metrics.pwcc(prediction, target).isnan().all()
    assert metrics.paper_pwcc(prediction, target).item() * 25.5 > 0.8


# --- sparsification ---


def numpy_curve(score: Array, error: Array) -> Array:
    """Return the mean error of what is kept over that of all, removing the largest scores one at a time."""
    order = np.argsort(score, kind="stable")
    return np.array([error[order[: len(error) - k]].mean() for k in range(len(error))]) / error.mean()


@pytest.mark.parametrize("seed", range(4))
def test_sparsification_removes_one_component_at_a_time(seed: int) -> None:
    prediction, target = drawn((3, 25), seed)

    found = metrics.sparsification_curve(prediction, target)

    for i, own in enumerate(samples(prediction, target)):
        by_score, oracle = numpy_curve(own.score, own.error), numpy_curve(own.error, own.error)
        np.testing.assert_allclose(found.by_score[i], by_score, rtol=1e-12)
        np.testing.assert_allclose(found.oracle[i], oracle, rtol=1e-12)
        np.testing.assert_allclose(found.area[i], np.trapezoid(by_score - oracle, np.arange(25) / 25), atol=1e-12)
    assert torch.equal(found.area, metrics.ause(prediction, target))


def test_tied_scores_leave_in_the_mean_of_all_orders() -> None:
    prediction, target = tied((1, 12), seed=3)
    (own,) = samples(prediction, target)
    random = np.random.default_rng(0)

    found = metrics.sparsification_curve(prediction, target).by_score[0]

    orders = [random.permutation(12) for _ in range(4000)]
    drawn_curves = np.mean([numpy_curve(own.score[order], own.error[order]) for order in orders], axis=0)
    np.testing.assert_allclose(found, drawn_curves, atol=0.05)
    assert (
        np.abs(found.numpy() - numpy_curve(own.score, own.error)).max() > 0.05
    )  # taking ties as they come would differ


def test_the_best_score_has_no_area_and_a_constant_one_that_of_random_removal() -> None:
    error = np.random.default_rng(0).exponential(size=4000)

    perfect, constant, worst = metrics.ause(
        *scored(np.stack([error] * 3), np.stack([error**2, np.ones(4000), 1 / error]))
    ).tolist()

    # Exponential errors: the oracle's mean of a share q kept is 1 + (1 - q) ln(1 - q) / q, of area 2 - pi^2 / 6.
    assert perfect == pytest.approx(0, abs=1e-12)
    assert constant == pytest.approx(1 - (2 - math.pi**2 / 6), abs=0.03)
    assert worst > constant


def test_without_error_or_with_one_component_the_area_is_undefined() -> None:
    assert metrics.ause(*scored(np.zeros(5), np.arange(1.0, 6.0))).isnan().all()
    assert metrics.ause(*scored(np.ones(1), np.ones(1))).isnan().all()


# --- over all samples, in sketches ---


@pytest.mark.parametrize("seed", range(3))
def test_the_pooled_area_is_that_of_all_components_to_the_width_of_a_cell(seed: int) -> None:
    prediction, target = drawn((20, 500), seed)

    tally = Sparsification(steps=50)
    sums = sum((tally.count(prediction[i : i + 1], target[i : i + 1]) for i in range(20)), tally.empty())
    found = tally.result(sums)

    score, error = (
        np.concatenate([getattr(own, name) for own in samples(prediction, target)]) for name in ("score", "error")
    )
    by_score, oracle = numpy_curve(score, error), numpy_curve(error, error)
    assert found.area.item() == pytest.approx(np.trapezoid(by_score - oracle, np.arange(10_000) / 10_000), abs=1e-3)
    np.testing.assert_allclose(found.by_score, by_score[::200], rtol=0.02)
    np.testing.assert_allclose(found.oracle, oracle[::200], rtol=0.002)


def test_the_pooled_area_of_scores_in_one_cell_is_that_of_random_removal() -> None:
    error = np.array([1.0, 2.0, 3.0, 4.0])
    tally = Sparsification()

    found = tally.result(tally.count(*scored(error, np.full(4, 2.0))))

    # The oracle keeps 1, 1 + 2 (q - 1/4), ... : the integral of its mean, over quarters, in closed form.
    sums, area = np.array([0.0, 1.0, 3.0, 6.0, 10.0]) / 10, 0.0
    for k in range(4):
        slope, left, right = (sums[k + 1] - sums[k]) * 4, k / 4, (k + 1) / 4
        area += slope / 4 + ((sums[k] - slope * left) * math.log(right / left) if k else 0.0)
    assert found.area.item() == pytest.approx(1 - area, abs=1e-12)
    np.testing.assert_allclose(found.by_score, 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_pooled_rank_correlation_is_near_that_of_scipy(seed: int) -> None:
    prediction, target = drawn((20, 500), seed)
    tally = RankCorrelation()

    found = tally.result(tally.count(prediction[:7], target[:7]) + tally.count(prediction[7:], target[7:]))

    score, error = (
        np.concatenate([getattr(own, name) for own in samples(prediction, target)]) for name in ("score", "error")
    )
    assert found.item() == pytest.approx(stats.spearmanr(error, score).statistic, abs=2e-3)


def test_pooled_results_of_nothing_and_of_constants_are_undefined() -> None:
    flat = scored(np.ones(5), np.ones(5))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RankCorrelation().result(RankCorrelation().count(*flat)).isnan()
        assert RankCorrelation().result(RankCorrelation().empty()).isnan()
        assert Sparsification().result(Sparsification().empty()).area.isnan()
        assert Sparsification().result(Sparsification().count(*scored(np.zeros(5), np.ones(5)))).area.isnan()
