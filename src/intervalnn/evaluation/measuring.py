"""Measuring: one method, batch by batch: its time, its memory, and one number per sample of each metric."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from intervalnn import metrics as all_metrics
from intervalnn.calibration.calibration import Calibration
from intervalnn.data.loading import arguments
from intervalnn.data.pairs import checked
from intervalnn.evaluation.cost import peak_bytes, synchronize
from intervalnn.evaluation.records import Measured
from intervalnn.prediction import Method, Prediction, one, without
from intervalnn.torch_private import pytree

__all__ = ["Measuring", "Metric", "at_equal_coverage"]

Metric = Callable[[Prediction, Tensor], Tensor]


def at_equal_coverage(coverage: float) -> dict[str, Metric]:
    """Return what is measured of bounds that were calibrated to the coverage."""
    m = all_metrics
    return {
        "coverage at equal coverage": m.coverage,
        "width at equal coverage": m.mean_width,
        "winkler at equal coverage": partial(m.winkler, coverage=coverage),
    }


class Measuring:
    """What is measured of one method, batch by batch.

    Attributes:
        device: The kind of device that it runs on.
    """

    def __init__(
        self, method: Method, metrics: dict[str, Metric], calibration: Calibration | None, coverage: float
    ) -> None:
        self.method, self.metrics, self.calibration, self.coverage = method, metrics, calibration, coverage
        self.values: dict[str, list[float]] = {}
        self.seconds, self.samples, self.peak, self.device = 0.0, 0, math.nan, "cpu"

    def take(self, x: Any, target: Tensor) -> None:
        """Predict a batch, and keep one number per sample of each metric."""
        if not self.samples:
            self.device, self.peak = _first_look(self.method, self._arguments(x))
        prediction, took = _timed(self.method, self._arguments(x), self.device)
        target = checked(prediction, target)
        self.seconds, self.samples = self.seconds + took, self.samples + len(target)
        self._keep(_numbers(prediction, target, self.metrics))
        if self.calibration is not None:
            scaled = self.calibration(_uncalibrated(self.method, self._arguments(x), prediction))
            self._keep(_numbers(scaled, target, at_equal_coverage(self.coverage)))

    def _arguments(self, x: Any) -> tuple[Any, ...]:
        """Return copies of the method's arguments, because a model may write to its inputs."""
        args = arguments(x, getattr(self.method, "device", None))
        found: tuple[Any, ...] = pytree.tree_map(lambda a: a.clone() if isinstance(a, Tensor) else a, args)
        return found

    def _keep(self, numbers: dict[str, list[float]]) -> None:
        for name, values in numbers.items():
            self.values.setdefault(name, []).extend(values)

    def result(self) -> Measured:
        """Return all of it."""
        if not self.samples:
            raise ValueError("the loader is empty: it must yield at least one batch")
        factors = None if self.calibration is None else self.calibration.factors.tolist()
        return Measured(self.values, self.seconds / self.samples, self.peak / 2**20, factors)


def _uncalibrated(method: Method, args: tuple[Any, ...], prediction: Prediction) -> Prediction:
    """Return the prediction without the method's own calibration; a calibrated method predicts once more."""
    if getattr(method, "calibration", None) is None:
        return prediction
    with torch.no_grad():
        found: Prediction = without(method, "calibration").predict(*args)
    return found


def _first_look(method: Method, args: tuple[Any, ...]) -> tuple[str, float]:
    """Return the kind of device and the peak memory; this untimed call is also the warm-up."""
    with torch.no_grad():
        device = one(method.predict(*args)).point.device.type
        return device, float(peak_bytes(lambda: method.predict(*args), device))


def _timed(method: Method, args: tuple[Any, ...], device: str) -> tuple[Prediction, float]:
    synchronize(device)
    start = time.perf_counter()
    with torch.no_grad():
        prediction = method.predict(*args)
    synchronize(device)
    return prediction, time.perf_counter() - start


def _numbers(prediction: Prediction, target: Tensor, metrics: dict[str, Metric]) -> dict[str, list[float]]:
    found = {}
    for name, metric in metrics.items():
        plain = metric.func if isinstance(metric, partial) else metric
        if prediction.deviation is None and any(plain is density for density in (all_metrics.crps, all_metrics.nll)):
            continue  # no density to judge
        number = metric(prediction, target)
        if not isinstance(number, Tensor) or number.shape != (len(target),):
            got = tuple(number.shape) if isinstance(number, Tensor) else type(number).__name__
            raise ValueError(
                f"metric {name!r} must return one number per sample, ({len(target)},), got {got}; "
                "curves, maps and the torchmetrics classes are for all samples together"
            )
        found[name] = number.double().tolist()
    return found
