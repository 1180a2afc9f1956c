"""evaluate: several methods on the same samples, at the same coverage."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, get_args

import torch
import torch.utils._pytree as pytree
from rich import get_console
from rich.markup import escape
from rich.progress import track
from torch import Tensor

from intervalnn import metrics as all_metrics
from intervalnn.calibration.calibration import Calibration, calibrate
from intervalnn.data.loading import arguments, batches, is_empty, split
from intervalnn.data.pairs import checked
from intervalnn.evaluation.cost import peak_bytes, synchronize, versions
from intervalnn.evaluation.results import Better, Measured, Results, Run
from intervalnn.prediction import Method, Prediction, one, refuse_unfitted, stand_in, without

__all__ = ["evaluate"]

Metric = Callable[[Prediction, Tensor], Tensor]

# What is better: metrics that are not named here have no best.
BETTER: dict[str, Better] = {
    **dict.fromkeys(("mse", "mae", "winkler", "pinball", "crps", "nll", "ause"), "lower"),
    **dict.fromkeys(("psnr", "ssim", "pearson", "spearman", "pwcc", "paper_pwcc", "direction_accuracy"), "higher"),
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
    progress: bool = True,
) -> Results:
    """Measure methods on the same samples, and compare them at equal coverage.

    The loader is gone through once, and every method predicts each batch, so that samples are paired
    even where the loader shuffles. Given ``held_out``, each is calibrated on it first (a
    calibration it has is put aside, and back again), and coverage, width and interval score of the
    scaled bounds stand beside the others, as ``"... at equal coverage"``. Only one number per sample
    and metric is kept.

    Args:
        methods: By name: anything with ``predict(x) -> Prediction``. Those that learn from data must have been fitted.
        loader: Yields pairs ``(x, y)``, or mappings with ``"input"`` and ``"target"``.
        metrics: Functions from a prediction and a target to one number per sample, such as those in
            :mod:`intervalnn.metrics`; by name, or in a list. NaN means undefined. By default mse, coverage,
            width, interval score, Pearson correlation and PWCC. ``winkler`` and ``pinball`` are for
            ``coverage``; take :func:`functools.partial` for another.
        held_out: Samples to calibrate on, that no method was trained on and that are not in ``loader``;
            gone through once for each method.
        coverage: The coverage at which to compare.
        better: Whether ``"lower"`` or ``"higher"`` is better, for metrics of your own.
        seed: What tells this run from others, for the record.
        settings: Whatever else shall be recorded with it.
        progress: Whether to show a progress bar while it runs, if there is a terminal.

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
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage}")
    chosen = _by_name(metrics, coverage)
    _check_methods(methods)
    _check_loaders(loader, held_out, len(methods))
    directions = BETTER | dict(better or {})
    if wrong := [value for value in directions.values() if value not in get_args(Better)]:
        raise ValueError(f"better must be 'lower' or 'higher' for each metric, got {wrong[0]!r}")
    shown = partial(track, transient=True, disable=not (progress and _on_a_screen()))
    measuring = {}
    for name, method in methods.items():
        with _about(f"{name!r} on held_out"):
            data = None if held_out is None else shown(batches(held_out), escape(f"calibrate {name}"))
            measuring[name] = _Measuring(method, chosen, _calibration(method, data, coverage), coverage)
    for i, batch in enumerate(shown(batches(loader), "evaluate"), 1):
        x, target = split(batch)
        if is_empty(target):
            continue
        for name, each in measuring.items():
            with _about(f"{name!r} on batch {i}"):
                each.take(x, target)
    measured = {name: each.result() for name, each in measuring.items()}
    device = next(iter(measuring.values())).device
    return Results([Run(measured, coverage, directions, seed, dict(settings or {}), versions(device))])


