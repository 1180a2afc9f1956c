"""Samples: those that the leading method does best and worst on, of the examples beside a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from intervalnn.data.readers.npy import Npz
from intervalnn.evaluation.records import Run
from intervalnn.evaluation.report.groups import Group
from intervalnn.evaluation.report.style import BAND, POINT, TARGET, figure, label, tidy
from intervalnn.evaluation.report.words import meaning

__all__ = ["Example", "examples", "pictures"]

PARTS = ("point", "below", "above", "score")
METHODS = 4  # drawn beside each other

Arrays = dict[str, np.ndarray[Any, Any]]


class Example(NamedTuple):
    """One sample, and what the methods predict for it.

    Attributes:
        title: Which one, and how well the leading method does on it.
        arrays: ``x``, ``y`` and the parts of each method's prediction, ``(1, channels, *signal)``, with bounds
            calibrated as the run was.
        names: The methods, the leading one first.
    """

    title: str
    arrays: Arrays
    names: list[str]


def examples(group: Group) -> tuple[list[Example], list[tuple[Path, str]]]:
    """Return the best and the worst example of the first run that has any, and the files that hold none, with why not.

    Without a metric to rank by there is nothing.
    """
    left_out: list[tuple[Path, str]] = []
    for file, run in zip(group.files, group.results.runs, strict=True):
        path = file.with_suffix(".npz")
        if group.ranked_by is None or not os.path.lexists(path):
            continue
        try:
            if found := _extreme(*_load(path, run), run, group.ranked_by):
                return found, left_out
        except (OSError, ValueError) as error:
            left_out.append((path, str(error).removeprefix(f"{path} ")))
    return [], left_out


def _load(path: Path, run: Run) -> tuple[Arrays, list[str]]:
    """Return the arrays of a file, and the methods of the run that it has predictions of; refuse any other file."""
    stored = Npz(path)
    names = [name for name in run.methods if all(f"{name}/{part}" in stored for part in PARTS)][:METHODS]
    wanted = ["x", "y", *(f"{name}/{part}" for name in names for part in PARTS)]
    if not names or not {"x", "y"} <= stored.keys():
        raise ValueError("holds no examples of this run: it must have x, y and predictions of its methods")
    arrays = {name: _real(name, stored[name]) for name in wanted}
    count = len(arrays["y"])
    arrays["samples"] = stored["samples"] if "samples" in stored else np.arange(count)
    if arrays["samples"].dtype.kind not in "iu" or arrays["samples"].shape != (count,) or len(arrays["x"]) != count:
        raise ValueError(f"must have x and a whole number in samples for each of {count} y")
    for name in wanted[2:]:
        if arrays[name].shape != arrays["y"].shape:
            raise ValueError(f"must have {name} of shape {arrays['y'].shape}, like y, got {arrays[name].shape}")
    return arrays, names


def _real(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.dtype.kind not in "fiub" or array.ndim < 2 or not array.size:
        raise ValueError(f"must have real numbers in {name}, a sample in each row, got {array.dtype} {array.shape}")
    return array.astype(np.float64) if array.dtype.itemsize < 4 or array.dtype.kind != "f" else array


def _extreme(arrays: Arrays, names: list[str], run: Run, metric: str) -> list[Example]:
    values = np.asarray(run.methods[names[0]].values.get(metric, []), dtype=float)
    sign = 1.0 if run.better[metric] == "lower" else -1.0
    numbers = arrays["samples"]
    known = [i for i, number in enumerate(numbers) if 0 <= number < len(values) and not np.isnan(values[number])]
    order = sorted(known, key=lambda i: sign * values[numbers[i]])
    found = []
    for word, i in zip(("best", "worst"), dict.fromkeys([*order[:1], *order[-1:]]), strict=False):
        number = int(numbers[i])
        rank = 1 + int((sign * values < sign * values[number]).sum())
        of = f"rank {rank} of {int((~np.isnan(values)).sum())} by {label(meaning(metric).name)}"
        title = f"{word} of the {len(known)} kept: sample {number}, {of}"
        own = {key: array[i : i + 1] for key, array in arrays.items()}
        for name in names:
            factor = _factor(run, name)
            own |= {f"{name}/{part}": own[f"{name}/{part}"] * factor for part in ("below", "above")}
        found.append(Example(title, own, names))
    return found


def _factor(run: Run, name: str) -> float:
    """Return what the run's calibration scaled the gaps by; one, where there was none or one for each group."""
    factors = run.methods[name].factors or []
    return float(factors[0]) if len(factors) == 1 else 1.0


def pictures(found: Sequence[Example]) -> list[Any]:
    """Return the figures of the examples: signals beside each other in one, images in one each."""
    return [_signals(found)] if found[0].arrays["y"].ndim <= 3 else [_images(each) for each in found]


