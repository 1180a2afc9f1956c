"""Results: plain records of what was measured, one file per run, and what they say together."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

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
        return f"{self.mean:.4g}" if math.isnan(self.sd) else f"{self.mean:.4g} ± {self.sd:.2g}"


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
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".part")
        temporary.write_text(json.dumps({"format": FORMAT} | _plain(asdict(self)), indent=1, allow_nan=False))
        temporary.replace(path)
        return path

    @staticmethod
    def load(path: str | Path) -> Run:
        """Read a file that :meth:`save` has written."""
        try:
            content = json.loads(Path(path).read_text())
            if content.pop("format") != FORMAT:
                raise ValueError("another format")
            methods = {
                name: Measured(**each | {"values": {k: _numbers(v) for k, v in each["values"].items()}})
                for name, each in content.pop("methods").items()
            }
            return Run(methods=methods, **content)
        except FileNotFoundError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
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
        method  mse  seconds  MiB
        INN       2      0.1    2
        other   3.5      0.1    2
    """

    runs: list[Run]

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("results need at least one run")
        for run in self.runs[1:]:
            if list(run.methods) != list(self.runs[0].methods) or run.coverage != self.runs[0].coverage:
                raise ValueError("runs must have the same methods and the same coverage to be put into one table")

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
        """Names of the metrics that every run has for any method."""
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
        lower, upper = np.quantile(shift, [0.025, 0.975])
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
        return chosen if max(others) < level / len(others) else None

    def table(
        self, metrics: Iterable[str] | None = None, *, style: Literal["text", "markdown", "latex"] = "text"
    ) -> str:
        """Return one row per method: mean ± standard deviation over runs, then time per sample and peak memory.

        The best method is marked where it is better beyond chance: by an asterisk, or in bold.
        """
        chosen = self.metrics if metrics is None else list(metrics)
        best = {metric: self.best(metric) for metric in chosen}
        rows = [["method", *chosen, "seconds", "MiB"]]
        for name in self.methods:
            cells = [self._cell(name, metric, best[metric] == name, style) for metric in chosen]
            each = [run.methods[name] for run in self.runs]
            seconds, peak = (statistics.fmean(x) for x in ([m.seconds for m in each], [m.peak_mib for m in each]))
            rows.append([name, *cells, f"{seconds:.2g}", f"{peak:.3g}"])
        notes = [self._note(metric) for metric in chosen]
        return _STYLES[style](rows, [note for note in notes if note])

    def _cell(self, method: str, metric: str, best: bool, style: str) -> str:
        if not any(len(values) for values in self.per_run(method, metric)):
            return "-"
        text = str(self.spread(method, metric))
        if style == "latex":
            text = f"${text.replace('±', chr(92) + 'pm')}$" if text != "undefined" else text
            return rf"\textbf{{{text}}}" if best else text
        return text if not best else f"**{text}**" if style == "markdown" else f"{text} *"

    def _note(self, metric: str) -> str:
        left_out = {name: self.spread(name, metric) for name in self.methods}
        parts = [f"{name} {s.undefined} of {s.samples}" for name, s in left_out.items() if s.undefined]
        return f"{metric}: undefined and left out: {', '.join(parts)}" if parts else ""

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


def _text(rows: list[list[str]], notes: list[str]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    return "\n".join([*lines, *notes])


def _markdown(rows: list[list[str]], notes: list[str]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]
    lines.insert(1, "| " + " | ".join(["---"] * len(rows[0])) + " |")
    return "\n".join([*lines, *("\n" + note for note in notes)])


def _latex(rows: list[list[str]], notes: list[str]) -> str:
    def safe(text: str) -> str:
        return "".join("\\" + c if c in "_%&#{}" else c for c in text)

    head, *body = [[safe(row[0]), *row[1:]] for row in rows]
    head = [head[0], *map(safe, head[1:])]
    lines = [r"\begin{tabular}{l" + "r" * (len(head) - 1) + "}", r"\hline", " & ".join(head) + r" \\", r"\hline"]
    lines += [" & ".join(row) + r" \\" for row in body]
    return "\n".join([*lines, r"\hline", r"\end{tabular}", *("% " + note for note in notes)])


_STYLES: Mapping[str, Callable[[list[list[str]], list[str]], str]] = {
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
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _numbers(values: list[Any]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]
