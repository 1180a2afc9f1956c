"""The coverage bound of App. A, and which tightness gives which coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from intervalnn.calibration.guarantee import (
    Offsets,
    beta_for_coverage,
    beta_from_residuals,
    markov_curve,
    solve_offsets,
)
from intervalnn.prediction import Prediction


class Known:
    """A method whose measurements are its predictions: point, below and above, side by side."""

    def predict(self, x: Tensor) -> Prediction:
        point, below, above = x.unbind(1)
        return Prediction(point, below, above, below + above)


def known(n: int = 40, size: int = 30, seed: int = 0, *, gap: float = 0.5) -> tuple[Tensor, Tensor]:
    noise = torch.Generator().manual_seed(seed)
    point, below, above, error = torch.randn(4, n, size, generator=noise, dtype=torch.float64)
    own = torch.exp(torch.randn(n, 1, generator=noise, dtype=torch.float64))
    return torch.stack((point, gap * below.abs(), gap * above.abs()), 1), point + own * error + 0.3


def exceeded(batches: list[tuple[Tensor, Tensor]], offsets: Offsets) -> tuple[float, float]:
    """Return by how much targets exceed the moved bounds, on average over images, in NumPy."""
    below, above = [], []
    for x, y in batches:
        for (point, gap_below, gap_above), target in zip(x.numpy(), y.numpy(), strict=True):
            lower = point - np.maximum(gap_below + offsets.below, 0)
            upper = point + np.maximum(gap_above + offsets.above, 0)
            below.append(np.mean(np.maximum(lower - target, 0)))
            above.append(np.mean(np.maximum(target - upper, 0)))
    return float(np.mean(below)), float(np.mean(above))


# --- offsets ---


@settings(max_examples=50)
@given(seed=st.integers(0, 1000), gap=st.sampled_from([0.0, 0.3, 3.0]), beta=st.floats(1e-3, 0.5))
def test_offsets_make_both_conditions_hold_with_equality(seed: int, gap: float, beta: float) -> None:
    batch = known(4, 5, seed, gap=gap)

    offsets = solve_offsets(Known(), [batch], beta=beta)

    bare = exceeded([batch], Offsets(-math.inf, -math.inf))
    for found, without_gaps in zip(exceeded([batch], offsets), bare, strict=True):
        assert found == pytest.approx(min(beta / 2, without_gaps), rel=1e-9)


def test_offsets_are_the_smallest() -> None:
    batch = known()

    offsets = solve_offsets(Known(), [batch], beta=0.1)

    smaller = Offsets(offsets.below - 1e-6, offsets.above - 1e-6)
    assert min(exceeded([batch], smaller)) > 0.05 >= max(exceeded([batch], offsets)) - 1e-12


def test_bounds_that_are_too_wide_move_in_and_gaps_stop_at_zero() -> None:
    x, y = known(gap=20.0)

    offsets = solve_offsets(Known(), [(x, y)], beta=0.5)

    moved = offsets(Known().predict(x))
    assert offsets.below < 0 and offsets.above < 0
    assert moved.below.min() == 0 and moved.above.min() == 0
    assert exceeded([(x, y)], offsets) == pytest.approx((0.25, 0.25))


def test_where_no_gap_is_needed_none_is_left() -> None:
    x, y = known()

    offsets = solve_offsets(Known(), [(x, y)], beta=100.0)

    assert offsets(Known().predict(x)).bounds.width.max() == 0
    assert math.isfinite(offsets.below) and math.isfinite(offsets.above)


def test_images_count_the_same_whatever_their_size_and_batch() -> None:
    batches = [known(7, 3, seed=1), known(2, 100, seed=2), known(11, 3, seed=3)]

    offsets = solve_offsets(Known(), batches, beta=0.2)

    assert exceeded(batches, offsets) == pytest.approx((0.1, 0.1), rel=1e-9)


def test_a_score_that_is_the_width_stays_the_width() -> None:
    x, _ = known()

    moved = Offsets(below=0.25, above=-0.25)(Known().predict(x))

    torch.testing.assert_close(moved.score, moved.bounds.width)


# --- the bound ---


def test_the_bound_holds_on_the_data_it_was_solved_for() -> None:
    batch, factors = known(), np.geomspace(0.5, 1000, 30)
    offsets = solve_offsets(Known(), [batch], beta=0.02)

    curve = markov_curve(Known(), [batch], beta=0.02, factors=torch.tensor(factors), alpha=0.05, offsets=offsets)

    assert curve.holds
    assert (curve.inside >= curve.promised).all() and (curve.inputs >= curve.promised_inputs).all()
    np.testing.assert_allclose(curve.promised, np.maximum(1 - 1 / factors, 0))
    np.testing.assert_allclose(curve.promised_inputs, np.maximum(1 - 1 / (factors * 0.05), 0))


def test_without_its_condition_the_bound_can_fail_and_the_curve_says_so() -> None:
    batch = known(gap=0.0)

    curve = markov_curve(Known(), [batch], beta=0.02, factors=[5.0])

    assert not curve.holds
    assert curve.inside[0] < curve.promised[0]


def test_the_bound_does_not_hold_given_the_input() -> None:
    x, y = known(200, 100)
    offsets = solve_offsets(Known(), [(x, y)], beta=0.02)

    curve = markov_curve(Known(), [(x, y)], beta=0.02, factors=[20.0], alpha=0.05, offsets=offsets)

    assert curve.inside[0] >= 0.95  # on average over x, as the proof shows
    assert curve.inputs[0] < 1  # but not for each x, as Sec. 4 states


def test_the_curve_agrees_with_counting() -> None:
    (x, y), beta, factors, alpha = known(), 0.1, [1.0, 3.0, 10.0], 0.2
    point, below, above = x.numpy().swapaxes(0, 1)

    curve = markov_curve(Known(), [(x[:9], y[:9]), (x[9:], y[9:])], beta=beta, factors=factors, alpha=alpha)

    for i, factor in enumerate(factors):
        inside = (point - below - factor * beta < y.numpy()) & (y.numpy() < point + above + factor * beta)
        assert curve.inside[i] == pytest.approx(inside.mean())
        assert curve.inputs[i] == pytest.approx(np.mean(np.mean(~inside, axis=1) <= alpha))
    assert (curve.missed_below, curve.missed_above) == pytest.approx(exceeded([(x, y)], Offsets(0.0, 0.0)))


# --- which tightness ---


@pytest.mark.parametrize(("coverage", "share_of_mae"), [(0.90, 0.05), (0.83, 0.1), (0.69, 0.2)])
def test_gaussian_errors_have_the_coverage_of_the_design(coverage: float, share_of_mae: float) -> None:
    assert beta_for_coverage(coverage, 1.0, errors="gaussian") == pytest.approx(share_of_mae, abs=0.006)


def quantiles(shape: str, n: int = 200_000) -> NDArray[np.float64]:
    """Return errors whose distribution is exactly the shape, but for steps."""
    levels = torch.arange(0.5, n, dtype=torch.float64) / n
    if shape == "gaussian":
        return torch.special.ndtri(levels).numpy()
    middle = levels - 0.5
    return (-middle.sign() * torch.log1p(-2 * middle.abs())).numpy()


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
@pytest.mark.parametrize("coverage", [0.3, 0.69, 0.9, 0.99])
def test_tightness_from_residuals_agrees_with_the_closed_form(shape: str, coverage: float) -> None:
    errors = quantiles(shape)

    beta = beta_from_residuals(torch.tensor(errors), coverage)

    expected = beta_for_coverage(coverage, float(np.abs(errors).mean()), errors=shape)  # type: ignore[arg-type]
    assert beta == pytest.approx(expected, rel=2e-3)


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), count=st.integers(10, 90), shift=st.floats(-1, 1))
def test_the_best_bounds_at_that_tightness_cover_just_enough(seed: int, count: int, shift: float) -> None:
    noise = np.random.default_rng(seed)
    residuals = noise.gamma(1.0, size=100) - 1 + shift  # neither symmetric nor centred

    beta = beta_from_residuals(torch.tensor(residuals), count / 100)

    assert covered(residuals, beta * (1 - 1e-9)) >= count / 100 > covered(residuals, beta * (1 + 1e-9))


def covered(residuals: NDArray[np.float64], beta: float) -> float:
    """Return the share that the best constant bounds cover, found by bisection on the loss's own derivative."""
    gaps = []
    for side in (residuals, -residuals):
        low, high = 0.0, float(max(side.max(), 0.0))
        for _ in range(80):
            middle = (low + high) / 2
            rising = 2 * np.mean(np.maximum(side - middle, 0)) > beta
            low, high = (middle, high) if rising else (low, middle)
        gaps.append(high)
    return float(np.mean((residuals <= gaps[0]) & (-residuals <= gaps[1])))


def test_at_the_mean_absolute_error_which_the_paper_takes_the_best_width_is_zero() -> None:
    residuals = quantiles("laplace", 2000)

    assert covered(residuals, float(np.abs(residuals).mean())) == 0


@pytest.mark.parametrize(
    ("residuals", "message"),
    [
        ([0.0, 0.0, 1.0], "bounds of any tightness"),
        ([1.0, 2.0, -1.0], "always missed"),
        ([math.nan], "finite"),
        ([], "at least one"),
    ],
)
def test_residuals_that_fix_no_tightness_are_refused(residuals: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        beta_from_residuals(torch.tensor(residuals), 0.6)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="beta must be positive, got 0"):
        solve_offsets(Known(), [known()], beta=0.0)
    with pytest.raises(ValueError, match="factors must be positive, got -1"):
        markov_curve(Known(), [known()], beta=0.1, factors=[-1.0])
    with pytest.raises(ValueError, match=r"coverage must lie between 0 and 1, got 1\.5"):
        beta_for_coverage(1.5, 1.0)
    with pytest.raises(ValueError, match="loader is empty"):
        solve_offsets(Known(), [], beta=0.1)
