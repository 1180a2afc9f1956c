"""Comparison: the table of all methods and metrics, for the page and as Markdown and LaTeX."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any, NamedTuple

from intervalnn.evaluation.report import words
from intervalnn.evaluation.report.groups import Group
from intervalnn.files.whole import replacing

__all__ = ["Cell", "Column", "columns_of", "glossary", "table", "write_tables"]


class Column(NamedTuple):
    """One metric: its name in the results, what it means, and where the better values lie."""

    metric: str
    meaning: words.Meaning
    better: str | None


class Cell(NamedTuple):
    """A number as the results write it, in two parts, and as it is."""

    mean: str
    spread: str
    value: float | None
    best: bool


def columns_of(group: Group) -> list[Column]:
    """Return the metrics by kind, the one that ranks first among its own."""
    found = [Column(m, words.meaning(m), group.first.better.get(m)) for m in group.results.metrics]
    return sorted(found, key=lambda c: (words.KINDS.index(c.meaning.kind), c.metric != group.ranked_by))


def table(group: Group) -> dict[str, Any]:
    """Return columns, kinds of columns, rows, and what is undefined."""
    results, columns = group.results, columns_of(group)
    best = {column.metric: results.best(column.metric) for column in columns}
    rows = []
    for name in results.methods:
        cells = [_cell(group, name, column.metric, best[column.metric] == name) for column in columns]
        measured = [run.methods[name] for run in results.runs]
        seconds = statistics.fmean(each.seconds for each in measured)
        memory = statistics.fmean(each.peak_mib for each in measured)
        rows.append((name, [*cells, _cost(1e3 * seconds), _cost(memory)]))
    kinds = [(kind, sum(c.meaning.kind == kind for c in columns)) for kind in words.KINDS]
    undefined = [
        f"{words.meaning(m).name}: {name}, {spread.undefined} of {spread.samples} samples"
        for m in results.metrics
        for name in results.methods
        if (spread := results.spread(name, m)).undefined
    ]
    return {"columns": columns, "kinds": [k for k in kinds if k[1]], "rows": rows, "undefined": undefined}


def _cell(group: Group, method: str, metric: str, best: bool) -> Cell:
    spread = group.results.spread(method, metric)
    if not spread.samples:
        return Cell("–", "", None, False)
    mean, _, sd = str(spread).partition(" ± ")
    return Cell(mean, f"± {sd}" if sd else "", None if math.isnan(spread.mean) else spread.mean, best)


def _cost(value: float) -> Cell:
    return Cell(f"{value:.0f}" if value >= 100 else f"{value:.3g}", "", value, False)


def write_tables(group: Group, folder: Path) -> list[str]:
    """Write the table as Markdown and as LaTeX, and return where, for a page beside the folder."""
    metrics = [column.metric for column in columns_of(group)]
    written = []
    texts = {".md": group.results.table(metrics, style="markdown"), ".tex": group.results.table(metrics, style="latex")}
    for suffix, text in texts.items():
        path = folder / f"{group.name}{suffix}"
        with replacing(path) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
        written.append(f"{folder.name}/{path.name}")
    return written


def glossary(groups: tuple[Group, ...]) -> list[Column]:
    """Return the metrics of all groups that there is something to say about."""
    found = {column.metric: column for group in groups for column in columns_of(group)}
    return [column for column in found.values() if column.meaning.text]
