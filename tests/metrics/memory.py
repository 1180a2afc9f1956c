"""Evaluate images that are made on the fly, with every metric, and tell how much memory that takes.

python tests/metrics/memory.py 2000
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator

import torch
from torch import Tensor

from intervalnn import metrics
from intervalnn.metrics import classes
from intervalnn.prediction import Prediction

SHAPE = (1, 512, 512)


def pairs(images: int) -> Iterator[tuple[Prediction, Tensor]]:
    """Yield one image of 512 x 512 at a time."""
    noise = torch.Generator().manual_seed(0)
    for _ in range(images):
        point, below, above, error = torch.randn(4, 1, *SHAPE, generator=noise)
        below, above = below.abs(), above.abs()
        deviation = (below + above) / 2
        yield Prediction(point, below, above, below + above, deviation), point + deviation * error


def every_metric() -> list[classes.Streaming]:
    functions = (
        metrics.mse, metrics.mae, metrics.psnr, metrics.ssim, metrics.coverage, metrics.mean_width,
        metrics.median_width, metrics.winkler, metrics.pinball, metrics.crps, metrics.nll, metrics.pearson,
        metrics.spearman, metrics.pwcc, metrics.ause, metrics.direction_accuracy, metrics.paper_coverage,
        metrics.paper_pwcc,
    )  # fmt: skip
    tallies = (
        metrics.RankCorrelation(), metrics.Sparsification(), metrics.Directions(), metrics.CalibrationLevels(),
        metrics.WidthStrata(), metrics.WidthQuantile(), metrics.MissedPlaces(SHAPE), metrics.MarkovBound(beta=0.1),
    )  # fmt: skip
    return [*map(classes.SampleMean, functions), *map(classes.Pooled, tallies)]


def evaluate(images: int) -> dict[str, float]:
    """Return the peak of the resident memory in MiB after each twentieth image, and the seconds it took."""
    stream, found, start = every_metric(), {}, time.perf_counter()
    for i, (prediction, target) in enumerate(pairs(images), 1):
        for metric in stream:
            metric.update(prediction, target)
        if i % 20 == 0 or i == images:
            found[str(i)] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for metric in stream:
        metric.compute()
    found["after compute"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found["seconds"] = time.perf_counter() - start
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(evaluate(int(sys.argv[1]))))
