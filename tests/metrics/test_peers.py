"""The same numbers as TorchUncertainty, where it is installed.

It needs torchvision, so keep it in an environment of its own, with the versions of this one:

    pip install --no-deps torch-uncertainty==0.13.0 lightning==2.6.1 pytorch-lightning timm seaborn \\
        jsonargparse docstring-parser typeshed-client torchvision tensorboard
"""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Any

import pytest
import torch

from intervalnn import metrics
from metrics.draws import drawn


@pytest.fixture(scope="module")
def peer() -> Any:
    if importlib.util.find_spec("torch_uncertainty") is None:
        pytest.skip("torch-uncertainty is not installed: it needs torchvision, so compare in an environment of its own")
    operators = torch.library.Library("torchvision", "FRAGMENT")  # a torchvision built for CUDA has none on the CPU
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torch_uncertainty.metrics

    return torch_uncertainty.metrics


@pytest.mark.parametrize("shape", [(3, 40), (2, 1, 9, 8)], ids=str)
def test_interval_metrics_agree_with_torch_uncertainty(peer: Any, shape: tuple[int, ...]) -> None:
    ours = [*map(metrics.SampleMean, (metrics.coverage, metrics.mean_width, partial(metrics.winkler, coverage=0.8)))]
    theirs = peer.IntervalCoverage(), peer.MeanIntervalWidth(), peer.IntervalScore(coverage=0.8)

    for seed in range(3):
        prediction, target = drawn(shape, seed)
        for metric in ours:
            metric.update(prediction, target)
        for metric in (theirs[0], theirs[2]):
            metric.update(prediction.lower, prediction.upper, target)
        theirs[1].update(prediction.lower, prediction.upper)

    for own, other in zip(ours, theirs, strict=True):
        assert float(own.compute()) == pytest.approx(float(other.compute()), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_ause_agrees_with_torch_uncertainty(peer: Any, seed: int) -> None:
    prediction, target = drawn((3, 500), seed)

    found, pooled = metrics.ause(prediction, target), metrics.Pooled(metrics.Sparsification())
    pooled.update(prediction, target)

    everything = peer.AUSE()
    for i, value in enumerate(found):
        error = (prediction.point[i] - target[i]).abs()
        alone = peer.AUSE()
        alone.update(prediction.score[i], error)
        everything.update(prediction.score[i], error)
        assert float(value) == pytest.approx(float(alone.compute()), rel=1e-9)
    assert float(pooled.compute().area) == pytest.approx(float(everything.compute()), abs=3e-3)
