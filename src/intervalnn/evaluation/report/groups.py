"""Groups: the runs in a folder, those that differ by their seed alone put together."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from intervalnn.evaluation.examples import ranked_by
from intervalnn.evaluation.records import Run
from intervalnn.evaluation.results import Results
from intervalnn.evaluation.statistics import DRAWS, Comparison
from intervalnn.files.printable import printable

__all__ = ["Found", "Group", "as_name", "as_reason", "as_text", "find", "flat"]

MEASURED = ("curves", "subjects")  # what settings hold that nobody chose
LONG = 60  # letters of a setting in a title
SETTING = 1000  # and of one among the others
REASON = 300
NAME = 150  # bytes of a file's name before its ending; file systems allow 255 in all


class Remembered(Results):
    """Results that compare the same two methods once only, since a bootstrap takes its time."""

    @cached_property
    def _compared(self) -> dict[tuple[Any, ...], Comparison]:
        return {}

    def compare(self, metric: str, first: str, second: str, *, draws: int = DRAWS, seed: int = 0) -> Comparison:
        """Compare two methods on the same samples; see :meth:`Results.compare`."""
        key = (metric, first, second, draws, seed)
        if key not in self._compared:
            self._compared[key] = Results.compare(self, metric, first, second, draws=draws, seed=seed)
        return self._compared[key]


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that differ by their seed alone.

    Attributes:
        title: What tells it from other groups.
        name: The same, as the name of a file.
        results: The runs, with the best method first.
        files: Theirs, in the same order.
        ranked_by: The metric that methods are ranked by; None if none says what is better.
    """

    title: str
    name: str
    results: Results
    files: tuple[Path, ...]
    ranked_by: str | None

    @property
    def first(self) -> Run:
        """The first run."""
        return self.results.runs[0]

    @property
    def ranked(self) -> list[str]:
        """The methods that have a value of the metric they are ranked by, the best first."""
        metric = self.ranked_by
        return [n for n in self.results.methods if metric and not math.isnan(self.results.spread(n, metric).mean)]

    @property
    def samples(self) -> int:
        """How many samples there are, of all runs."""
        return max((self.results.spread(self.results.methods[0], m).samples for m in self.results.metrics), default=0)

    def curves(self, kind: str) -> dict[str, list[Any]]:
        """Return the curves of one kind, by method: those of each run that has one."""
        found = {
            name: [_curves(run, name)[kind] for run in self.results.runs if _curves(run, name).get(kind)]
            for name in self.results.methods
        }
        return {name: each for name, each in found.items() if each}

    def limits(self, method: str, metric: str) -> tuple[float, float, float]:
        """Return the mean over runs and its 95 % limits, as samples are drawn anew; NaN where nothing is defined."""
        runs = [values[~np.isnan(values)] for values in self.results.per_run(method, metric)]
        runs = [values for values in runs if len(values)]
        if not runs:
            return (float("nan"),) * 3
        mean = statistics.fmean(float(values.mean()) for values in runs)
        varied = sum(float(values.var(ddof=1)) / len(values) for values in runs if len(values) > 1)
        reach = 1.96 * varied**0.5 / len(runs)
        return mean, mean - reach, mean + reach


@dataclass(frozen=True, eq=False)
class Found:
    """What a folder holds.

    Attributes:
        groups: The runs.
        others: Files that are no run, and why not.
    """

    groups: tuple[Group, ...]
    others: tuple[tuple[Path, str], ...]


def find(folder: Path) -> Found:
    """Return all runs below a folder, or the one in a file, in groups.

    The runs of a group share folder, coverage, methods and settings. Seeds and curves may differ, as may settings with
    the name of a metric, which were measured.
    """
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder}")
    together: dict[str, list[tuple[Path, Run]]] = {}
    others: list[tuple[Path, str]] = []
    for path in sorted(folder.rglob("*.json")) if folder.is_dir() else [folder]:
        try:
            run = Run.load(path)
            key = json.dumps([str(path.parent), sorted(run.methods), run.coverage, _chosen(run)], sort_keys=True)
        except (ValueError, TypeError, OSError, RecursionError) as error:
            others.append((path, as_reason(error.__cause__ or error)))
            continue
        if not run.methods:
            others.append((path, "a run without any method yet"))
            continue
        together.setdefault(key, []).append((path, run))
    titles = _titles(folder if folder.is_dir() else folder.parent, [members[0] for members in together.values()])
    groups = []
    for title, members in zip(titles, together.values(), strict=True):
        try:
            groups.append(_group(title, members))
        except Exception as error:  # whatever numbers do that nobody measured: one run does not cost the page
            others += [(path, as_reason(error)) for path, _ in members]
    if not groups:
        why = "".join(f"; {path.name}: {reason}" for path, reason in others[:3])
        raise FileNotFoundError(f"no runs in {folder}; make some, as with evaluate(...).save({str(folder)!r}){why}")
    return Found(tuple(_with_own_names(groups)), tuple(others))


