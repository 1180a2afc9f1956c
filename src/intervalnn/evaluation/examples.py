"""Examples: samples and curves that a run keeps for a report, beside one number per sample and metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import RandomSampler

from intervalnn.data.loading import arguments, batches, split
from intervalnn.data.pairs import checked
from intervalnn.evaluation.records import Run
from intervalnn.files.arrays_written import write_npz
from intervalnn.metrics import CalibrationLevels, Directions, Sparsification, Tally
from intervalnn.network.explanation import Explanation
from intervalnn.prediction import Method
from intervalnn.torch_private import pytree

__all__ = ["curves_of", "extremes", "ranked_by", "save_examples"]

# What methods and samples are ranked by: the first of these that a run has.
RANKED = ("winkler at equal coverage", "winkler", "pinball", "crps", "nll", "mae", "mse")
EXPLAINED = 8  # samples: an explanation takes a backward pass, for which a whole batch may be too much


def curves_of(method: Method, loader: Iterable[Any], *, coverage: float = 0.9) -> dict[str, Any]:
    """Return the curves of a method as plain values, for the settings of a run.

    A report looks for them in ``settings["curves"][name of the method]``. Memory does not grow with the data.

    Args:
        method: As it predicts now: with its calibration, if it has one.
        loader: Yields pairs ``(x, y)``, or mappings with ``"input"`` and ``"target"``.
        coverage: What the bounds should cover.

    Returns:
        ``"calibration"`` and ``"sparsification"``; ``"direction"``, where gaps differ from side to side; and
        ``"explanation"``, one row per parameter for the first samples, where the method has ``explain``.

    Example:
        >>> from intervalnn.methods import ConstantWidth
        >>> x, y = torch.zeros(50, 3), torch.linspace(-1, 1, 150).view(50, 3)
        >>> curves = curves_of(ConstantWidth(torch.nn.Identity()), [(x, y)])
        >>> sorted(curves), curves["calibration"]["levels"][-3:]
        (['calibration', 'sparsification'], [0.9, 0.95, 0.99])
    """
    tallies: dict[str, Tally[Any]] = {
        "calibration": CalibrationLevels(coverage=coverage),
        "sparsification": Sparsification(),
        "direction": Directions(),
    }
    sums: dict[str, Tensor] = {}
    explained: dict[str, Any] = {}
    for batch in batches(loader):
        x, target = split(batch)
        args = arguments(x, getattr(method, "device", None))
        if not sums:
            explained = _explanation(method, args, len(target))
        with torch.no_grad():
            prediction = method.predict(*args)
        target = checked(prediction, target)
        for name, tally in tallies.items():
            counted = tally.count(prediction, target)
            sums[name] = sums[name] + counted if name in sums else counted
    if not sums:
        raise ValueError("the loader is empty: it must yield at least one batch")
    found = {name: _lists(tally.result(sums[name])) for name, tally in tallies.items()}
    if not found["direction"]["kept"][0]:
        del found["direction"]
    return found | explained


def _lists(curve: Any) -> dict[str, Any]:
    return {key: value.tolist() for key, value in curve._asdict().items()}


def _explanation(method: Method, args: tuple[Any, ...], batch: int) -> dict[str, Any]:
    if not hasattr(method, "explain"):
        return {}
    few = pytree.tree_map(lambda a: a[:EXPLAINED] if isinstance(a, Tensor) and a.ndim and len(a) == batch else a, args)
    found = method.explain(*few)
    return {"explanation": [asdict(row) for row in found.rows]} if isinstance(found, Explanation) else {}


def ranked_by(run: Run) -> str | None:
    """Return the metric that methods and samples of a run are ranked by; None if none says what is better."""
    measured = dict.fromkeys(metric for method in run.methods.values() for metric in method.values)
    ranked = [metric for metric in (*RANKED, *measured) if metric in measured and metric in run.better]
    return ranked[0] if ranked else None


def extremes(run: Run, *, count: int = 2) -> list[int]:
    """Return which samples the best method does best and worst on, the best first.

    Args:
        run: What was measured.
        count: How many of either kind.
    """
    metric = ranked_by(run)
    if metric is None:
        raise ValueError(f"no metric of this run says what is better; it needs one of {', '.join(RANKED)}")
    sign = 1.0 if run.better[metric] == "lower" else -1.0
    values = [sign * np.asarray(method.values.get(metric, []), dtype=float) for method in run.methods.values()]
    known = [each for each in values if not np.isnan(each).all()]
    if not known:
        raise ValueError(f"{metric} is undefined for every sample; measure another")
    leader = min(known, key=lambda each: float(np.nanmean(each)))
    order = [int(i) for i in np.argsort(leader) if not np.isnan(leader[i])]
    return list(dict.fromkeys(order[:count] + order[-count:]))


def save_examples(path: str | Path, methods: Mapping[str, Method], loader: Iterable[Any], *, count: int = 2) -> Path:
    """Write what methods predict for the best and the worst samples of a run, beside its file.

    The file has the run's name and ``.npz``: ``x`` (the first tensor of the measurement), ``y``, ``samples`` (their
    numbers in the run), and ``<method>/point``, ``/below``, ``/above`` and ``/score`` of each method.

    Args:
        path: The file of the run.
        methods: By the names that they have in the run.
        loader: The one that the run was measured on, in the same order.
        count: How many of the best, and of the worst.
    """
    path = Path(path)
    run = Run.load(path)
    if isinstance(getattr(loader, "sampler", None), RandomSampler):
        raise ValueError("the loader must give the samples in the order of the run, and it shuffles; say shuffle=False")
    chosen = sorted(extremes(run, count=count))
    parts, seen = _picked(methods, loader, chosen)
    expected = len(next(iter(next(iter(run.methods.values())).values.values())))
    if seen != expected:
        raise ValueError(f"the loader must have the {expected} samples of the run, got {seen}; give the one it was of")
    arrays: dict[str, Any] = {"samples": np.array(chosen)} | {key: np.stack(each) for key, each in parts.items()}
    write_npz(path.with_suffix(".npz"), arrays, compressed=True)
    return path.with_suffix(".npz")


def _picked(
    methods: Mapping[str, Method], loader: Iterable[Any], chosen: list[int]
) -> tuple[dict[str, list[Any]], int]:
    """Return measurement, target and predictions of the samples of these numbers, and how many there are in all."""
    parts: dict[str, list[Any]] = {}
    seen = 0
    for batch in batches(loader):
        x, target = split(batch)
        here = [i - seen for i in chosen if seen <= i < seen + len(target)]
        seen += len(target)
        if not here:
            continue
        found = {"x": next(leaf for leaf in pytree.tree_leaves(x) if isinstance(leaf, Tensor)), "y": target}
        for name, method in methods.items():
            with torch.no_grad():
                prediction = method.predict(*arguments(x, getattr(method, "device", None)))
            found |= {f"{name}/{part}": prediction[part] for part in ("point", "below", "above", "score")}
        for key, value in found.items():
            parts.setdefault(key, []).extend(_array(value[i]) for i in here)
    return parts, seen


def _array(tensor: Tensor) -> Any:
    tensor = tensor.detach().cpu()
    return (tensor.abs() if tensor.is_complex() else tensor).float().numpy()
