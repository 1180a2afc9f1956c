"""Results: plain records of what was measured, one file per run, and what they say together."""

from __future__ import annotations

import json
import math
import re
import statistics
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from intervalnn.files.limits import check_file
from intervalnn.files.printable import printable
from intervalnn.files.whole import replacing

__all__ = ["Comparison", "Measured", "Results", "Run", "Spread"]

FORMAT = "intervalnn results 1"
DRAWS = 10_000  # of the bootstrap
Better = Literal["lower", "higher"]


class Spread(NamedTuple):
    """A metric of a method over runs.

    Attributes:
        mean: Mean over runs of the mean over samples; NaN where no sample has a value.
        sd: Standard deviation over runs; NaN if there is just one.
        undefined: How many samples have no value and were left out, of all runs.
        samples: How many samples there are, of all runs.
    """

    mean: float
    sd: float
    undefined: int
    samples: int

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "undefined"
        return _number(self.mean, 4) + ("" if math.isnan(self.sd) else f" ± {_number(self.sd, 2)}")


class Comparison(NamedTuple):
    """How much larger a metric is for one method than for another, on the same samples.

    Attributes:
        difference: The first method's mean minus the second's.
        lower: Lower end of the interval that holds the true difference with 95 % confidence.
        upper: Upper end of it.
        p: How often resampled samples would give a difference of the other sign, both sides; and no less
            than the chance that as many coins fall on one side.
        pairs: How many samples have a value for both.
    """

    difference: float
    lower: float
    upper: float
    p: float
    pairs: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run measured of one method.

    Attributes:
        values: One number per sample for each metric; NaN where it is undefined.
        seconds: Wall time of ``predict``, for each sample.
        peak_mib: How far memory rose during ``predict`` of one batch.
        factors: What calibration on the held-out split scaled the gaps by; None without one.
    """

    values: dict[str, list[float]]
    seconds: float
    peak_mib: float
    factors: list[float] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One run: every method on the same samples.

    Attributes:
        methods: What was measured of each.
        coverage: The coverage at which methods are compared.
        better: Whether lower or higher is better, for metrics that can say.
        seed: What tells this run from others.
        settings: Whatever else made it.
        versions: Of the software and the machine.
    """

    methods: dict[str, Measured]
    coverage: float
    better: dict[str, Better]
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write it as JSON, whole or not at all; an undefined value becomes null."""
        path = Path(path)
        if path.exists() and not overwrite:
            raise FileExistsError(f"{path} exists; choose another name, or say overwrite=True")
        text = json.dumps({"format": FORMAT} | _plain(asdict(self)), indent=1, allow_nan=False)
        with replacing(path) as temporary:
            temporary.write_text(text)
        return path

    @staticmethod
    def load(path: str | Path) -> Run:
        """Read a file that :meth:`save` has written."""
        check_file(Path(path))
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
            if content.pop("format") != FORMAT:
                raise ValueError("another format")
            methods = {name: _measured(**each) for name, each in content.pop("methods").items()}
            return _checked(Run(methods=methods, **content))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"{path} is not a file of results that this version can read: {error}") from error


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

    def per_run(self, method: str, metric: str) -> list[np.ndarray[Any, Any]]:
        """Return the values of each run, one per sample; none where the method has no such metric."""
        if method not in self.methods:
            raise KeyError(f"there is no method {method!r}; there are {', '.join(self.methods)}")
        if metric not in self.metrics:
            raise KeyError(f"there is no metric {metric!r}; there are {', '.join(self.metrics)}")
        return [np.asarray(run.methods[method].values.get(metric, []), dtype=float) for run in self.runs]

    def spread(self, method: str, metric: str) -> Spread:
        """Return mean and standard deviation over runs."""
        values = self.per_run(method, metric)
        means = [float(np.mean(v[~np.isnan(v)])) for v in values if not np.isnan(v).all()]
        undefined, samples = sum(int(np.isnan(v).sum()) for v in values), sum(len(v) for v in values)
        mean = statistics.fmean(means) if means else math.nan
        sd = statistics.stdev(means) if len(means) > 1 and math.isfinite(mean) else math.nan
        return Spread(mean, sd, undefined, samples)

    def compare(self, metric: str, first: str, second: str, *, draws: int = DRAWS, seed: int = 0) -> Comparison:
        """Compare two methods on the same samples, by a bootstrap that draws samples within each run.

        It tells whether the difference would hold for other samples, of the same runs; it knows
        nothing of other runs than those that were made.
        """
        rng, shift, total, pairs = np.random.default_rng(seed), np.zeros(draws), [], 0
        for a, b in zip(self.per_run(first, metric), self.per_run(second, metric), strict=True):
            if len(a) != len(b):
                raise ValueError(f"pairs are needed: {first} has {len(a)} values of {metric}, {second} {len(b)}")
            both = a - b
            both = both[~np.isnan(both)]
            if not len(both):
                continue
            pairs += len(both)
            total.append(float(both.mean()))
            shift += _resampled_means(both, draws, rng)
        if not total:
            return Comparison(math.nan, math.nan, math.nan, math.nan, 0)
        shift /= len(total)
        lower, upper = np.quantile(shift, [0.025, 0.975], method="inverted_cdf")  # infinite ones, too
        beyond = min(float((shift <= 0).mean()), float((shift >= 0).mean()))
        fewest = max(1 / draws, 2.0 ** (1 - pairs))  # differences of one sign, by chance
        p = min(1.0, max(2 * beyond, fewest))
        return Comparison(statistics.fmean(total), float(lower), float(upper), p, pairs)

    def best(self, metric: str, *, level: float = 0.05) -> str | None:
        """Return the method that is better than every other one beyond chance; None if there is no such one.

        ``level`` is divided by the number of comparisons, so that it holds for all of them together.
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
        if style not in _STYLES:
            raise ValueError(f"style must be one of {', '.join(map(repr, _STYLES))}, got {style!r}")
        chosen = self.metrics if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
        best = {metric: self.best(metric) for metric in chosen}
        rows = [
            [_Cell(self._text(name, metric), best[metric] == name) for metric in chosen]
            + [_Cell(_number(cost, digits)) for cost, digits in zip(self._costs(name), (2, 3), strict=True)]
            for name in self.methods
        ]
        names = [[_Cell(printable(name)), *row] for name, row in zip(self.methods, rows, strict=True)]
        notes = self._notes(chosen, marked=any(best.values()), style=style)
        head = [printable(name) for name in ("method", *chosen, "seconds each", "peak MiB")]
        return _STYLES[style](head, names, [printable(note) for note in notes])

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


