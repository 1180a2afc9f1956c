"""Metrics per sample against plain NumPy, SciPy, scikit-learn and torchmetrics."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
import torchmetrics.functional.image as published
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.metrics import mean_pinball_loss

from intervalnn import losses, metrics
from intervalnn.interval import Interval
from intervalnn.prediction import Prediction
from metrics.draws import SHAPES, Metric, Sample, bounds_only, drawn, samples, tied


def numpy_winkler(own: Sample, coverage: float) -> float:
    scores = []
    for lower, upper, target in zip(own.lower, own.upper, own.target, strict=True):
        score = upper - lower
        if target < lower:
            score += 2 / (1 - coverage) * (lower - target)
        if target > upper:
            score += 2 / (1 - coverage) * (target - upper)
        scores.append(score)
    return float(np.mean(scores))


def numpy_pinball(own: Sample, coverage: float) -> float:
    tail = (1 - coverage) / 2
    return mean_pinball_loss(own.target, own.lower, alpha=tail) + mean_pinball_loss(
        own.target, own.upper, alpha=1 - tail
    )


def numpy_direction(own: Sample, strength: float) -> float:
    right = []
    for below, above, point, target in zip(own.below, own.above, own.point, own.target, strict=True):
        if below != above and target != point and max(below, above) >= strength * min(below, above):
            right.append((above > below) == (target > point))
    return float(np.mean(right)) if right else math.nan


REFERENCES: list[tuple[Metric, Callable[[Sample], float]]] = [
    (metrics.mse, lambda own: np.mean((own.point - own.target) ** 2)),
    (metrics.mae, lambda own: np.mean(np.abs(own.point - own.target))),
    (metrics.coverage, lambda own: np.mean((own.lower <= own.target) & (own.target <= own.upper))),
    (metrics.mean_width, lambda own: np.mean(own.upper - own.lower)),
    (metrics.median_width, lambda own: np.median(own.upper - own.lower)),
    (metrics.winkler, lambda own: numpy_winkler(own, 0.9)),
    (lambda p, y: metrics.winkler(p, y, coverage=0.5), lambda own: numpy_winkler(own, 0.5)),
    (metrics.pinball, lambda own: numpy_pinball(own, 0.9)),
    (lambda p, y: metrics.pinball(p, y, coverage=0.6), lambda own: numpy_pinball(own, 0.6)),
    (metrics.paper_coverage, lambda own: np.mean(own.target <= own.upper)),
    (
        metrics.paper_pwcc,
        lambda own: (
            own.error @ own.score / np.linalg.norm(own.error) / np.linalg.norm(own.score) / np.mean(own.error**2)
        ),
    ),
    (metrics.direction_accuracy, lambda own: numpy_direction(own, 1.0)),
    (lambda p, y: metrics.direction_accuracy(p, y, strength=2.0), lambda own: numpy_direction(own, 2.0)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("metric", "reference"), REFERENCES)
def test_each_sample_gets_what_plain_numpy_gives(
    metric: Metric, reference: Callable[[Sample], float], shape: tuple[int, ...]
) -> None:
    prediction, target = drawn(shape)

    found = metric(prediction, target)

    wanted = [reference(own) for own in samples(prediction, target)]
    assert found.dtype == torch.float64 and found.shape == (len(target),)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-11)


@pytest.mark.parametrize(("metric", "reference"), REFERENCES[:9] + REFERENCES[11:])
def test_ties_are_no_trouble(metric: Metric, reference: Callable[[Sample], float]) -> None:
    prediction, target = tied()

    found = metric(prediction, target)

    np.testing.assert_allclose(found.numpy(), [reference(own) for own in samples(prediction, target)], rtol=1e-11)


# --- errors ---


def test_psnr_is_that_of_torchmetrics() -> None:
    prediction, target = drawn((4, 1, 8, 8))

    given, own = metrics.psnr(prediction, target, data_range=3.0), metrics.psnr(prediction, target)

    for i in range(4):
        parts = prediction.point[i], target[i]
        assert float(given[i]) == pytest.approx(
            float(published.peak_signal_noise_ratio(*parts, data_range=3.0)), rel=1e-6
        )
        span = float(target[i].max() - target[i].min())
        assert float(own[i]) == pytest.approx(
            float(published.peak_signal_noise_ratio(*parts, data_range=span)), rel=1e-6
        )


def test_psnr_of_a_perfect_image_is_infinite_and_without_a_range_undefined() -> None:
    zero, one = torch.zeros(1, 4), torch.ones(1, 4)

    assert metrics.psnr(Prediction(one, zero, zero, zero), one, data_range=1.0).tolist() == [math.inf]
    assert metrics.psnr(Prediction(zero, zero, zero, zero), one).isnan().all()


@pytest.mark.parametrize("height", [6, 12, 63, 64, 65, 70, 130])
def test_ssim_is_that_of_torchmetrics_image_by_image(height: int) -> None:
    prediction, target = drawn((3, 2, height, 17))
    target[1] *= 100  # an image of another range must not change what the others get

    given, own = metrics.ssim(prediction, target, data_range=3.0), metrics.ssim(prediction, target)

    for i in range(3):
        parts, span = (prediction.point[i : i + 1], target[i : i + 1]), float(target[i].max() - target[i].min())
        for found, data_range in ((given, 3.0), (own, span)):
            wanted = published.structural_similarity_index_measure(*parts, data_range=data_range)
            assert float(found[i]) == pytest.approx(float(wanted), abs=1e-6)


def test_ssim_of_images_far_from_zero_keeps_its_digits() -> None:
    prediction, target = drawn((2, 1, 70, 20))
    far = Prediction(*(prediction[name] + 1e5 for name in ("point", "below", "above", "score")))

    found = metrics.ssim(far, target + 1e5, data_range=1.0)

    wanted = published.structural_similarity_index_measure(far.point, target + 1e5, data_range=1.0, reduction="none")
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)  # in float32 this is not even below 1
    assert (found < 1).all()


@pytest.mark.parametrize("shape", [(3, 32), (3, 1, 32), (2, 16, 16), (2, 1, 5, 32), (1, 1, 8, 8, 8)], ids=str)
def test_ssim_of_what_is_no_image_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"ssim needs images \(batch, channels, height, width\)"):
        metrics.ssim(*drawn(shape))


# --- intervals ---


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_coverage_counts_by_gaps_where_rounded_ends_would_miss(dtype: torch.dtype) -> None:
    point, gap = torch.full((1, 4), 100.0, dtype=dtype), torch.full((1, 4), 1e-3, dtype=dtype)
    point += torch.arange(4).to(dtype)

    assert metrics.coverage(Prediction(point, gap, gap, gap), point).tolist() == [1.0]
    assert metrics.mean_width(Prediction(point, gap, gap, gap), point).item() == 2 * gap[0, 0].double().item()


def test_targets_on_the_ends_are_covered() -> None:
    zero, one = torch.zeros(1, 3), torch.ones(1, 3)

    found = metrics.coverage(Prediction(zero, one, 2 * one, one), torch.tensor([[-1.0, 2.0, 2.000001]]))

    assert found.item() == pytest.approx(2 / 3)


def test_bounds_without_width_cover_what_is_exact() -> None:
    _, target = drawn()
    zero = torch.zeros_like(target)

    exact = Prediction(target, zero, zero, zero)

    assert metrics.coverage(exact, target).tolist() == [1.0] * 3
    assert metrics.coverage(exact, target + 1e-12).tolist() == [0.0] * 3
    assert metrics.winkler(exact, target).tolist() == [0.0] * 3


def test_pinball_is_the_loss_of_that_name_and_a_share_of_the_interval_score() -> None:
    prediction, target = drawn()
    bounds = Interval(prediction.point, prediction.below, prediction.above)

    found = metrics.pinball(prediction, target, coverage=0.8)

    assert found.mean().item() == pytest.approx(losses.pinball(coverage=0.8)(bounds, target).item())
    assert torch.allclose(found, 0.1 * metrics.winkler(prediction, target, coverage=0.8))


def test_the_interval_score_is_least_for_the_true_quantiles() -> None:
    noise = torch.Generator().manual_seed(0)
    target = torch.randn(1, 100_000, generator=noise)
    zero, one = torch.zeros_like(target), torch.ones_like(target)

    score = {
        gap: metrics.winkler(Prediction(zero, gap * one, gap * one, one), target).item() for gap in (1.2, 1.645, 2)
    }

    assert min(score, key=lambda gap: score[gap]) == 1.645


def test_only_misses_above_count_for_the_paper() -> None:
    prediction, target = drawn()

    far_below, far_above = target - 100, target + 100

    assert metrics.paper_coverage(prediction, far_below).tolist() == [1.0] * 3
    assert metrics.paper_coverage(prediction, far_above).tolist() == [0.0] * 3


# --- density ---


@settings(max_examples=30, deadline=None)
@given(distance=st.floats(-8, 8), deviation=st.floats(0.05, 5))
def test_crps_is_the_integral_that_defines_it(distance: float, deviation: float) -> None:
    zero = torch.zeros(1, 1, dtype=torch.float64)

    found = metrics.crps(Prediction.symmetric(zero, zero + deviation, coverage=0.9), zero + distance).item()

    def integral(step: float, start: float, end: float) -> float:
        knots = [x for x in (-8 * deviation, 0.0, 8 * deviation) if start < x < end]  # where the density lies
        pieces = pairwise([start, *knots, end])
        return sum(
            integrate.quad(lambda x: (stats.norm.cdf(x, scale=deviation) - step) ** 2, *ends)[0] for ends in pieces
        )

    far = 40 * deviation
    below = integral(0.0, min(distance, 0.0) - far, distance)
    above = integral(1.0, distance, max(distance, 0.0) + far)
    assert found == pytest.approx(below + above, rel=1e-6, abs=1e-8)


def test_nll_is_that_of_the_normal_density() -> None:
    prediction, target = drawn()

    found = metrics.nll(prediction, target)

    wanted = [-stats.norm.logpdf(own.target, own.point, own.deviation).mean() for own in samples(prediction, target)]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


def test_without_deviation_crps_is_the_error_and_nll_infinite_unless_raised() -> None:
    zero = torch.zeros(3, 2)
    sure = Prediction.symmetric(zero, zero, coverage=0.9)
    target = torch.tensor([[1.0, 2.0], [0.0, 0.0], [0.0, 1.0]])

    assert metrics.crps(sure, target).tolist() == [1.5, 0.0, 0.5]
    assert str(metrics.nll(sure, target).tolist()) == str([math.inf, -math.inf, math.nan])
    floored = metrics.nll(sure, target, floor=0.5)
    np.testing.assert_allclose(floored, -stats.norm.logpdf(target.numpy(), scale=0.5).mean(1), rtol=1e-12)


@pytest.mark.parametrize("metric", [metrics.crps, metrics.nll])
def test_bounds_alone_have_no_density(metric: Metric) -> None:
    prediction, target = drawn()

    with pytest.raises(ValueError, match="needs a density, and this prediction has bounds only; take winkler"):
        metric(bounds_only(prediction), target)
