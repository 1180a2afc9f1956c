"""Records: what one run measured of each method, as plain values and as a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from intervalnn.files.limits import check_file
from intervalnn.files.whole import replacing

__all__ = ["Better", "Measured", "Run"]

FORMAT = "intervalnn results 1"
Better = Literal["lower", "higher"]


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
