"""Figures: what a page of results shows of all methods together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from intervalnn.evaluation.report.groups import Group
from intervalnn.evaluation.report.style import COLORS, GRID, TARGET, figure, label, tidy
from intervalnn.evaluation.report.words import LEVEL, meaning, percent

__all__ = ["Line", "calibration", "coverage", "differences", "layers", "lines_of", "sparsification"]

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#888888")  # Okabe and Ito's, and grey
STROKES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))
SHOWN = 40  # parameters in one plot

Curves = Mapping[str, Sequence[Mapping[str, Any]]]


class Line(NamedTuple):
    """How a method is drawn: no two share both."""

    color: str
    stroke: Any


def lines_of(names: Sequence[str]) -> dict[str, Line]:
    """Return a line for each method: its own colour where it has one, else one that is least used."""
    used: list[str] = []
    found = {}
    for name in sorted(names, key=lambda n: n not in COLORS):  # their own colours first
        color = COLORS[name] if name in COLORS else min(PALETTE, key=used.count)
        found[name] = Line(color, STROKES[used.count(color) % len(STROKES)])
        used.append(color)
    return found


def coverage(group: Group) -> Any:
    """Draw the coverage of each method, as fitted and calibrated, with the middle 90 % of the samples as a line."""
    names, results = group.results.methods, group.results
    kinds = [
        (metric, kind, color, full, shift)
        for metric, kind, color, full, shift in (
            ("coverage", "as fitted", "#d55e00", False, -0.16),
            ("coverage at equal coverage", "calibrated", "#0072b2", True, 0.16),
        )
        if metric in results.metrics
    ]
    drawn = figure(6.4, 1.2 + 0.36 * len(names))
    axes = drawn.subplots()
    for metric, kind, color, full, shift in kinds:
        for place, name in enumerate(names):
            values = np.concatenate(results.per_run(name, metric))
            values = values[~np.isnan(values)]
            if not len(values):
                continue
            axes.plot(np.quantile(values, [0.05, 0.95]), [place + shift] * 2, color=color, lw=1.4, alpha=0.5)
            mean = results.spread(name, metric).mean
            face = color if full else "white"
            axes.plot(mean, place + shift, "o", ms=6, color=color, mfc=face, label=kind if place == 0 else None)
    axes.axvline(group.first.coverage, color=TARGET, lw=1, ls="--", label=f"promised, {percent(group.first.coverage)}")
    axes.set(xlabel="coverage: mean, and the middle 90 % of the samples", xlim=(None, 1.01))
    _named(axes, names)
    _legend_above(axes)
    return drawn


def differences(group: Group) -> Any:
    """Draw how much worse each method is than the first on the same samples, with 95 % intervals."""
    results, metric = group.results, group.ranked_by
    assert metric is not None
    leader, *others = group.ranked
    base = results.spread(leader, metric).mean
    unit, where = (base / 100, f"in % of {base:.3g}") if 0 < base < math.inf else (1.0, f"from {base:.3g}")
    drawn = figure(6.4, 1.2 + 0.36 * len(others))
    axes = drawn.subplots()
    for place, name in enumerate(others):
        found = results.compare(metric, name, leader)
        sure = found.p < LEVEL / len(others)
        color = "#0072b2" if sure else "#888888"
        axes.plot([found.lower / unit, found.upper / unit], [place] * 2, color=color, lw=2.4, solid_capstyle="butt")
        axes.plot(found.difference / unit, place, "o", ms=6, color=color, mfc=color if sure else "white")
    axes.axvline(0.0, color=TARGET, lw=1, ls="--")
    axes.set(xlabel=f"difference in {label(meaning(metric).name)}, {where}, that of {label(leader)}")
    _named(axes, others)
    return drawn


def calibration(curves: Curves, lines: Mapping[str, Line]) -> Any:
    """Draw the share found inside against the share promised, at several levels."""
    drawn = figure(6.4, 4.2)
    axes = drawn.subplots()
    axes.plot([0, 1], [0, 1], color=TARGET, lw=1, ls="--", label="promise kept")
    for name, runs in curves.items():
        color, stroke = lines[name]
        axes.plot(*_over_runs(runs, "levels", "shares"), color=color, ls=stroke, lw=1.8, label=label(name))
    axes.set(xlabel="share promised to lie inside", ylabel="share found inside", xlim=(0, 1), ylim=(0, 1.01))
    _legend_beside(axes)
    return drawn


def sparsification(curves: Curves, lines: Mapping[str, Line]) -> Any:
    """Draw how the error falls as the most uncertain components are removed."""
    drawn = figure(6.4, 4.2)
    axes = drawn.subplots()
    for place, (name, runs) in enumerate(curves.items()):
        color, stroke = lines[name]
        axes.plot(*_over_runs(runs, "removed", "by_score"), color=color, ls=stroke, lw=1.8, label=label(name))
        once = "largest errors first" if place == 0 else None
        axes.plot(*_over_runs(runs, "removed", "oracle"), color="#999999", lw=0.9, zorder=1, label=once)
    axes.set(xlabel="share of components removed, most uncertain first", ylabel="error of the rest, over that of all")
    axes.set(xlim=(0, 1), ylim=(0, None))
    _legend_beside(axes)
    return drawn


def layers(curves: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]]) -> Any:
    """Draw the share of each parameter in the width of the bounds, one panel per method, a dot per run.

    Of many parameters those with the largest shares are drawn, in the order of the model.
    """
    shares = {name: _shares(runs) for name, runs in curves.items()}
    rows = max(len(each) for each in shares.values())
    drawn = figure(6.4 * len(shares), 1.1 + 0.24 * rows)
    panels = drawn.subplots(1, len(shares), squeeze=False)[0]
    for axes, (name, found) in zip(panels, shares.items(), strict=True):
        means = [float(np.nanmean(each)) if len(each) else 0.0 for each in found.values()]
        axes.barh(range(len(found)), means, color="#56b4e9", height=0.7)
        for place, each in enumerate(found.values()):
            axes.plot(each, [place] * len(each), "o", ms=3, color="#0072b2", alpha=0.8)
        axes.set(title=label(name), xlabel="share in the width of the bounds", xlim=(0, None))
        _named(axes, list(found), size=8)
    return drawn


def _shares(runs: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for rows in runs:
        for row in rows:
            found.setdefault(row["name"], []).append(math.nan if row["share"] is None else float(row["share"]))
    largest = sorted(found, key=lambda name: -sum(found[name]))[:SHOWN]
    return {name: found[name] for name in found if name in largest}


def _over_runs(runs: Sequence[Mapping[str, Any]], x: str, y: str) -> tuple[Sequence[float], Any]:
    """Return the places of the first run, and the mean over the runs that have the same; None is undefined."""
    same = [np.array(run[y], dtype=float) for run in runs if run[x] == runs[0][x]]
    return runs[0][x], np.ma.masked_invalid(np.stack(same)).mean(0)


def _named(axes: Any, names: Sequence[str], size: int = 9) -> None:
    """Write names beside the rows, the first at the top."""
    axes.set_yticks(range(len(names)), [label(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="x", color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    tidy(axes)
    axes.tick_params(axis="y", length=0, labelsize=size)


def _legend_above(axes: Any) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False, fontsize=9)


def _legend_beside(axes: Any) -> None:
    axes.grid(color=GRID, lw=0.6)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    tidy(axes)
