"""evaluate: several methods on the same samples, at the same coverage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, get_args

from rich import get_console
from rich.markup import escape
from rich.progress import track

from intervalnn import metrics as all_metrics
from intervalnn.calibration.calibration import calibrate
from intervalnn.data.loading import batches, is_empty, split
from intervalnn.evaluation.cost import versions
from intervalnn.evaluation.measuring import Measuring, Metric, at_equal_coverage
from intervalnn.evaluation.records import Better, Run
from intervalnn.evaluation.results import Results
from intervalnn.prediction import Method, refuse_unfitted, stand_in

__all__ = ["evaluate"]

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
    even where the loader shuffles. Given ``held_out``, each method is first calibrated on it; a calibration that the
    method has is restored at the end. Coverage, width and interval score of the scaled bounds are recorded too, as
    ``"... at equal coverage"``. Only one number per sample and metric is kept.

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
        >>> import torch
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
    bars = progress and _on_a_screen()
    measuring = {}
    for name, method in methods.items():
        with _about(f"{name!r} on held_out"):
            calibration = None
            if held_out is not None:  # of a stand-in, for the method keeps its own
                data = _shown(batches(held_out), escape(f"calibrate {name}"), bars)
                calibration = calibrate(stand_in(method), data, coverage=coverage)
            measuring[name] = Measuring(method, chosen, calibration, coverage)
    for i, batch in enumerate(_shown(batches(loader), "evaluate", bars), 1):
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
        if name in found or name in at_equal_coverage(coverage):
            raise ValueError(f"there are two metrics {name!r}; name them: {{'first': ..., 'second': ...}}")
        own = next((own for own in (m.winkler, m.pinball) if metric is own), None)
        found[name] = metric if own is None else partial(own, coverage=coverage)
    return found


def _name(metric: Metric) -> str:
    metric = metric.func if isinstance(metric, partial) else metric
    return getattr(metric, "__name__", type(metric).__name__)


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


def _shown(data: Iterable[Any], text: str, bars: bool) -> Iterable[Any]:
    return track(data, text, transient=True) if bars else data


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
