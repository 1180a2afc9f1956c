"""Levels: numbers as 16-bit levels, a slice at a time, the way the browser takes them.

Value, bounds and target of a slice share one even grid, so rounding keeps ``lower <= point <= upper``. The score
has one grid for all slices, finer where scores are small, and is rounded up: ``score > grid[k]`` holds exactly
where its level is above ``k``, and so shares flagged at a threshold on the grid are exact.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intervalnn.files.printable import printable
from intervalnn.view.record import Array, Record

__all__ = ["LAST", "NO_NUMBER", "Levels"]

LAST = 65534  # the highest level of a number
NO_NUMBER = 65535  # for what is not finite: above every threshold, and painted in no colour
SEEN = 32  # slices looked at to choose colour ranges
UNIT, PROMISE = 16, 1000  # characters that are shown of these
STEP = 4  # and every so many rows and columns of these

Packed = NDArray[np.uint16]


class Levels:
    """A record as levels.

    Attributes:
        record: What is shown.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self._lock = threading.Lock()
        self._counts: bytes | None = None

    @cached_property
    def top(self) -> float:
        """The largest finite score."""
        tops = (_highest(self.record.at(i)["score"]) for i in range(self.record.slices))
        return max(0.0, *tops)

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The score of each level; the browser computes the same numbers by the same operations."""
        share = np.arange(LAST + 1) / LAST
        return self.top * (share * share * share)

    @np.errstate(invalid="ignore", over="ignore")
    def meta(self, title: str) -> dict[str, Any]:
        """Return what the page must know before the first slice, as JSON can hold it."""
        record = self.record
        rows, columns = record.size
        return {
            "title": title,
            "kind": "image" if record.dims == 2 else "signal",
            "slices": record.slices,
            "leading": record.leading,
            "numbers": record.numbers,
            "rows": rows,
            "columns": columns,
            "origin": record.origin,
            "channels": list(record.at(0)),
            "unit": _short(record.unit, UNIT),
            "promise": _short(record.promise, PROMISE),
            "spacing": record.spacing,
            "sides": record.sides,
            "scoreTop": self.top,
            "scoreIsWidth": record.score_is_width,
            "ranges": self._ranges(),
        }

    @np.errstate(invalid="ignore", over="ignore")
    def packed(self, i: int) -> bytes:
        """Return one slice: five 64-bit floats, then each channel in 16 bits, all little-endian.

        The floats are offset and step of the grid of values, offset and step of the grid of the input, and the
        share of targets inside the bounds.
        """
        shown = self.record.at(i)
        values = [shown[name] for name in ("point", "lower", "upper", "target") if name in shown]
        head = [*_grid(values), *_grid([shown["input"]] if "input" in shown else []), _inside(shown)]
        parts = [np.array(head, dtype="<f8").tobytes()]
        for name, array in shown.items():
            if name == "score":
                packed = self.score_levels(array)
            elif name == "direction":
                packed = _even(array, -1.0, 2.0 / LAST)
            else:
                packed = _even(array, *(head[2:4] if name == "input" else head[:2]))
            parts.append(packed.astype("<u2").tobytes())
        return b"".join(parts)

    def score_levels(self, score: Array) -> Packed:
        """Return the lowest level of the grid that is not below each score."""
        finite = np.isfinite(score)
        score = np.where(finite, score, 0)
        level = np.clip(np.ceil(np.cbrt(score / (self.top or 1.0)) * LAST), 0, LAST).astype(np.int32)
        level += self.grid[level] < score  # where rounding in the root left it one too low
        level -= (level > 0) & (self.grid[level - 1] >= score)  # or one too high
        return np.where(finite, level, NO_NUMBER).astype(np.uint16)

    def counts(self) -> bytes:
        """Return how many scores of all slices have each of the 65536 levels, as 32-bit integers."""
        with self._lock:  # once, however many ask
            if self._counts is None:
                total = np.zeros(NO_NUMBER + 1, dtype=np.uint32)
                for i in range(self.record.slices):
                    levels = self.score_levels(self.record.at(i)["score"])
                    total += np.bincount(levels.ravel(), minlength=NO_NUMBER + 1).astype(np.uint32)
                self._counts = total.astype("<u4").tobytes()
        return self._counts

    def _ranges(self) -> dict[str, list[float]]:
        """Return colour ranges that leave out the few largest and smallest numbers of some slices."""
        picked = np.unique(np.linspace(0, self.record.slices - 1, SEEN).round().astype(int))
        thin = slice(None, None, STEP if min(self.record.size) > STEP else None)
        seen = [{name: part[thin, thin] for name, part in self.record.at(int(i)).items()} for i in picked]
        ranges = {"value": _range([part["point"] for part in seen], 0.5, 99.5)}
        ranges["score"] = [0.0, _range([part["score"] for part in seen], 0, 99.5)[1]]
        ranges["flag"] = _range([part["score"] for part in seen], 0, 95)[1:]
        if "target" in seen[0]:
            errors = [np.abs(part["target"] - part["point"]) for part in seen]
            ranges["error"] = [0.0, _range(errors, 0, 99.5)[1]]
        if "input" in seen[0]:
            ranges["input"] = _range([part["input"] for part in seen], 0.5, 99.5)
        return ranges


def _short(text: str, length: int) -> str:
    text = printable(text)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _grid(arrays: list[Array]) -> tuple[float, float]:
    """Return offset and step of an even grid over all finite numbers of some arrays."""
    lows = [float(array.min(where=np.isfinite(array), initial=np.inf)) for array in arrays]
    offset, top = min(lows, default=np.inf), max(map(_highest, arrays), default=-np.inf)
    return (offset, (top - offset) / LAST) if offset <= top else (0.0, 0.0)


def _even(array: Array, offset: float, step: float) -> Packed:
    """Return the nearest levels; each operation keeps the order, so what is not above stays not above."""
    with np.errstate(invalid="ignore"):  # what is not finite is set after
        level = np.rint((array - offset) * (1.0 / step if step else 0.0))
        packed: Packed = np.clip(level, 0, LAST).astype(np.uint16)
    packed[~np.isfinite(array)] = NO_NUMBER
    return packed


def _highest(array: Array) -> float:
    return float(array.max(where=np.isfinite(array), initial=-np.inf))


def _inside(shown: dict[str, Array]) -> float:
    if "target" not in shown:
        return float("nan")
    return float(np.mean((shown["lower"] <= shown["target"]) & (shown["target"] <= shown["upper"])))


def _range(arrays: list[Array], low: float, high: float) -> list[float]:
    """Return two percentiles of the finite numbers, never the same number twice."""
    joined = np.concatenate([array[np.isfinite(array)] for array in arrays])
    if not joined.size:
        return [0.0, 1.0]
    lower, upper = (float(number) for number in np.percentile(joined, [low, high]))
    return [lower, upper if upper > lower else lower + (abs(lower) or 1.0)]