def _resampled_means(values: np.ndarray[Any, Any], draws: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return the means of as many samples drawn with replacement, a few draws at a time."""
    n, sizes = len(values), [min(500, draws - start) for start in range(0, draws, 500)]
    return np.concatenate([values[rng.integers(0, n, (size, n))].mean(1) for size in sizes])


def _number(value: float, digits: int) -> str:
    """Return a number with so many significant digits, zeros at the end among them, and all before the point.

    Example:
        >>> [_number(value, 4) for value in (0.9, 12.0, 123456.7, 1.2e-7, math.inf)]
        ['0.9000', '12.00', '123457', '1.200e-07', 'inf']
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    text = f"{value:#.{digits}g}".removesuffix(".")
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e6 else text


class _Cell(NamedTuple):
    text: str
    best: bool = False


def _text(head: list[str], rows: list[list[_Cell]], notes: list[str]) -> str:
    """Return columns of equal width, with long names above each other, and a place for the mark."""
    columns = list(zip(*rows, strict=True))
    marked = [any(cell.best for cell in column) for column in columns]
    cells = [[c.text + (" *" if c.best else "  " if m else "") for c, m in zip(r, marked, strict=True)] for r in rows]
    widest = [max(len(row[i]) for row in cells) for i in range(len(head))]
    names = [textwrap.wrap(name, max(w, *map(len, name.split()), 1)) for name, w in zip(head, widest, strict=True)]
    height = max(map(len, names))
    whole = [*zip(*([""] * (height - len(name)) + name for name in names), strict=True), *cells]
    widths = [max(len(row[i]) for row in whole) for i in range(len(head))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in whole
    ]
    return "\n".join([*lines, *notes])


def _markdown(head: list[str], rows: list[list[_Cell]], notes: list[str]) -> str:
    cells = [[f"**{cell.text}**" if cell.best else cell.text for cell in row] for row in rows]
    safe = str.maketrans({"\\": "&#92;", "|": r"\|", "<": "&lt;"} | {c: f"&#{ord(c)};" for c in "&`[]$~"})
    lines = ["| " + " | ".join(cell.translate(safe) for cell in row) + " |" for row in [head, *cells]]
    lines.insert(1, "| --- |" + " ---: |" * (len(head) - 1))
    return "\n".join([*lines, *("\n" + note for note in notes)])


def _latex(head: list[str], rows: list[list[_Cell]], notes: list[str]) -> str:
    lines = [r"\begin{tabular}{l" + "r" * (len(head) - 1) + "}", r"\hline"]
    lines += [" & ".join(map(_escaped, head)) + r" \\", r"\hline"]
    lines += [" & ".join([_escaped(row[0].text), *map(_formula, row[1:])]) + r" \\" for row in rows]
    lines += [r"\hline", *(rf"\multicolumn{{{len(head)}}}{{l}}{{{_escaped(note)}}} \\" for note in notes)]
    return "\n".join([*lines, r"\end{tabular}"])


def _formula(cell: _Cell) -> str:
    """Return a number as LaTeX, whose bold letters do not reach into a formula from outside."""
    if not cell.text.strip("-") or cell.text == "undefined":
        return cell.text.replace("-", "--")
    bold = r"\mathbf{%s}" if cell.best else "%s"
    parts = (re.sub(r"e([+-]\d+)$", lambda e: rf" \cdot 10^{{{int(e[1])}}}", part) for part in cell.text.split(" ± "))
    return "$" + r" \pm ".join(bold % part.replace("inf", r"\infty") for part in parts) + "$"


def _escaped(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
    special |= {c: f"${c}$" for c in "<>|"} | {c: "\\" + c for c in "_%&#{}$"}
    return "".join(special.get(c, c) for c in text)


_STYLES: Mapping[str, Callable[[list[str], list[list[_Cell]], list[str]], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
}


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)  # "inf", which float() reads back
    if isinstance(value, np.generic):
        return _plain(value.item())
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _measured(values: Any, seconds: Any, peak_mib: Any, factors: Any = None) -> Measured:
    """Return what was measured from what :func:`_plain` made of it."""
    by_metric = {name: _numbers(each) for name, each in values.items()}
    (each, peak), scaled = _numbers([seconds, peak_mib]), None if factors is None else _numbers(factors)
    return Measured(by_metric, each, peak, scaled)


def _checked(run: Run) -> Run:
    """Return a run as it is, if its parts are of the kinds that they must be."""
    if type(run.seed) is not int or type(run.coverage) not in (int, float) or not 0 <= run.coverage <= 1:
        raise ValueError("it must have a seed and a coverage between 0 and 1")
    if not all(isinstance(part, dict) for part in (run.better, run.settings, run.versions)):
        raise ValueError("better, settings and versions must be tables")
    for metric in {name for measured in run.methods.values() for name in measured.values}:
        counts = {len(measured.values[metric]) for measured in run.methods.values() if metric in measured.values}
        if len(counts) > 1:
            raise ValueError(f"{metric} must have as many values for each method, got {sorted(counts)}")
    if not all(each in get_args(Better) for each in run.better.values()):
        raise ValueError(f"better must be lower or higher, got {run.better}")
    return run


def _numbers(values: list[Any]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]