def _signals(found: Sequence[Example]) -> Any:
    """Draw input, target and prediction; then for each method how far the target lies from it, and the bounds."""
    names = found[0].names
    drawn = figure(6.4 * len(found), 2.4 + 1.5 * len(names))
    grid = drawn.subplots(
        1 + len(names), len(found), sharex=True, sharey="row", squeeze=False, height_ratios=[1.4, *[1.0] * len(names)]
    )
    shown = [{key: _as_signal(array) for key, array in e.arrays.items() if array.ndim > 1} for e in found]
    for axes, example, own in zip(grid[0], found, shown, strict=True):
        axes.plot(own["x"], color="#888888", lw=1.2, label="input")
        axes.plot(own["y"], color=TARGET, lw=1.0, label="target")
        axes.plot(own[f"{names[0]}/point"], color=POINT, lw=0.9, label=f"prediction, {label(names[0])}")
        axes.set_title(example.title, fontsize=10)
    for row, name in zip(grid[1:], names, strict=True):
        reach = max(_residual(axes, own, name) for axes, own in zip(row, shown, strict=True))
        row[0].set_ylim(-reach, reach)
        for axes in row:
            axes.set_title(label(name), fontsize=9, loc="left")
    for axes in grid.flat:
        tidy(axes)
        axes.margins(x=0)
    named = [part for axes in grid[:2, 0] for part in axes.get_legend_handles_labels()[0]]
    drawn.legend(handles=named, loc="outside lower center", ncols=len(named), frameon=False, fontsize=9)
    return drawn


def _residual(axes: Any, own: Arrays, name: str) -> float:
    """Draw how far the target lies from the prediction, and the bounds; return how far to show."""
    point, below, above = (own[f"{name}/{part}"] for part in ("point", "below", "above"))
    distance, places = own["y"] - point, np.arange(len(point))
    outside = (distance > above) | (-distance > below)
    axes.fill_between(places, -below, above, color=BAND, alpha=0.5, lw=0, label="bounds")
    axes.plot(distance, color=TARGET, lw=0.8, label="target − prediction")
    axes.plot(places[outside], distance[outside], ".", ms=3, color=POINT, label="outside")
    widest = float(np.quantile(_finite(np.maximum(below, above)), 0.98))  # a single one shall not hide the others
    return 1.1 * max(float(np.abs(_finite(distance)).max()), widest) or 1.0


def _finite(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the finite numbers of an array; zero, where there is none."""
    found: np.ndarray[Any, Any] = array[np.isfinite(array)]
    return found if found.size else np.zeros(1)


def _as_signal(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the first channel, with a gap where it is not finite."""
    signal: np.ndarray[Any, Any] = array.reshape(-1, array.shape[-1])[0]
    return np.where(np.isfinite(signal), signal, np.nan)


def _images(example: Example) -> Any:
    """Draw input and target, then for each method prediction, absolute error and half the width on one scale."""
    shown = {key: _as_image(array) for key, array in example.arrays.items() if array.ndim > 3}
    y = shown["y"]
    tall = min(max(y.shape[0] / y.shape[1], 0.2), 5.0)  # a page has room for no more
    drawn = figure(6.4, 0.4 + 2.1 * (1 + len(example.names)) * tall)
    grid = drawn.subplots(1 + len(example.names), 3, squeeze=False)
    gray = {"cmap": "gray", "vmin": float(_finite(y).min()), "vmax": float(_finite(y).max())}
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[])
    for axes in (grid[0][2], *(() if "x" in shown else (grid[0][0],))):
        axes.set_axis_off()
    if "x" in shown:
        grid[0][0].imshow(shown["x"], cmap="gray")
        grid[0][0].set_title("input", fontsize=9)
    grid[0][1].imshow(y, **gray)
    grid[0][1].set_title("target", fontsize=9)
    maps = {name: (abs(shown[f"{name}/point"] - y), _half_width(shown, name)) for name in example.names}
    top = max(float(np.quantile(_finite(each), 0.995)) for pair in maps.values() for each in pair) or 1.0
    for row, name in zip(grid[1:], example.names, strict=True):
        row[0].imshow(shown[f"{name}/point"], **gray)
        row[0].set_ylabel(label(name), fontsize=9)
        for axes, each in zip(row[1:], maps[name], strict=True):
            image = axes.imshow(each, cmap="cividis", vmin=0.0, vmax=top)
    for axes, title in zip(grid[1], ("prediction", "absolute error", "half the width"), strict=True):
        axes.set_title(title, fontsize=9)
    place = grid[0][2].inset_axes([0.08, 0.5, 0.84, 0.08])
    scale = drawn.colorbar(image, cax=place, orientation="horizontal", extend="max")
    scale.set_label("error, half the width", fontsize=8)
    scale.ax.tick_params(labelsize=7)
    drawn.suptitle(example.title, fontsize=10)
    return drawn


def _half_width(shown: Mapping[str, np.ndarray[Any, Any]], name: str) -> Any:
    return (shown[f"{name}/below"] + shown[f"{name}/above"]) / 2


def _as_image(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the first channel, with a gap where it is not finite; of a volume its middle slice."""
    image: np.ndarray[Any, Any] = array[0, 0]
    while image.ndim > 2:
        image = image[len(image) // 2]
    return np.where(np.isfinite(image), image, np.nan)
