"""Calibration: what it promises holds, in simulation and against plain NumPy references."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.calibration.calibration import Calibration, calibrate
from intervalnn.calibration.misses import needed
from intervalnn.calibration.risk import allowed_share, hoeffding_bentkus, images_needed
from intervalnn.prediction import Prediction


class Known(nn.Module):
    """A method whose measurements are its predictions: point, below and above, side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.calibration: Calibration | None = None

    def predict(self, x: Tensor) -> Prediction:
        point, below, above = x.unbind(1)
        prediction = Prediction(point, below, above, below + above)
        return self.calibration(prediction) if self.calibration else prediction


def known(n: int, size: int, seed: int = 0, *, scale: float = 0.5) -> tuple[Tensor, Tensor]:
    """Return predictions and targets of images whose components share a scale, so that they depend on each other."""
    noise = torch.Generator().manual_seed(seed)
    point, below, above, error = torch.randn(4, n, size, generator=noise, dtype=torch.float64)
    own = torch.exp(scale * torch.randn(n, 1, generator=noise, dtype=torch.float64))
    return torch.stack((point, below.abs() + 0.1, above.abs() + 0.1), 1), point + own * error


def numpy_needed(x: Tensor, y: Tensor) -> NDArray[np.float64]:
    point, below, above = x.numpy().swapaxes(0, 1)
    return np.maximum((y.numpy() - point) / above, (point - y.numpy()) / below)


def numpy_factor(scores: list[NDArray[np.float64]], allowed: float) -> float:
    """Return the smallest factor, among all that matter, at which the mean share missed is as allowed."""
    for factor in np.sort(np.concatenate(scores)):
        if np.mean([np.mean(own > factor) for own in scores]) <= allowed + 1e-12:
            return float(factor)
    raise AssertionError


def is_rounded_up(factor: Tensor | float, exact: float) -> bool:
    return exact <= float(factor) * (1 + 1e-12) and float(factor) <= exact * 2 ** (1 / 1024) * (1 + 1e-6)


# --- which factor ---


@pytest.mark.parametrize(("n", "coverage"), [(9, 0.9), (10, 0.9), (99, 0.9), (200, 0.95), (37, 0.5)])
def test_one_component_per_image_gives_the_split_conformal_quantile(n: int, coverage: float) -> None:
    x, y = known(n, 1)

    factor = calibrate(Known(), [(x, y)], coverage=coverage).factors

    rank = math.ceil(round((n + 1) * coverage, 9))
    assert is_rounded_up(factor, np.sort(numpy_needed(x, y).ravel())[rank - 1])


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_the_factor_is_the_smallest_that_controls_the_risk(alpha: float) -> None:
    x, y = known(60, 12)

    factor = calibrate(Known(), [(x, y)], alpha=alpha).factors

    assert is_rounded_up(factor, numpy_factor(list(numpy_needed(x, y)), (61 * alpha - 1) / 60))


@pytest.mark.parametrize("alpha", [0.1, 0.3])
def test_the_factor_with_confidence_is_the_smallest_under_the_bound(alpha: float) -> None:
    x, y = known(60, 12)

    factor = float(calibrate(Known(), [(x, y)], alpha=alpha, level="image", delta=0.2).factors)

    shares = np.sort(numpy_needed(x, y).ravel())
    kept = [s for s in shares if hoeffding_bentkus(float(np.mean(shares > s)), 60, alpha) <= 0.2]
    assert is_rounded_up(factor, min(kept))


def test_the_factor_for_a_single_image_is_a_quantile_of_what_images_need() -> None:
    x, y = known(60, 20)

    factor = calibrate(Known(), [(x, y)], coverage=0.8, level="single image", delta=0.1).factors

    each = np.sort(numpy_needed(x, y), axis=1)[:, 15]  # covers 16 of 20
    assert is_rounded_up(factor, np.sort(each)[math.ceil(61 * 0.9) - 1])