def _by_name(metrics: Iterable[Metric] | Mapping[str, Metric] | None, coverage: float) -> dict[str, Metric]:
    m = all_metrics
    if metrics is None:
        metrics = {
            "mse": m.mse,
            "coverage": m.coverage,
            "width": m.mean_width,
            "winkler": m.winkler,
            "pearson": m.pearson,
            "pwcc": m.pwcc,
        }
    elif callable(metrics) or not isinstance(metrics, Iterable):
        raise TypeError("metrics must be a list or a mapping of functions, such as [metrics.mse, metrics.winkler]")
    pairs = metrics.items() if isinstance(metrics, Mapping) else [(_name(metric), metric) for metric in metrics]
    found: dict[str, Metric] = {}
    for name, metric in pairs:
        if not callable(metric):
            raise TypeError(f"a metric must be a function, such as intervalnn.metrics.mse, got {metric!r}")
        if name in found or name in _at_equal_coverage(coverage):
            raise ValueError(f"there are two metrics {name!r}; name them: {{'first': ..., 'second': ...}}")
        own = next((own for own in (m.winkler, m.pinball) if metric is own), None)
        found[name] = metric if own is None else partial(own, coverage=coverage)
    return found


def _name(metric: Metric) -> str:
    metric = metric.func if isinstance(metric, partial) else metric
    return getattr(metric, "__name__", type(metric).__name__)


def _is_one_of(metric: Metric, *functions: Metric) -> bool:
    return any(metric is function for function in functions)  # by identity: a torchmetrics class redefines ==


def _check_methods(methods: Mapping[str, Method]) -> None:
    if not isinstance(methods, Mapping) or not methods:
        raise ValueError("methods must be a mapping with at least one entry, such as {'INN': net}")
    for name, method in methods.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a method must be a string, got {name!r}")
        if not callable(getattr(method, "predict", None)):
            raise TypeError(
                f"method {name!r} must have predict(x) -> Prediction, and a {type(method).__name__} has none; "
                "wrap a model, as in ConstantWidth(model)"
            )
        refuse_unfitted(method, f"method {name!r}")


def _check_loaders(loader: Iterable[Any], held_out: Iterable[Any] | None, methods: int) -> None:
    if held_out is loader:
        raise ValueError("held_out must be other samples than those of the loader, got the same; split them")
    if isinstance(held_out, Iterator) and methods > 1:
        raise TypeError(
            f"held_out is gone through for each method, and a {type(held_out).__name__} runs but once; "
            "give a DataLoader or a list"
        )


def _on_a_screen() -> bool:
    console = get_console()
    return console.is_terminal or console.is_jupyter


@contextmanager
def _about(method: str) -> Iterator[None]:
    """Say of an error which method it came from."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This was method {method}.")
        raise


class _Measuring:
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
            self._keep(_numbers(scaled, target, _at_equal_coverage(self.coverage)))

    def _arguments(self, x: Any) -> tuple[Any, ...]:
        """Return what the method takes: copies, since a model may write to its inputs."""
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


def _calibration(method: Method, held_out: Iterable[Any] | None, coverage: float) -> Calibration | None:
    """Return a calibration to the coverage; the method keeps its own."""
    return None if held_out is None else calibrate(stand_in(method), held_out, coverage=coverage)


def _uncalibrated(method: Method, args: tuple[Any, ...], prediction: Prediction) -> Prediction:
    """Return what the method predicts without a calibration of its own; it is asked again where it has one."""
    if getattr(method, "calibration", None) is None:
        return prediction
    with torch.no_grad():
        found: Prediction = without(method, "calibration").predict(*args)
    return found


def _at_equal_coverage(coverage: float) -> dict[str, Metric]:
    m = all_metrics
    return {
        "coverage at equal coverage": m.coverage,
        "width at equal coverage": m.mean_width,
        "winkler at equal coverage": partial(m.winkler, coverage=coverage),
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


def _numbers(prediction: Prediction, target: Tensor, metrics: dict[str, Metric]) -> dict[str, list[float]]:
    found = {}
    for name, metric in metrics.items():
        plain = metric.func if isinstance(metric, partial) else metric
        if prediction.deviation is None and _is_one_of(plain, all_metrics.crps, all_metrics.nll):
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
