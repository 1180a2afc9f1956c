"""Results: several runs of the same methods, and what they say together."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from intervalnn.evaluation.records import Measured, Run
from intervalnn.evaluation.statistics import (
    DRAWS,
    Comparison,
    Groups,
    Spread,
    Values,
    by_group,
    compared,
    compared_by,
    spread,
)
from intervalnn.evaluation.tables import STYLES, Cell, number
from intervalnn.files.printable import printable

__all__ = ["Comparison", "Measured", "Results", "Run", "Spread"]


@dataclass(frozen=True, slots=True)
class Results:
    """Several runs of the same methods.

    Attributes:
        runs: At least one.

    Example:
        >>> values = {"INN": {"mse": [1.0, 3.0]}, "other": {"mse": [2.0, 5.0]}}
        >>> run = Run({k: Measured(v, 0.1, 2.0) for k, v in values.items()}, 0.9, {"mse": "lower"})
        >>> print(Results([run]).table())
                       seconds  peak
        method    mse     each   MiB
        INN     2.000     0.10  2.00
        other   3.500     0.10  2.00
    """

    runs: list[Run]

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("results need at least one run")
        for run in self.runs[1:]:
            if run.methods.keys() != self.runs[0].methods.keys() or run.coverage != self.runs[0].coverage:
                raise ValueError("runs must have the same methods and the same coverage to be put into one table")

    def __repr__(self) -> str:
        return f"Results({len(self.runs)} run(s) of {', '.join(self.methods)}; print(results.table()) shows them)"

    @staticmethod
    def load(*paths: str | Path) -> Results:
        """Read files, or all ``*.json`` of folders."""
        files: list[Path] = []
        for path in map(Path, paths):
            files += sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not files:
            raise FileNotFoundError(f"no results (*.json) in {', '.join(map(str, paths)) or 'no folder at all'}")
        return Results([Run.load(path) for path in files])

    def save(self, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
        """Write one file per run into a folder."""
        return [
            run.save(Path(folder) / f"run-{index}-seed-{run.seed}.json", overwrite=overwrite)
            for index, run in enumerate(self.runs)
        ]

    def __add__(self, other: Results) -> Results:
        return Results(self.runs + other.runs)

    @property
    def methods(self) -> list[str]:
        """Names of the methods."""
        return list(self.runs[0].methods)

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics that any run has for any method."""
        found: dict[str, None] = {}
        for run in self.runs:
            for measured in run.methods.values():
                found |= dict.fromkeys(measured.values)
        return list(found)

    def per_run(self, method: str, metric: str) -> list[Values]:
        """Return the values of each run, one per sample; none where the method has no such metric."""
        if method not in self.methods:
            raise KeyError(f"there is no method {method!r}; there are {', '.join(self.methods)}")
        if metric not in self.metrics:
            raise KeyError(f"there is no metric {metric!r}; there are {', '.join(self.metrics)}")
        return [np.asarray(run.methods[method].values.get(metric, []), dtype=float) for run in self.runs]

    def spread(self, method: str, metric: str) -> Spread:
        """Return mean and standard deviation over runs."""
        return spread(self.per_run(method, metric))

    def by_group(self, method: str, metric: str, groups: Groups) -> dict[str, float]:
        """Return the mean of a metric for each group of samples, such as a subject, over all runs."""
        return by_group(self.per_run(method, metric), groups)

    def compare(self, metric: str, first: str, second: str, *, draws: int = DRAWS, seed: int = 0) -> Comparison:
        """Compare two methods on the same samples, by a bootstrap that draws samples within each run.

        The p-value is about other samples of the same runs. The bootstrap does not cover the variation between runs.
        """
        return compared(self._pairs(metric, first, second), draws=draws, seed=seed)

    def compare_by(
        self, groups: Groups, metric: str, first: str, second: str, *, draws: int = DRAWS, seed: int = 0
    ) -> Comparison:
        """Compare two methods by a bootstrap that draws groups, each with all of its samples in all runs.

        Take it where samples depend on each other, such as the slices of a subject.

        Args:
            groups: For each run the group of each sample.
            metric: By which metric.
            first: The one method.
            second: The other one.
            draws: How often to draw.
            seed: Of the draws.
        """
        return compared_by(self._pairs(metric, first, second), groups, draws=draws, seed=seed)

    def _pairs(self, metric: str, first: str, second: str) -> list[tuple[Values, Values]]:
        """Return the values of two methods for the same samples, run by run."""
        runs = list(zip(self.per_run(first, metric), self.per_run(second, metric), strict=True))
        for a, b in runs:
            if len(a) != len(b):
                raise ValueError(f"pairs are needed: {first} has {len(a)} values of {metric}, {second} {len(b)}")
        return runs

    def best(self, metric: str, *, level: float = 0.05) -> str | None:
        """Return the method that is better than every other one beyond chance; None if there is no such one.

        ``level`` is divided by the number of comparisons (Bonferroni), so that it holds for all of them together.
        """
        better = self.runs[0].better.get(metric)
        means = {name: self.spread(name, metric).mean for name in self.methods}
        means = {name: mean for name, mean in means.items() if not math.isnan(mean)}
        if better is None or len(means) < 2:
            return None
        chosen = (min if better == "lower" else max)(means, key=lambda name: means[name])
        others = [self.compare(metric, chosen, name).p for name in means if name != chosen]
        return chosen if all(p < level / len(others) for p in others) else None

    def table(
        self, metrics: Iterable[str] | None = None, *, style: Literal["text", "markdown", "latex"] = "text"
    ) -> str:
        """Return one row per method: mean ± standard deviation over runs, then seconds per sample and peak memory.

        The best method is marked where it is better beyond chance: by an asterisk, or in bold.
        """
        if not self.methods:
            raise ValueError("a table needs a method at least, and these runs have none")
        if style not in STYLES:
            raise ValueError(f"style must be one of {', '.join(map(repr, STYLES))}, got {style!r}")
        chosen = self.metrics if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
        best = {metric: self.best(metric) for metric in chosen}
        rows = [
            [Cell(self._text(name, metric), best[metric] == name) for metric in chosen]
            + [Cell(number(cost, digits)) for cost, digits in zip(self._costs(name), (2, 3), strict=True)]
            for name in self.methods
        ]
        names = [[Cell(printable(name)), *row] for name, row in zip(self.methods, rows, strict=True)]
        notes = self._notes(chosen, marked=any(best.values()), style=style)
        head = [printable(name) for name in ("method", *chosen, "seconds each", "peak MiB")]
        return STYLES[style](head, names, [printable(note) for note in notes])

    def _text(self, method: str, metric: str) -> str:
        measured = any(len(values) for values in self.per_run(method, metric))
        return str(self.spread(method, metric)) if measured else "-"

    def _costs(self, method: str) -> tuple[float, float]:
        each = [run.methods[method] for run in self.runs]
        return statistics.fmean(m.seconds for m in each), statistics.fmean(m.peak_mib for m in each)

    def _notes(self, metrics: list[str], *, marked: bool, style: str) -> list[str]:
        notes = []
        if len(self.runs) > 1:
            notes.append(f"Mean ± standard deviation over {len(self.runs)} runs.")
        if marked:
            mark = "*" if style == "text" else "Bold"
            notes.append(f"{mark}: better than all others that have a value, beyond chance on the same samples.")
        for metric in metrics:
            left_out = {name: self.spread(name, metric) for name in self.methods}
            parts = [f"{name} {s.undefined} of {s.samples}" for name, s in left_out.items() if s.undefined]
            notes += [f"{metric}: undefined and left out: {', '.join(parts)}"] if parts else []
        return notes

    def to_pandas(self) -> Any:
        """Return a data frame with one row per run, method, sample and metric; needs pandas."""
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas") from error
        return pd.DataFrame(
            [
                {"run": index, "seed": run.seed, "method": name, "sample": i, "metric": metric, "value": value}
                for index, run in enumerate(self.runs)
                for name, measured in run.methods.items()
                for metric, values in measured.values.items()
                for i, value in enumerate(values)
            ]
        )
