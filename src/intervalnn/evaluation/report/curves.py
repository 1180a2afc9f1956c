"""Curves: what changes with a threshold, a noise or a factor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from intervalnn.evaluation.report.style import COLORS, GRID, TARGET, figure, label, tidy

__all__ = ["direction", "lines", "markov", "pooled"]


def direction(curves: Mapping[str, Sequence[Mapping[str, Sequence[float]]]], title: str) -> Any:
    """Draw accuracy and share kept against the threshold, one panel per method, a faint line per run.

    The dashed line is the rate of the more frequent direction, which is what accuracy has to beat.
    """
    drawn = figure(4.2 * len(curves), 3.6)
    panels = drawn.subplots(1, len(curves), sharey=True, squeeze=False)[0]
    accuracies = [value for runs in curves.values() for value in pooled(runs, "accuracy") if not math.isnan(value)]
    least = min(0.4, math.floor(10 * min(accuracies, default=1.0)) / 10)
    for axes, (name, runs) in zip(panels, curves.items(), strict=True):
        x = runs[0]["thresholds"]
        right = axes.twinx()
        for key, on, color in (
            ("accuracy", axes, "#d55e00"),
            ("kept", right, "#0072b2"),
            ("majority", axes, "#888888"),
        ):
            for each in runs if len(runs) > 1 else ():
                on.plot(x, pooled([each], key), color=color, lw=0.6, alpha=0.4)
            on.plot(x, pooled(runs, key), color=color, lw=2, ls="--" if key == "majority" else "-")
        low, high = pooled(runs, "lower_over_samples"), pooled(runs, "upper_over_samples")
        axes.fill_between(x, low, high, color="#d55e00", alpha=0.2, lw=0)
        axes.set(title=label(name), xlabel="larger gap over smaller gap, at least", xscale="log", ylim=(least, 1.0))
        axes.set_xticks([1, 2, 5, 10], ["1", "2", "5", "10"])
        axes.minorticks_off()
        right.set_ylim(0, 1)
        axes.tick_params(axis="y", labelcolor="#d55e00")
        right.tick_params(axis="y", labelcolor="#0072b2", labelsize=8, labelright=axes is panels[-1])
        tidy(axes)
        right.spines[["top"]].set_visible(False)
        if axes is panels[0]:
            axes.set_ylabel("share of right directions\n(dashed: more frequent side)", color="#d55e00", fontsize=9)
        if axes is panels[-1]:
            right.set_ylabel("share of components kept", color="#0072b2", fontsize=9)
    drawn.suptitle(title, fontsize=11)
    return drawn


def pooled(runs: Sequence[Mapping[str, Sequence[float | None]]], key: str) -> list[float]:
    """Return a curve of the direction over all runs, each weighing as many components as it kept.

    Runs are weighted by their number of components. Undefined values (None in files) are left out; if all are
    undefined, the result is NaN.
    """
    columns = zip(*(zip(run[key], _weights(run, key), strict=True) for run in runs), strict=True)
    defined = ([(v, w) for v, w in column if v is not None and not math.isnan(v) and w] for column in columns)
    return [sum(v * w for v, w in pairs) / sum(w for _, w in pairs) if pairs else math.nan for pairs in defined]


def _weights(run: Mapping[str, Sequence[float | None]], key: str) -> Sequence[float | None]:
    return [1.0] * len(run["kept"]) if key == "kept" else run["kept"]


def lines(x: Sequence[float], series: Mapping[str, Sequence[Sequence[float]]], *, xlabel: str, ylabel: str) -> Any:
    """Draw the mean over runs of each series, and its spread as a band, with names at the end of the lines."""
    drawn = figure(7.2, 4.2)
    axes = drawn.subplots()
    for name, runs in series.items():
        columns = list(zip(*runs, strict=True))
        mean = [sum(column) / len(column) for column in columns]
        color = COLORS.get(name, "#888888")
        axes.plot(x, mean, color=color, marker="o", ms=4, lw=2, label=name)
        axes.fill_between(x, [min(c) for c in columns], [max(c) for c in columns], color=color, alpha=0.2, lw=0)
    axes.set(xlabel=xlabel, ylabel=ylabel, yscale="log", xticks=list(x))
    axes.grid(axis="y", color=GRID, lw=0.5)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
    tidy(axes)
    return drawn


def markov(curves: Mapping[str, Mapping[str, Sequence[float]]], title: str) -> Any:
    """Draw the coverage found beside the one promised, for bounds moved out by multiples of beta."""
    drawn = figure(6.4, 4.0)
    axes = drawn.subplots()
    styles = {"train": "-", "validation": "--", "test": ":"}
    for name, curve in curves.items():
        kind, _, split = name.rpartition(", ")
        color, how = ("#0072b2", "with offsets") if "offsets" in kind else ("#56b4e9", "as fitted")
        axes.plot(
            curve["factors"], curve["inside"], color=color, ls=styles[split], lw=1.8, label=f"found, {how}, {split}"
        )
    first = next(iter(curves.values()))
    axes.plot(first["factors"], first["promised"], color=TARGET, lw=2, label="promised, 1 - 1/λ")
    axes.set(xscale="log", xlabel="λ: bounds moved out by λβ", ylabel="share of targets inside", title=title)
    axes.set_xticks(list(first["factors"]), [f"{f:g}" for f in first["factors"]])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=8)
    tidy(axes)
    return drawn
