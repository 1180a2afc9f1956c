"""Tables of an experiment as Markdown: methods at equal coverage, and what the paper reports of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from intervalnn.evaluation.records import Run
from intervalnn.evaluation.report.curves import pooled
from intervalnn.evaluation.results import Results
from intervalnn.evaluation.statistics import Comparison, Groups
from intervalnn.files.whole import replacing
from intervalnn.paper.experiments.comparison import COVERAGE

__all__ = [
    "WINKLER",
    "both",
    "comparison",
    "curve_range",
    "over_mae",
    "published",
    "scaled",
    "so_many",
    "subjects_of",
    "together",
    "write",
]

WINKLER = "winkler at equal coverage"
KEPT = 0.01  # share of components that a direction must be given for, to count


def together(runs: Iterable[Run]) -> Results:
    """Return the results of some runs; methods that not every run has are left out."""
    group = list(runs)
    names = [name for name in group[0].methods if all(name in run.methods for run in group)]
    return Results([replace(run, methods={name: run.methods[name] for name in names}) for run in group])


def write(path: Path, text: str) -> Path:
    """Write a page at once or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def subjects_of(found: Results) -> Groups | None:
    """Return the subject of each test sample, run by run; None where a run has not kept them."""
    kept: list[list[str] | None] = [run.settings.get("subjects") for run in found.runs]
    known = [subjects for subjects in kept if subjects is not None]
    return known if len(known) == len(kept) else None


def over_mae(found: Results, name: str, metric: str) -> list[float]:
    """Return the mean of a metric over the underlying model's error, run by run."""
    pairs = zip(found.per_run(name, metric), found.runs, strict=True)
    return [float(values.mean()) / run.settings["mae"] for values, run in pairs]


def scaled(found: Results) -> list[str]:
    """Return the methods that some scaling of their bounds brings to the coverage, the best one first."""
    names = [name for name in found.methods if all(len(values) for values in found.per_run(name, WINKLER))]
    return sorted(names, key=lambda name: statistics.fmean(over_mae(found, name, WINKLER)))


def comparison(title: str, found: Results, samples: str) -> str:
    """Return all methods, each calibrated to the same coverage."""
    mae = [run.settings["mae"] for run in found.runs]
    groups = subjects_of(found)
    lines = [
        f"\n## {title}\n",
        f"Mean absolute error of the underlying model {both(mae, '.4f')}. Interval score (Winkler) and width are "
        f"those after each method was calibrated to {COVERAGE:.0%} on the validation split, over that error; lower is "
        "better. p: how likely a difference as large from the quantile heads is by chance (paired bootstrap over test "
        f"{samples if groups is None else 'subjects'}). The centre's error is that of the middle between the bounds: "
        "below 1, the method predicts better than the underlying model does.\n",
        "| method | coverage | calibrated | Winkler / MAE | width / MAE | x quantile heads | p | centre's error / MAE "
        "| Pearson | AUSE |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    names = scaled(found)
    base = over_mae(found, "quantile heads", WINKLER) if "quantile heads" in names else []
    for name in names:
        score = over_mae(found, name, WINKLER)
        ratio = f"{statistics.fmean(a / b for a, b in zip(score, base, strict=True)):.3f}" if base else "-"
        same = not base or name == "quantile heads"
        p = "" if same else f"{_compared(found, name, 'quantile heads', groups).p:.2g}"
        lines.append(
            f"| {name} | {found.spread(name, 'coverage')} | {found.spread(name, 'coverage at equal coverage')} "
            f"| {both(score, '.2f')} | {both(over_mae(found, name, 'width at equal coverage'), '.2f')} | {ratio} | {p} "
            f"| {both(over_mae(found, name, 'centre_mae'), '.2f')} "
            f"| {found.spread(name, 'pearson')} | {found.spread(name, 'ause')} |"
        )
    lines += [
        f"| {name} | {found.spread(name, 'coverage')} | no scaling of its bounds has it | | | | "
        f"| {both(over_mae(found, name, 'centre_mae'), '.2f')} "
        f"| {found.spread(name, 'pearson')} | {found.spread(name, 'ause')} |"
        for name in found.methods
        if name not in names
    ]
    return "\n".join(lines)


def _compared(found: Results, first: str, second: str, groups: Groups | None) -> Comparison:
    if groups is None:
        return found.compare(WINKLER, first, second)
    return found.compare_by(groups, WINKLER, first, second)


def published(found: Results, numbers: dict[str, str] | None) -> str:
    """Return what the paper reports, by its own metrics and by the corrected ones, below its own numbers if any."""
    lines = [
        "\nThe paper's own numbers, by the published metrics (only misses above count; cosine instead of correlation; "
        "chance taken as one half) and as they should be:\n",
        "| method | published coverage metric | coverage | cosine PWCC | PWCC "
        "| direction right, least to largest over its strength (down to 1 % of components) | more frequent side |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    if numbers is not None:
        lines.append(f"| *published* | {numbers['coverage']} | | | | {numbers['direction']} | |")
    for name in ("INN, published", "INN", "MC dropout", "ProbOut, published"):
        if name not in found.methods:
            continue
        curves = [run.settings["curves"].get(name, {}).get("direction") for run in found.runs]
        direction, majority = curve_range(curves, "accuracy"), curve_range(curves, "majority")
        lines.append(
            f"| {name} | {found.spread(name, 'paper_coverage')} | {found.spread(name, 'coverage')} "
            f"| {found.spread(name, 'paper_pwcc')} | {found.spread(name, 'pwcc')} | {direction} | {majority} |"
        )
    return "\n".join(lines)


def curve_range(curves: list[Any], key: str) -> str:
    """Return the least and the largest value of a curve over all runs, where enough is kept."""
    if any(curve is None for curve in curves):
        return "has none"
    values = zip(pooled(curves, key), pooled(curves, "kept"), strict=True)
    judged = [value for value, kept in values if kept >= KEPT]
    return f"{min(judged):.1%} to {max(judged):.1%}" if judged else "undefined"


def so_many(runs: list[Run]) -> str:
    """Return how many runs there are, in words."""
    return "1 run" if len(runs) == 1 else f"{len(runs)} runs"


def both(values: list[float], digits: str) -> str:
    """Return mean and standard deviation over runs."""
    mean = format(statistics.fmean(values), digits)
    return mean if len(values) < 2 else f"{mean} ± {format(statistics.stdev(values), digits)}"