@pytest.mark.parametrize("size", [1, 10, 20, 130, 7000, 300_000])
def test_a_single_image_is_covered_to_the_component(size: int) -> None:
    x, y = known(1, size)
    nine = (x.expand(9, -1, -1), y.expand(9, -1))

    factor = calibrate(Known(), [nine], coverage=0.9, level="single image", delta=0.1).factors

    assert is_rounded_up(factor, np.sort(numpy_needed(x, y)[0])[-(-9 * size // 10) - 1])


def test_images_count_the_same_whatever_their_size() -> None:
    small, large = known(20, 3, seed=1), known(20, 300, seed=2, scale=2.0)

    factor = calibrate(Known(), [small, large], coverage=0.8).factors

    scores = [*numpy_needed(*small), *numpy_needed(*large)]
    assert is_rounded_up(factor, numpy_factor(scores, (41 * 0.2 - 1) / 40))


def test_batches_and_kinds_of_batches_make_no_difference() -> None:
    x, y = known(50, 4)
    in_parts = [{"input": x[:7], "target": y[:7]}, [x[7:40], y[7:40]], (x[40:], y[40:])]

    whole, parts = calibrate(Known(), [(x, y)]), calibrate(Known(), in_parts)

    assert torch.equal(whole.factors, parts.factors)


def test_what_a_component_needs_is_zero_at_the_point_and_infinite_without_a_gap() -> None:
    point, gap = torch.zeros(4), torch.tensor([0.0, 0.0, 2.0, 2.0])
    prediction = Prediction(point, below=gap, above=2 * gap, score=gap)

    found = needed(prediction, torch.tensor([0.0, 1e-30, 1.0, -1.0]))

    assert found.tolist() == [0.0, math.inf, 0.25, 0.5]


def test_perfect_predictions_need_no_gaps() -> None:
    x, _ = known(30, 4)

    for level in ("component", "image", "single image"):
        assert calibrate(Known(), [(x, x[:, 0])], level=level).factors.tolist() == [0.0]


def test_what_no_factor_can_cover_is_answered_with_what_the_method_has() -> None:
    class Flat:
        def predict(self, x: Tensor) -> Prediction:
            return Prediction(x, torch.zeros_like(x), torch.ones_like(x), torch.ones_like(x))

    net = inn.IntervalNetwork(nn.Linear(1, 1, bias=True).eval(), layers="all")
    net.set_gaps("bias", below=0.0, above=1.0)
    x = torch.randn(40, 1, generator=torch.Generator().manual_seed(0))

    with pytest.raises(ValueError, match=r"no factor keeps this promise: .* fit the method longer") as flat:
        calibrate(Flat(), [(x, x - 1)])
    with pytest.raises(ValueError, match=r"no factor keeps this promise: .* give gaps to more layers .*solve_offsets"):
        calibrate(net, [(x, net.model(x).detach() - 1)])

    assert "layers" not in str(flat.value)


# --- the bounds on risk ---


@pytest.mark.parametrize(("loss", "n", "alpha"), [(0.0, 22, 0.1), (0.031, 100, 0.1), (0.09, 1000, 0.1), (0.2, 50, 0.3)])
def test_hoeffding_bentkus_agrees_with_exact_arithmetic(loss: float, n: int, alpha: float) -> None:
    a, b = mpmath.mpf(loss), mpmath.mpf(alpha)
    divergence = (a * mpmath.log(a / b) if loss else 0) + (1 - a) * mpmath.log((1 - a) / (1 - b))
    heads = math.ceil(n * loss)
    cdf = mpmath.fsum(mpmath.binomial(n, k) * b**k * (1 - b) ** (n - k) for k in range(heads + 1))

    bound = hoeffding_bentkus(loss, n, alpha)

    assert bound == pytest.approx(float(min(mpmath.exp(-n * divergence), mpmath.e * cdf)), rel=1e-9)


def test_as_much_is_allowed_as_the_bound_allows() -> None:
    for n in (22, 100, 5000):
        share = allowed_share(n, alpha=0.1, delta=0.1)

        assert hoeffding_bentkus(share, n, 0.1) <= 0.1 < hoeffding_bentkus(share + 1e-9, n, 0.1)


def test_a_million_images_are_no_trouble() -> None:
    assert 0.099 < allowed_share(10**6, alpha=0.1, delta=0.1) < 0.1


@pytest.mark.parametrize(("level", "wanted"), [("component", 9), ("image", 22), ("single image", 19)])
def test_too_few_images_are_refused_with_the_number_it_takes(level: Any, wanted: int) -> None:
    delta = 0.05 if level == "single image" else 0.1
    x, y = known(wanted, 4)

    with pytest.raises(ValueError, match=f"at least {wanted} images, got {wanted - 1}"):
        calibrate(Known(), [(x[1:], y[1:])], coverage=0.9, level=level, delta=delta)

    assert calibrate(Known(), [(x, y)], coverage=0.9, level=level, delta=delta).factors.isfinite().all()
    assert images_needed(0.1) == 9


@pytest.mark.parametrize("level", ["component", "image", "single image"])
def test_what_scaling_cannot_cover_is_an_error_and_never_the_end_of_the_grid(level: Any) -> None:
    x, y = known(50, 10)
    x[:, 1:, :2] = 0.0  # 2 of 10 components have no gaps

    with pytest.raises(ValueError, match=r"leaves a share of (0\.2|1) uncovered"):
        calibrate(Known(), [(x, y)], coverage=0.9, level=level)

    y[:, :2] = x[:, 0, :2]  # where the target is the point, no gap is needed
    assert calibrate(Known(), [(x, y)], coverage=0.9, level=level).factors.isfinite().all()


# --- the promises, in simulation ---

SCALE, SIZE = 1.5, 20
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)


def constant(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return images with gaps of one around zero, and targets whose scale is the image's own."""
    _, y = known(n, SIZE, seed, scale=SCALE)
    noise = torch.Generator().manual_seed(seed)
    y = y - torch.randn(4, n, SIZE, generator=noise, dtype=torch.float64)[0]
    return torch.stack((torch.zeros_like(y), torch.ones_like(y), torch.ones_like(y)), 1), y


def true_coverage(factor: float) -> float:
    """Return the share of new components within the factor: a Gaussian one, averaged over the scales."""
    inside = torch.erf(torch.tensor(factor / math.sqrt(2) / np.exp(SCALE * NODES))).numpy()
    return float((inside * WEIGHTS).sum() / WEIGHTS.sum())


def simulated(draws: int, n: int, **promise: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the factor of many draws, and that of the quantile over all components, as if they were independent."""
    ours, pooled = [], []
    for seed in range(draws):
        x, y = constant(n, seed)
        ours.append(float(calibrate(Known(), [(x, y)], coverage=0.8, **promise).factors))
        pooled.append(np.sort(np.abs(y.numpy()).ravel())[math.ceil((y.numel() + 1) * 0.8) - 1])
    return np.array(ours), np.array(pooled)


def test_coverage_is_kept_on_average_where_counting_components_breaks_it() -> None:
    ours, pooled = simulated(1000, n=8)

    coverage, naive = (np.array([true_coverage(f) for f in factors]) for factors in (ours, pooled))
    error, naive_error = (each.std() / math.sqrt(len(each)) for each in (coverage, naive))
    assert coverage.mean() > 0.8 - 2 * error
    assert naive.mean() + 3 * naive_error < 0.8


def test_coverage_is_not_much_more_than_promised() -> None:
    ours, _ = simulated(200, n=50)

    coverage = np.mean([true_coverage(factor) for factor in ours])

    assert 0.8 <= coverage < 0.8 + 2 / 51  # the excess that theory allows


def test_coverage_is_kept_with_confidence_where_counting_components_breaks_it() -> None:
    ours, pooled = simulated(200, n=40, level="image", delta=0.2)

    broken, naive = (np.mean([true_coverage(f) < 0.8 for f in factors]) for factors in (ours, pooled))
    assert broken <= 0.2
    assert naive > 0.4


def test_single_images_are_covered_as_often_as_promised() -> None:
    ours, _ = simulated(300, n=15, level="single image", delta=0.2)
    _, new = constant(2000, seed=10**6)

    missed = np.sort(np.abs(new.numpy()), axis=1)[:, 15]  # the factor that covers 16 of 20
    kept = np.array([np.mean(missed <= factor) for factor in ours])
    assert 0.8 - 2 * kept.std() / math.sqrt(300) < kept.mean() < 0.8 + 2 / 16


def test_the_promise_says_on_what_it_depends() -> None:
    x, y = known(50, 4)

    on_average, sure, single = (
        calibrate(Known(), [(x, y)], coverage=0.9, level=level, delta=0.2).promise
        for level in ("component", "image", "single image")
    )

    assert "at most 0.1" in on_average and "50" in on_average and "on average over new images and" in on_average
    assert "with probability at least 0.8 over the draw of the images for calibration" in sure
    assert "with probability at least 0.8 over the draw of this image" in single


# --- what a calibration does ---


def test_gaps_and_score_are_scaled_and_point_and_direction_stay() -> None:
    method, (x, y) = Known(), known(50, 4)
    raw = method.predict(x)

    calibration = calibrate(method, [(x, y)])

    scaled, factor = method.predict(x), float(calibration.factors)
    assert torch.equal(scaled.point, raw.point) and torch.equal(scaled.direction, raw.direction)
    assert torch.equal(scaled.below, raw.below * factor) and torch.equal(scaled.above, raw.above * factor)
    assert torch.equal(scaled.score, raw.score * factor)


def test_a_previous_calibration_is_left_aside_and_survives_an_error() -> None:
    method, (x, y) = Known(), known(50, 4)
    first = calibrate(method, [(x, y)])

    with pytest.raises(ValueError, match="at least 9 images"):
        calibrate(method, [(x[:3], y[:3])])
    assert method.calibration is first

    assert torch.equal(calibrate(method, [(x, y)]).factors, first.factors)


def test_coarse_gaps_are_scaled_in_single_precision() -> None:
    x, y = known(50, 4)
    point, gap = x[:, 0].float(), x[:, 1].bfloat16()
    calibration = calibrate(Known(), [(x, y)])

    scaled = calibration(Prediction(point, gap, gap, gap))

    assert scaled.above.dtype == torch.float32
    assert torch.equal(scaled.above, gap.float() * calibration.factors)


def regions(prediction: Prediction) -> Tensor:
    return (prediction.point > 0).long()


@pytest.mark.parametrize(
    "groups", [None, "width", torch.tensor([0, 1, 1, 3]), regions], ids=["none", "width", "regions", "function"]
)
def test_it_is_saved_with_the_method_and_comes_back(groups: Any) -> None:
    method, (x, y) = Known(), known(100, 4)
    calibrate(method, [(x[:50], y[:50]), (x[50:], y[50:])], groups=groups)
    assert method.calibration is not None
    settings = json.loads(json.dumps(method.calibration.settings()))

    other = Known()
    other.calibration = Calibration.from_settings(settings, groups=regions if callable(groups) else None)
    other.load_state_dict(method.state_dict())

    assert torch.equal(other.predict(x).above, method.predict(x).above)
    assert other.calibration.promise == method.calibration.promise
    assert other.calibration.settings() == method.calibration.settings()


def test_an_interval_network_is_a_method_and_saves_its_calibration() -> None:
    model = nn.Sequential(nn.Conv1d(1, 3, 3, padding=1), nn.ReLU(), nn.Conv1d(3, 1, 1)).eval()
    net = inn.IntervalNetwork(model, layers="all")
    for name in net.names:
        net.set_gaps(name, below=0.01, above=0.02)
    x, y = torch.randn(2, 40, 1, 8, generator=torch.Generator().manual_seed(0))
    raw = net.predict(x)

    calibration = calibrate(net, [(x, y)], coverage=0.9)

    assert torch.equal(net.state_dict()["calibration.factors"], calibration.factors)
    assert calibration(raw).bounds.contains(y).double().mean() >= 0.9
    net.apply(lambda module: None)  # torch's own walk over the modules still works


PROCESS = """
import sys, torch, torch.distributed as dist
sys.path.insert(0, {folder!r})
from calibration.test_calibration import Known, calibrate, known, regions
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
x, y = known(60, 4)
calibration = calibrate(Known(), [(x[rank::2], y[rank::2])], groups=regions)
print(calibration.factors.tolist(), calibration.images)
"""


@pytest.mark.slow
def test_two_processes_find_together_what_one_finds(tmp_path: Path) -> None:
    x, y = known(60, 4)
    code = PROCESS.format(folder=str(Path(__file__).parents[1]))

    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE)
        for rank in range(2)
    ]
    found = [process.communicate(timeout=120)[0].decode().strip() for process in processes]

    alone = calibrate(Known(), [(x, y)], groups=regions)
    assert found == [f"{alone.factors.tolist()} {alone.images}"] * 2


# --- groups ---


def test_each_region_has_its_own_factor() -> None:
    x, y = known(50, 6)
    y[:, 3:] = x[:, 0, 3:] + 10 * (y[:, 3:] - x[:, 0, 3:])

    left, none, right = calibrate(Known(), [(x, y)], groups=torch.tensor([0, 0, 0, 2, 2, 2])).factors.tolist()

    assert left == float(calibrate(Known(), [(x[..., :3], y[:, :3])]).factors)
    assert right == float(calibrate(Known(), [(x[..., 3:], y[:, 3:])]).factors) > 5 * left
    assert math.isnan(none)


def test_images_without_a_region_do_not_count_for_it() -> None:
    x, y = known(50, 4)
    x[:20, 0] = -x[:20, 0].abs()  # the first 20 have no component above zero

    found = calibrate(Known(), [(x, y)], groups=regions)

    some = [own[above] for own, above in zip(numpy_needed(x, y), x[:, 0].numpy() > 0, strict=True) if above.any()]
    assert found.images[1] == len(some) <= 30
    assert is_rounded_up(found.factors[1], numpy_factor(some, ((len(some) + 1) * 0.1 - 1) / len(some)))


def test_groups_by_width_cover_narrow_and_wide_alike() -> None:
    noise = torch.Generator().manual_seed(0)
    width = torch.rand(2000, 8, generator=noise) + 0.01
    y = width.sqrt() * torch.randn(2000, 8, generator=noise)  # narrow bounds are far too narrow
    x = torch.stack((torch.zeros_like(y), width / 2, width / 2), 1)
    plain, grouped = Known(), Known()

    calibrate(plain, [(x[:500], y[:500]), (x[500:1000], y[500:1000])])
    calibrate(grouped, [(x[:500], y[:500]), (x[500:1000], y[500:1000])], groups="width")

    new, target, narrow = x[1000:], y[1000:], width[1000:] < 0.25
    assert grouped.calibration is not None and len(grouped.calibration.factors) == 4
    assert plain.predict(new).bounds.contains(target)[narrow].double().mean() < 0.85
    assert abs(grouped.predict(new).bounds.contains(target)[narrow].double().mean() - 0.9) < 0.03


def test_a_group_that_is_too_small_is_named() -> None:
    x, y = known(50, 4)
    x[4:, 0] = -x[4:, 0].abs()

    with pytest.raises(ValueError, match=r"at least 9 images in group 1, got \d"):
        calibrate(Known(), [(x, y)], groups=regions)


def test_a_width_that_the_first_batch_does_not_show_is_named() -> None:
    x, y = known(50, 4)
    x[:, 1:] = 1.0

    with pytest.raises(ValueError, match=r"group 1 \(widths from 2 to inf\), got 0"):
        calibrate(Known(), [(x[:10], y[:10]), (x[10:], y[10:])], groups="width")


def test_a_group_that_was_never_met_is_refused() -> None:
    method, (x, y) = Known(), known(50, 4)
    calibrate(method, [(x, y)], groups=lambda prediction: (prediction.point > 5).long())

    with pytest.raises(ValueError, match="group 1 was not met"):
        method.predict(x + 10)


# --- what is refused ---


def with_nan(y: Tensor) -> Tensor:
    return torch.where(torch.arange(y.numel()).view(y.shape) == 3, math.nan, y)


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (lambda x, y: [], "loader is empty"),
        (lambda x, y: [(x, y[:, :1])], r"target must have shape \(50, 4\), like the prediction, got \(50, 1\)"),
        (lambda x, y: [(x, with_nan(y))], "target must be finite"),
        (lambda x, y: [(x / 0, y)], "point must be finite"),
    ],
)
def test_bad_data_are_refused(batches: Callable[[Tensor, Tensor], list[Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        calibrate(Known(), batches(*known(50, 4)))


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (torch.zeros(2), "a batch must be a pair .* got a Tensor"),
        ((torch.zeros(2),), "a batch must be a pair .* got a tuple of 1"),
        ([torch.zeros(2)] * 3, "a batch must be a pair .* got a list of 3"),
        ({"x": 1}, r"a batch must be a pair .* got a mapping with \['x'\]"),
        ((torch.zeros(2), 1.0), "the target of a batch must be a tensor"),
    ],
)
def test_batches_that_are_no_pairs_are_refused(batch: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        calibrate(Known(), [batch])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 1.0}, "coverage must lie between 0 and 1, got 1.0"),
        ({"alpha": 0.0}, "alpha must lie between 0 and 1, got 0.0"),
        ({"coverage": 0.9, "alpha": 0.1}, "not both"),
        ({"level": "pixel"}, "level must be one of 'component', 'image', 'single image', got 'pixel'"),
        ({"delta": 1.5}, "delta"),
        ({"groups": "height"}, "groups must be None, 'width'"),
        ({"groups": "width"}, "there is no second one"),
        ({"groups": torch.rand(4)}, "must be integers from 0"),
        ({"groups": torch.tensor([0, 1])}, r"shape \(2,\), which does not fit predictions of shape \(50, 4\)"),
        ({"groups": lambda prediction: torch.zeros(3, dtype=torch.long)}, r"must have shape \(50, 4\)"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        calibrate(Known(), [known(50, 4)], **options)


def test_a_calibration_tells_what_was_kept_before_it() -> None:
    x, y = known(200, 30)
    inside = (numpy_needed(x, y) <= 1).mean(1)

    calibration = calibrate(Known(), [(x, y)], coverage=0.9)
    single = calibrate(Known(), [(x, y)], coverage=0.9, level="single image")
    restored = Calibration.from_settings(calibration.settings())
    older = {name: value for name, value in calibration.settings().items() if name != "before"}

    assert calibration.before == pytest.approx([inside.mean()])
    assert single.before == pytest.approx([(inside >= 0.9 - 1e-12).mean()])
    assert restored.before == pytest.approx(calibration.before, abs=1e-6)
    assert np.isnan(Calibration.from_settings(older).before).all()
