"""Calibration curve, strata of width, map of miscoverage, Markov curve and quantiles against plain NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from intervalnn import guarantee, metrics
from intervalnn.metrics import CalibrationLevels, MarkovBound, MissedPlaces, WidthQuantile, WidthStrata
from intervalnn.metrics.sketches import FINE, Grid
from intervalnn.prediction import Prediction
from metrics.draws import Draw, bounds_only, drawn, samples, tied

# --- levels ---


def test_a_density_has_the_central_interval_of_each_level() -> None:
    prediction, target = drawn((5, 200))
    levels = (0.2, 0.5, 0.9)

    found = metrics.calibration_curve(prediction, target, levels=levels)

    own = np.concatenate([(s.error / s.deviation) for s in samples(prediction, target)])
    wanted = [np.mean(own <= stats.norm.ppf((1 + level) / 2)) for level in levels]
    np.testing.assert_allclose(found.shares, wanted)
    assert found.components == 1000 and np.abs(np.array(wanted) - levels).max() < 0.05  # errors of that deviation


def test_bounds_alone_are_scaled_as_a_normal_density_would_be() -> None:
    prediction, target = drawn((5, 200))
    levels = (0.2, 0.5, 0.8, 0.95)

    found = metrics.calibration_curve(bounds_only(prediction), target, levels=levels, coverage=0.8)

    for level, share in zip(levels, found.shares, strict=True):
        factor = stats.norm.ppf((1 + level) / 2) / stats.norm.ppf(0.9)
        inside = [
            (s.target <= s.point + factor * s.above) & (s.target >= s.point - factor * s.below)
            for s in samples(prediction, target)
        ]
        assert share.item() == pytest.approx(np.mean(inside))
    assert found.shares[2].item() == pytest.approx(metrics.coverage(prediction, target).mean().item(), abs=1e-15)


def test_levels_outside_zero_and_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must lie between 0 and 1, got 1\.0"):
        CalibrationLevels(levels=(0.5, 1.0))


# --- widths ---


@pytest.mark.parametrize("draw", [drawn, tied])
@pytest.mark.parametrize("bins", [1, 3, 10])
def test_strata_count_what_lies_between_their_edges(draw: Draw, bins: int) -> None:
    prediction, target = draw((4, 250), 0)

    edges, shares, counts = metrics.size_stratified_coverage(prediction, target, bins=bins)

    own = samples(prediction, target)
    width = np.concatenate([s.below + s.above for s in own])
    inside = np.concatenate([(s.target - s.point <= s.above) & (s.point - s.target <= s.below) for s in own])
    for i in range(bins):
        here = (width >= edges[i].item()) & (width < edges[i + 1].item())
        assert counts[i].item() == here.sum()
        np.testing.assert_allclose(shares[i], inside[here].mean() if here.any() else math.nan)
    assert counts.sum() == 1000


def test_strata_are_equal_in_number_where_widths_differ() -> None:
    prediction, target = drawn((4, 2500))

    found = metrics.size_stratified_coverage(prediction, target, bins=5)

    assert (found.counts - 2000).abs().max() < 40


def test_strata_of_equal_widths_are_one_and_the_others_empty() -> None:
    zero, one = torch.zeros(2, 10), torch.ones(2, 10)

    found = metrics.size_stratified_coverage(Prediction(zero, one, one, one), zero)

    assert found.counts.sum() == 20 and found.counts.max() == 20
    assert found.shares.isnan().sum() == 3 and found.shares.nan_to_num(1.0).tolist() == [1.0] * 4


def test_strata_of_few_widths_part_where_these_do() -> None:
    gap = torch.tensor([1.0] * 6 + [2.0] * 4).expand(2, 10)

    found = metrics.size_stratified_coverage(Prediction(0 * gap, gap, gap, gap), 0 * gap, bins=2)

    assert found.counts.tolist() == [12, 8] and found.edges[:2].tolist() == [2.0, 4.0]


def test_strata_show_bounds_that_fail_where_they_are_narrow() -> None:
    noise = torch.Generator().manual_seed(0)
    gap = torch.rand(10, 1000, generator=noise) + 0.1
    target = gap.sqrt() * torch.randn(10, 1000, generator=noise)

    found = metrics.size_stratified_coverage(Prediction(torch.zeros_like(gap), gap, gap, gap), target)

    assert (found.shares.diff() > 0.02).all()


@pytest.mark.parametrize("n", [1, 2, 999, 1000])
def test_the_median_width_of_all_is_known_to_a_part_in_1024(n: int) -> None:
    prediction, target = drawn((n,), seed=1)
    tally = WidthQuantile()

    found = tally.result(tally.count(prediction, target))

    assert found.item() == pytest.approx(np.median(prediction.width.numpy()), rel=1 / 1024)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.99])
def test_other_quantiles_are_too(level: float) -> None:
    prediction, target = drawn((30, 100))
    tally = WidthQuantile(level)

    found = tally.result(sum((tally.count(prediction[i : i + 1], target[i : i + 1]) for i in range(30)), tally.empty()))

    wanted = np.quantile(prediction.width.numpy(), level, method="averaged_inverted_cdf")
    assert found.item() == pytest.approx(wanted, rel=1 / 1024)
    assert tally.result(tally.empty()).isnan()


def test_a_value_lies_in_its_cell_and_cells_are_narrow() -> None:
    random = np.random.default_rng(0)
    values = torch.as_tensor(np.concatenate([[0.0, 1.0, 2.0**-126, 1e-45, 1e300], 10 ** random.uniform(-37, 38, 5000)]))

    cells, edges = FINE.cells(values), FINE.edges()

    within = (values >= edges[cells]) & ((values < edges[cells + 1]) | (cells == FINE.size - 1))
    assert within.all()
    assert ((edges[2:] / edges[1:-1]) <= 1 + 1 / 512).all() and (edges.diff() > 0).all()
    assert len(edges) == FINE.size + 1 and FINE.values()[0] == 0.0
    assert Grid(bits=1, lowest=0, highest=2).edges().tolist() == [0.0, 1.0, 1.5, 2.0, 3.0, 4.0]


# --- places ---


@pytest.mark.parametrize("shape", [(5,), (5, 8), (5, 2, 3, 4), (5, 1, 2, 3, 4)], ids=str)
def test_the_map_counts_misses_at_each_place(shape: tuple[int, ...]) -> None:
    prediction, target = drawn(shape)

    found = metrics.miscoverage_map(prediction, target)

    lower, upper, truth = (part.numpy() for part in (prediction.lower, prediction.upper, target))
    np.testing.assert_allclose(found, np.mean((truth < lower) | (truth > upper), axis=0))


def test_a_map_of_signals_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"needs signals of shape \(1, 4\), got \(1, 5\); keep one for each shape"):
        MissedPlaces((1, 4)).count(*drawn((2, 1, 5)))


# --- the bound of the interval loss ---


class Known:
    def predict(self, prediction: Prediction, target: torch.Tensor) -> Prediction:
        return prediction


def test_the_markov_curve_of_batches_is_that_of_the_method_and_loader() -> None:
    pairs = [drawn((4, 30), seed) for seed in range(3)]
    tally = MarkovBound(beta=0.1, alpha=0.3)

    found = tally.result(sum((tally.count(*pair) for pair in pairs), tally.empty()))

    wanted = guarantee.markov_curve(Known(), [(pair, pair[1]) for pair in pairs], beta=0.1, alpha=0.3)
    for name in ("factors", "promised", "inside", "promised_inputs", "inputs"):
        torch.testing.assert_close(getattr(found, name), getattr(wanted, name), rtol=1e-12, atol=1e-12)
    assert found.missed_below == pytest.approx(wanted.missed_below) and found.holds == wanted.holds
    assert metrics.markov_curve is guarantee.markov_curve


# --- what is refused, and nothing at all ---


def test_settings_out_of_range_are_refused() -> None:
    for wrong in (lambda: WidthStrata(0), lambda: WidthQuantile(1.0), lambda: MarkovBound(beta=0.0)):
        with pytest.raises(ValueError, match=r"must (be|lie)"):
            wrong()


def test_nothing_gives_nan_and_not_an_error() -> None:
    assert WidthStrata().result(WidthStrata().empty()).shares.isnan().all()
    assert CalibrationLevels().result(CalibrationLevels().empty()).shares.isnan().all()
    assert MissedPlaces((2,)).result(MissedPlaces((2,)).empty()).isnan().all()
    assert MarkovBound(beta=1.0).result(MarkovBound(beta=1.0).empty()).inside.isnan().all()