def _group(title: str, members: Sequence[tuple[Path, Run]]) -> Group:
    runs = [run for _, run in members]
    metric = ranked_by(runs[0])
    results = Results(runs)
    if metric is not None and all(math.isnan(results.spread(name, metric).mean) for name in results.methods):
        metric = None
    if metric is not None:
        sign = 1.0 if runs[0].better[metric] == "lower" else -1.0
        means = {name: sign * results.spread(name, metric).mean for name in results.methods}
        order = sorted(means, key=lambda name: (math.isnan(means[name]), means[name]))
        runs = [replace(run, methods={name: run.methods[name] for name in order}) for run in runs]
    return Group(title, _as_file_name(title), Remembered(runs), tuple(path for path, _ in members), metric)


def _curves(run: Run, method: str) -> Mapping[str, Any]:
    found: Any = run.settings.get("curves")
    found = found.get(method) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


# --- what tells groups apart ---


def _chosen(run: Run) -> dict[str, Any]:
    """Return the settings that someone chose."""
    measured = {metric for method in run.methods.values() for metric in method.values}
    return {
        key: value for key, value in flat(run.settings).items() if key not in measured and not re.search("seeds?$", key)
    }


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings within settings as one level, without curves and subjects.

    Example:
        >>> flat({"noise": 0.1, "scale": {"name": "quick", "size": 64}, "curves": {"INN": {}}})
        {'noise': 0.1, 'scale.name': 'quick', 'scale.size': 64}
    """
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if key in MEASURED:
            continue
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _titles(folder: Path, firsts: Sequence[tuple[Path, Run]]) -> list[str]:
    """Return the folder of each group below the whole one, and the settings that tell it from its neighbours."""
    settings = [
        _chosen(run) | {"coverage": run.coverage, "methods": ", ".join(sorted(run.methods))} for _, run in firsts
    ]
    titles = []
    for (path, _), own in zip(firsts, settings, strict=True):
        beside = [s for (other, _), s in zip(firsts, settings, strict=True) if other.parent == path.parent]
        differ = [key for key in own if any(s.get(key) != own[key] for s in beside)]
        parts = [_shortened(f"{key} {as_text(own[key])}") for key in differ]
        where = path.parent.relative_to(folder).as_posix()
        titles.append(": ".join(filter(None, (where if where != "." else folder.resolve().name, ", ".join(parts)))))
    return titles


def as_name(name: str) -> str:
    """Return a name as a table has room for it."""
    return _shortened(printable(name))


def as_reason(error: BaseException) -> str:
    """Return why something could not be used, in one line that is not too long."""
    text = printable(error)
    ours = isinstance(error, ValueError | OSError) and text
    return _shortened(text if ours else f"{type(error).__name__}: {text}", REASON)


def as_text(value: Any) -> str:
    """Return a setting as a reader writes it, and not all of it where it is long."""
    return _shortened(f"{value:.6g}" if isinstance(value, float) else str(value), SETTING)


def _shortened(text: str, length: int = LONG) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _as_file_name(title: str) -> str:
    name = re.sub(r"[^\w.]+", "-", title).strip("-.").lower()
    return name.encode()[:NAME].decode(errors="ignore") or "runs"


def _with_own_names(groups: Sequence[Group]) -> list[Group]:
    """Return the groups with a number at the end of a name that another one has already."""
    found: list[Group] = []
    for group in groups:
        taken, name, number = {other.name for other in found}, group.name, 1
        while name in taken:
            number += 1
            name = f"{group.name}-{number}"
        found.append(replace(group, name=name))
    return found
