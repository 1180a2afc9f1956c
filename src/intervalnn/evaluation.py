"""evaluate: several methods on the same samples, at the same coverage."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from intervalnn import metrics as all_metrics
from intervalnn.calibration import Calibration, calibrate
from intervalnn.cost import peak_bytes, synchronize, versions
from intervalnn.pairs import Method, arguments, checked, one, split, without
from intervalnn.prediction import Prediction
from intervalnn.results import Better, Measured, Results, Run

__all__ = ["evaluate"]

Metric = Callable[[Prediction, Tensor], Tensor]

# What is better: metrics that are not named here have no best.
BETTER: dict[str, Better] = {
    **dict.fromkeys(("mse", "mae", "winkler", "pinball", "crps", "nll", "ause"), "lower"),
    **dict.fromkeys(("psnr", "ssim", "pearson", "spearman", "pwcc", "direction_accuracy"), "higher"),
    # At equal coverage narrower is better; elsewhere it need not be.
    **dict.fromkeys(("width at equal coverage", "winkler at equal coverage"), "lower"),
}


def evaluate(
    methods: Mapping[str, Method],
    loader: Iterable[Any],
    metrics: Iterable[Metric] | Mapping[str, Metric] | None = None,
    *,
    held_out: Iterable[Any] | None = None,
    coverage: float = 0.9,
    better: Mapping[str, Literal["lower", "higher"]] | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> Results:
    """Measure methods on the same samples, and compare them at equal coverage.

    Each method predicts each batch once. Given ``held_out``, each is calibrated on it first (a
    calibration it has is put aside, and back again), and coverage, width and interval score of the
    scaled bounds stand beside the others, as ``"... at equal coverage"``. Only one number per sample
    and metric is kept.

    Args:
        methods: By name: anything with ``predict(x) -> Prediction``.
        loader: Yields pairs ``(x, y)``, or mappings with ``"input"`` and ``"target"``; the same each time.
        metrics: Functions from a prediction and a target to one number per sample, such as those in
            :mod:`intervalnn.metrics`; by name, or in a list. NaN means undefined. By default mse, coverage,
            width, interval score, Pearson correlation and PWCC.
        held_out: Samples to calibrate on, that no method was trained on and that are not in ``loader``.
        coverage: The coverage at which to compare.
        better: Whether ``"lower"`` or ``"higher"`` is better, for metrics of your own.
        seed: What tells this run from others, for the record.
        settings: Whatever else shall be recorded with it.

    Returns:
        One run; ``results + results`` puts several together, and ``save`` writes one file for each.

    Example:
        >>> from intervalnn.methods import ConstantWidth
        >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
        <torch...>
        >>> batches = [(torch.randn(50, 3), torch.randn(50, 3)) for _ in range(2)]
        >>> model = torch.nn.Linear(3, 3)
        >>> results = evaluate({"constant": ConstantWidth(model)}, batches[:1], held_out=batches[1:])
        >>> results.methods, results.spread("constant", "coverage at equal coverage").mean > 0.8
        (['constant'], True)
    """
    chosen = _by_name(metrics, coverage)
    if not methods or not isinstance(methods, Mapping):
        raise ValueError("methods must be a mapping with at least one entry, such as {'INN': net}")
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage}")
    measured, device = {}, "cpu"
    for name, method in methods.items():
        measured[name], device = _measured(name, method, loader, chosen, held_out, coverage)
    run = Run(measured, coverage, BETTER | dict(better or {}), seed, dict(settings or {}), versions(device))
    return Results([run])


def _by_name(metrics: Iterable[Metric] | Mapping[str, Metric] | None, coverage: float) -> dict[str, Metric]:
    if isinstance(metrics, Mapping):
        return dict(metrics)
    if metrics is not None:
        return {getattr(metric, "__name__", type(metric).__name__): metric for metric in metrics}
    m = all_metrics
    return {
        "mse": m.mse,
        "coverage": m.coverage,
        "width": m.mean_width,
        "winkler": lambda p, y: m.winkler(p, y, coverage=coverage),
        "pearson": m.pearson,
        "pwcc": m.pwcc,
    }


def _measured(
    name: str,
    method: Method,
    loader: Iterable[Any],
    metrics: dict[str, Metric],
    held_out: Iterable[Any] | None,
    coverage: float,
) -> tuple[Measured, str]:
    """Return what is measured of one method, and the kind of device that it ran on."""
    calibration = _calibration(method, held_out, coverage)
    values: dict[str, list[float]] = {}
    seconds, samples, peak, device = 0.0, 0, math.nan, "cpu"
    for index, batch in enumerate(loader):
        x, target = split(batch)
        args = arguments(x, getattr(method, "device", None))
        if index == 0:
            device, peak = _first_look(method, args)
        prediction, took = _timed(method, args, device)
        target = checked(prediction, target)
        seconds, samples = seconds + took, samples + len(target)
        for metric, number in _numbers(prediction, target, metrics, name).items():
            values.setdefault(metric, []).extend(number)
        if calibration is not None:
            scaled = calibration(_uncalibrated(method, args, prediction))
            for metric, number in _numbers(scaled, target, _at_equal_coverage(coverage), name).items():
                values.setdefault(metric, []).extend(number)
    if not samples:
        raise ValueError("the loader is empty: it must yield at least one batch, each time it is gone through")
    factors = None if calibration is None else calibration.factors.tolist()
    return Measured(values, seconds / samples, peak / 2**20, factors), device


def _calibration(method: Method, held_out: Iterable[Any] | None, coverage: float) -> Calibration | None:
    """Return a calibration to the coverage; the method keeps its own."""
    if held_out is None:
        return None
    before = getattr(method, "calibration", None)
    try:
        return calibrate(method, held_out, coverage=coverage)
    finally:
        method.calibration = before  # type: ignore[attr-defined]


def _uncalibrated(method: Method, args: tuple[Any, ...], prediction: Prediction) -> Prediction:
    """Return what the method predicts without a calibration of its own; it is asked again where it has one."""
    if getattr(method, "calibration", None) is None:
        return prediction
    with without(method, "calibration"), torch.no_grad():
        return method.predict(*args)


def _at_equal_coverage(coverage: float) -> dict[str, Metric]:
    m = all_metrics
    return {
        "coverage at equal coverage": m.coverage,
        "width at equal coverage": m.mean_width,
        "winkler at equal coverage": lambda p, y: m.winkler(p, y, coverage=coverage),
    }


def _first_look(method: Method, args: tuple[Any, ...]) -> tuple[str, float]:
    """Return the kind of device, and how far memory rises; whatever happens once happens here, untimed."""
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


def _numbers(prediction: Prediction, target: Tensor, metrics: dict[str, Metric], method: str) -> dict[str, list[float]]:
    found = {}
    for name, metric in metrics.items():
        if prediction.deviation is None and metric in (all_metrics.crps, all_metrics.nll):
            continue  # no density to judge
        number = metric(prediction, target)
        if not isinstance(number, Tensor) or number.shape != (len(target),):
            got = tuple(number.shape) if isinstance(number, Tensor) else type(number).__name__
            raise ValueError(f"metric '{name}' must return one number per sample, ({len(target)},), got {got}")
        found[name] = number.double().tolist()
    return found
