"""The numbers of the 1D part in one page: published, and ours with the published and with the corrected metrics."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

from intervalnn.experiments.deconvolution import COVERAGE
from intervalnn.results import Results, Run

__all__ = ["page", "results", "write"]

WINKLER = "winkler at equal coverage"
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
        lines += [_comparison(noise, each), _published(each), _cost(each)]
    return "\n".join(lines) + "\n"


def _comparison(noise: float, found: Results) -> str:
    mae = [run.settings["mae"] for run in found.runs]
    lines = [
        f"\n## Noise {noise:g}, seeds {[run.seed for run in found.runs]}\n",
        f"Mean absolute error of the underlying model {_both(mae, '.4f')}. Interval score (Winkler) and width are "
        f"those after each method was calibrated to {COVERAGE:.0%} on the validation split, over that error; lower is "
        "better. p: how likely a difference as large from the quantile heads is by chance (paired bootstrap over test "
        "signals).\n",
        "| method | coverage | calibrated | Winkler / MAE | width / MAE | x quantile heads | p | Pearson | AUSE |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
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


def _range(curves: list[Any], key: str) -> str:
    if any(curve is None for curve in curves):
        return "has none"
    columns = [
        [v for v in values if v is not None and not math.isnan(v)]
        for values in zip(*(c[key] for c in curves), strict=True)
    ]
    means = [statistics.fmean(column) for column in columns if column]
    return f"{min(means):.1%} to {max(means):.1%}" if means else "undefined"


def _cost(found: Results) -> str:
    lines = [
        "\nTime of a prediction in multiples of K, the plain forward pass, and of fitting:\n",
        "| method | x K | fit, seconds |",
        "| --- | --- | --- |",
    ]
    for name in found.methods:
        ratio = [run.methods[name].seconds / run.settings["plain_seconds"] for run in found.runs]
        took = [run.settings["fit_seconds"][name] for run in found.runs]
        lines.append(f"| {name} | {_both(ratio, '.1f')} | {_both(took, '.0f')} |")
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
