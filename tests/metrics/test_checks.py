"""What every metric takes and refuses."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from intervalnn import metrics
from intervalnn.prediction import Prediction
from metrics.draws import drawn

IMAGES = (2, 1, 8, 8)
NAMES = ("point", "below", "above", "score", "deviation")
PER_SAMPLE = [
    metrics.mse,
    metrics.mae,
    metrics.psnr,
    metrics.ssim,
    metrics.coverage,
    metrics.mean_width,
    metrics.median_width,
    metrics.winkler,
    metrics.pinball,
    metrics.crps,
    metrics.nll,
    metrics.pearson,
    metrics.spearman,
    metrics.pwcc,
    metrics.ause,
    metrics.direction_accuracy,
    metrics.paper_coverage,
    metrics.paper_pwcc,
]
POOLED = [
    metrics.sparsification_curve,
    metrics.direction_curve,
    metrics.calibration_curve,
    metrics.size_stratified_coverage,
    metrics.miscoverage_map,
    metrics.WidthQuantile().count,
    metrics.RankCorrelation().count,
    metrics.Sparsification().count,
    metrics.MarkovBound(beta=0.1).count,
]
every_metric = pytest.mark.parametrize("metric", PER_SAMPLE + POOLED)
each_per_sample = pytest.mark.parametrize("metric", PER_SAMPLE)


def changed(prediction: Prediction, change: Callable[[Tensor], Tensor]) -> Prediction:
    return Prediction(*(change(prediction[name]) for name in NAMES))


# --- what is taken ---


@each_per_sample
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_coarse_numbers_are_judged_in_double_precision(metric: Any, dtype: torch.dtype) -> None:
    prediction, target = drawn(IMAGES, dtype=dtype)

    found = metric(prediction, target)

    assert found.dtype == torch.float64
    torch.testing.assert_close(found, metric(prediction.to(torch.float64), target.double()), rtol=0, atol=0)


@each_per_sample
def test_a_sample_gets_the_same_whatever_its_batch(metric: Any) -> None:
    prediction, target = drawn((5, 1, 8, 8))

    alone = torch.cat([metric(prediction[i : i + 1], target[i : i + 1]) for i in range(5)])

    torch.testing.assert_close(alone, metric(prediction, target), rtol=1e-12, atol=1e-12)


@each_per_sample
def test_strides_make_no_difference(metric: Any) -> None:
    prediction, target = drawn((2, 1, 8, 9))

    turned = metric(changed(prediction, lambda part: part.mT), target.mT)

    plain = metric(changed(prediction, lambda part: part.mT.contiguous()), target.mT.contiguous())
    torch.testing.assert_close(turned, plain, rtol=1e-12, atol=1e-12)


@each_per_sample
def test_whole_numbers_will_do_as_targets(metric: Any) -> None:
    prediction, target = drawn(IMAGES)
    whole = (3 * target).round().long()

    assert torch.equal(metric(prediction, whole), metric(prediction, whole.double()))


@each_per_sample
def test_nothing_is_differentiated(metric: Any) -> None:
    prediction, target = drawn(IMAGES)

    found = metric(changed(prediction, lambda part: part.clone().requires_grad_()), target.requires_grad_())

    assert not found.requires_grad


# --- what is refused ---


def with_nan(part: Tensor) -> Tensor:
    part = part.clone()
    part.view(-1)[3] = math.nan
    return part


@every_metric
def test_bad_data_are_refused_by_every_metric(metric: Any) -> None:
    prediction, target = drawn(IMAGES)
    wrong = [
        (TypeError, "needs a Prediction, got a Tensor", lambda: metric(prediction.point, target)),
        (TypeError, "target must be a tensor, got a list", lambda: metric(prediction, target.tolist())),
        (TypeError, "complex", lambda: metric(prediction, target.to(torch.complex64))),
        (ValueError, r"target must have shape \(2, 1, 8, 8\)", lambda: metric(prediction, target[:, :, :4])),
        (ValueError, "target must be finite", lambda: metric(prediction, with_nan(target))),
        (ValueError, "at least one sample", lambda: metric(prediction[:0], target[:0])),
        (ValueError, "at least one sample and one component", lambda: metric(prediction[..., :0], target[..., :0])),
        (
            ValueError,
            "first dimension must be that of the samples",
            lambda: metric(prediction[0, 0, 0, 0], target[0, 0, 0, 0]),
        ),
    ]

    for kind, message, call in wrong:
        with pytest.raises(kind, match=message):
            call()


@pytest.mark.parametrize("name", NAMES)
def test_bad_parts_of_a_prediction_are_named(name: str) -> None:
    prediction, target = drawn()
    parts = {own: prediction[own] for own in NAMES}
    said = {"below": "gap below", "above": "gap above"}.get(name, name)

    with pytest.raises(ValueError, match=f"the {said} must be finite"):
        metrics.mse(Prediction(**parts | {name: with_nan(parts[name])}), target)
    if name != "point":
        with pytest.raises(ValueError, match=f"the {said} of a prediction must be >= 0, got -"):
            metrics.mse(Prediction(**parts | {name: -parts[name]}), target)


@pytest.mark.parametrize(
    "metric",
    [
        partial(metrics.winkler, coverage=1.0),
        partial(metrics.pinball, coverage=0.0),
        partial(metrics.psnr, data_range=0.0),
        partial(metrics.ssim, data_range=-1.0),
        partial(metrics.nll, floor=-1.0),
        partial(metrics.direction_accuracy, strength=0.5),
        partial(metrics.direction_curve, confidence=1.0),
        partial(metrics.size_stratified_coverage, bins=0),
    ],
)
def test_options_out_of_range_are_refused(metric: Any) -> None:
    with pytest.raises(ValueError, match=r"must (be|lie)"):
        metric(*drawn(IMAGES))


# --- what is imported ---


def test_only_the_classes_and_ssim_need_torchmetrics(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = drawn(IMAGES)
    for absent in ("torchmetrics", "torchmetrics.functional.image"):
        monkeypatch.setitem(sys.modules, absent, None)
    monkeypatch.delitem(sys.modules, "intervalnn.metrics.classes", raising=False)
    monkeypatch.delattr(metrics, "classes", raising=False)

    with pytest.raises(ImportError, match=r"streaming metrics need torchmetrics: pip install intervalnn\[metrics\]"):
        _ = metrics.Pooled
    with pytest.raises(ImportError, match=r"ssim needs torchmetrics: pip install intervalnn\[metrics\]"):
        metrics.ssim(*pair)

    assert metrics.mse(*pair).isfinite().all()
    assert "Pooled" in dir(metrics) and not hasattr(metrics, "ABC")


@pytest.mark.slow
def test_importing_the_metrics_imports_no_torchmetrics() -> None:
    code = "import sys, intervalnn.metrics; sys.exit('torchmetrics' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
