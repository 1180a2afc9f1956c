"""The numbers of the 1D part in one page: published, and ours with the published and with the corrected metrics."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from intervalnn.experiments.deconvolution import COVERAGE, WITH_DIRECTION
from intervalnn.results import Results, Run

__all__ = ["page", "results", "write"]

WINKLER = "winkler at equal coverage"
LARGEST = (1.0, 0.1, 0.02)  # shares of the errors, by size
UNTRAINED = ("MC dropout", "constant width")
PUBLISHED = {"coverage": "89 %", "direction": "62 to 75 %"}  # Sec. 4: 12 to 25 points above 50 %


def results(folder: Path) -> dict[float, Results]:
    """Return all runs in a folder, by noise; methods that not every run has are left out."""
    runs = [Run.load(path) for path in sorted(folder.glob("noise-*-seed-*.json")) if "behaviour" not in path.name]
    if not runs:
        raise FileNotFoundError(f"no runs in {folder}; make some with inn reproduce deconv")
    found = {}
    for noise in sorted({run.settings["noise"] for run in runs}):
        group = [run for run in runs if run.settings["noise"] == noise]
        names = [name for name in group[0].methods if all(name in run.methods for run in group)]
        found[noise] = Results(
            [Run({n: r.methods[n] for n in names}, r.coverage, r.better, r.seed, r.settings, r.versions) for r in group]
        )
    return found


def page(folder: Path) -> str:
    """Return the page as Markdown."""
    found = results(folder)
    first = next(iter(found.values())).runs[0]
    scale = first.settings["scale"]
    lines = [
        f"# 1D deconvolution at scale {scale['name']}\n",
        f"Written by `inn reproduce deconv` from the files beside it ({first.versions['device']}, torch "
        f"{first.versions['torch']}). {scale['samples']} signals of length {scale['size']}, "
        f"{first.settings['parameters']} parameters, {scale['epochs']} epochs. Mean ± standard deviation over runs.",
    ]
    for noise, each in found.items():
        lines += [_comparison(noise, each), _published(each), _large_errors(folder, noise)]
    if (folder / "run-time.json").exists():
        lines.append(_cost(folder))
    return "\n".join(lines) + "\n"


def _comparison(noise: float, found: Results) -> str:
    mae = [run.settings["mae"] for run in found.runs]
    lines = [
        f"\n## Noise {noise:g}, seeds {[run.seed for run in found.runs]}\n",
        f"Mean absolute error of the underlying model {_both(mae, '.4f')}. Interval score (Winkler) and width are "
        f"those after each method was calibrated to {COVERAGE:.0%} on the validation split, over that error; lower is "
        "better. p: how likely a difference as large from the quantile heads is by chance (paired bootstrap over test "
        "signals). The centre's error is that of the middle between the bounds: below 1, the method predicts better "
        "than the underlying model does.\n",
        "| method | coverage | calibrated | Winkler / MAE | width / MAE | x quantile heads | p | centre's error / MAE "
        "| Pearson | AUSE |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]

    def over_mae(name: str, metric: str) -> list[float]:
        return [float(v.mean()) / unit for v, unit in zip(found.per_run(name, metric), mae, strict=True)]

    base = over_mae("quantile heads", WINKLER) if "quantile heads" in found.methods else []
    for name in sorted(found.methods, key=lambda n: statistics.fmean(over_mae(n, WINKLER))):
        score = over_mae(name, WINKLER)
        ratio = f"{statistics.fmean(a / b for a, b in zip(score, base, strict=True)):.3f}" if base else "-"
        same = not base or name == "quantile heads"
        p = "" if same else f"{found.compare(WINKLER, name, 'quantile heads').p:.2g}"
        lines.append(
            f"| {name} | {found.spread(name, 'coverage')} | {found.spread(name, 'coverage at equal coverage')} "
            f"| {_both(score, '.2f')} | {_both(over_mae(name, 'width at equal coverage'), '.2f')} | {ratio} | {p} "
            f"| {_both(over_mae(name, 'centre_mae'), '.2f')} "
            f"| {found.spread(name, 'pearson')} | {found.spread(name, 'ause')} |"
        )
    return "\n".join(lines)


def _published(found: Results) -> str:
    """Return what the paper reports, by its own metrics and by the corrected ones."""
    lines = [
        "\nThe paper's own numbers, by the published metrics (only misses above count; cosine instead of correlation; "
        "chance taken as one half) and as they should be:\n",
        "| method | published coverage metric | coverage | cosine PWCC | PWCC "
        "| direction right, by strength | more frequent side |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        f"| *published* | {PUBLISHED['coverage']} | | | | {PUBLISHED['direction']} | |",
    ]
    for name in ("INN, published", "INN", "MC dropout", "ProbOut, published"):
        if name not in found.methods:
            continue
        curves = [run.settings["curves"].get(name, {}).get("direction") for run in found.runs]
        direction, majority = _range(curves, "accuracy"), _range(curves, "majority")
        lines.append(
            f"| {name} | {found.spread(name, 'paper_coverage')} | {found.spread(name, 'coverage')} "
            f"| {found.spread(name, 'paper_pwcc')} | {found.spread(name, 'pwcc')} | {direction} | {majority} |"
        )
    return "\n".join(lines)


def _large_errors(folder: Path, noise: float) -> str:
    """Return how often the direction is right, for all errors and for large ones, on the signals kept as examples."""
    files = [dict(np.load(path)) for path in sorted(folder.glob(f"noise-{noise:g}-seed-*.npz"))]
    lines = [
        "\nWhere the wide side points to: share of right directions among the largest errors, on the example signals "
        "of all runs. A wide side says where large errors lie; where errors are skewed, small ones lie on the other.\n",
        "| method | " + " | ".join(f"largest {share:.0%}" if share < 1 else "all errors" for share in LARGEST) + " |",
        "| --- |" + " --- |" * len(LARGEST),
    ]
    for name in WITH_DIRECTION:
        if any(f"{name}/point" not in arrays for arrays in files):
            continue
        error = np.concatenate([(a["y"] - a[f"{name}/point"]).ravel() for a in files])
        tilt = np.concatenate([(a[f"{name}/above"] - a[f"{name}/below"]).ravel() for a in files])
        right, size = np.sign(error) == np.sign(tilt), abs(error)
        shares = (right[size >= np.quantile(size, 1 - share)].mean() for share in LARGEST)
        lines.append(f"| {name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
    return "\n".join(lines)


def _range(curves: list[Any], key: str) -> str:
    if any(curve is None for curve in curves):
        return "has none"
    columns = [
        [v for v in values if v is not None and not math.isnan(v)]
        for values in zip(*(c[key] for c in curves), strict=True)
    ]
    means = [statistics.fmean(column) for column in columns if column]
    return f"{min(means):.1%} to {max(means):.1%}" if means else "undefined"


def _cost(folder: Path) -> str:
    found = json.loads((folder / "run-time.json").read_text())
    plain = found["seconds"].pop("plain")
    lines = [
        f"\n## Run time\n\nA prediction of {found['batch']} signals in multiples of K, the plain forward pass "
        f"({plain['predict'] * 1e3:.2g} ms), and a training epoch in multiples of one of the plain network "
        f"({plain['epoch']:.2g} s), on {found['versions']['device']}, uncompiled, with nothing beside:\n",
        "| method | prediction, x K | training epoch, x plain |",
        "| --- | --- | --- |",
    ]
    for name, took in found["seconds"].items():
        trained = f"{took['epoch'] / plain['epoch']:.1f}" if name not in UNTRAINED else "none"
        lines.append(f"| {name} | {took['predict'] / plain['predict']:.1f} | {trained} |")
    return "\n".join(lines)


def _both(values: list[float], digits: str) -> str:
    mean = format(statistics.fmean(values), digits)
    return mean if len(values) < 2 else f"{mean} ± {format(statistics.stdev(values), digits)}"


def write(folder: Path) -> Path:
    """Write the page beside the runs."""
    path = folder / "README.md"
    temporary = path.with_suffix(".part")
    temporary.write_text(page(folder))
    return temporary.replace(path)
