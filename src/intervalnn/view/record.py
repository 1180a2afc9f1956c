"""Record: the arrays of one prediction and what belongs to them, to be looked at slice by slice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from intervalnn.prediction import Prediction

__all__ = ["Array", "Record", "assemble"]

Array = NDArray[np.floating[Any]]
OPTIONAL = ("score", "direction", "target", "input", "deviation")

SPACING = 1e-6, 1e6  # mm between which the steps of a picture lie
LARGEST = 1e300  # beyond, differences are no numbers any more
ROUNDING = 1e-4  # how far bounds may cross the point, as a share of its spread: 16-bit files round that much


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A prediction as arrays ``(*leading, rows, columns)``, or ``(*leading, length)`` for signals.

    All leading axes together count as slices. Score and direction are worked out from the gaps where
    they are not given.

    Attributes:
        point: The prediction.
        below: How far the bounds reach below it, ``>= 0``.
        above: How far they reach above it, ``>= 0``.
        score: Uncertainty of each component; the width of the bounds if not given.
        direction: From -1 (all of the width below) to 1 (all above). If only signs are given, their
            strength is taken from the gaps.
        target: The truth, where it is known.
        input: What the network was given; shown where it has the shape of the point.
        deviation: Standard deviation of a normal density around the point, for methods that have one.
        unit: Of the point, such as ``"HU"``.
        spacing: Between rows and between columns (or samples), in mm.
        dims: 2 for images, 1 for signals.
        sides: Which sides of the body lie at the top, bottom, left and right, such as ``"APRL"``.
        numbers: The number of each slice, where some were left out.
        origin: Row and column of the first pixel, where the images were cut.
        promise: What holds on new data, in words; empty where nobody said.
    """

    point: Array
    below: Array
    above: Array
    score: Array | None = None
    direction: Array | None = None
    target: Array | None = None
    input: Array | None = None
    deviation: Array | None = None
    unit: str = ""
    spacing: tuple[float, ...] | None = None
    dims: int = 2
    sides: str = ""
    numbers: tuple[int, ...] | None = None
    origin: tuple[int, int] = (0, 0)
    promise: str = ""

    def __post_init__(self) -> None:
        if self.dims not in (1, 2):
            raise ValueError(f"dims must be 1 for signals or 2 for images, got {self.dims}")
        if self.point.ndim < self.dims or 0 in self.point.shape:
            raise ValueError(f"the point must have {self.dims} axes or more and none empty, got {self.point.shape}")
        for name in ("below", "above", *OPTIONAL):
            part = getattr(self, name)
            if part is not None and name != "input" and part.shape != self.point.shape:
                raise ValueError(f"{name} must have shape {self.point.shape}, like the point, got {part.shape}")
        for name, gap in (("below", self.below), ("above", self.above)):
            if (gap < 0).any():
                raise ValueError(f"{name} must hold gaps, 0 or more, and has negative numbers")
        (low, high), steps = SPACING, self.spacing
        if steps is not None and not (len(steps) == self.dims and all(low <= step <= high for step in steps)):
            raise ValueError(
                f"spacing must be {self.dims} numbers above 0, in mm, from {low:g} to {high:g}, got {steps}"
            )
        if self.direction is not None and (np.abs(self.direction) > 1 + ROUNDING).any():
            raise ValueError("direction must hold numbers from -1 to 1, and has others")
        for name in ("point", "below", "above", "score", "target", "input"):
            part = getattr(self, name)
            if part is not None and part.dtype == np.float64 and _largest(part) > LARGEST:
                raise ValueError(
                    f"{name} must hold numbers up to {LARGEST:g}, or infinite ones, got {_largest(part):g}"
                )

    @property
    def leading(self) -> tuple[int, ...]:
        """The axes that count slices."""
        return self.point.shape[: -self.dims]

    @property
    def slices(self) -> int:
        """How many slices, or signals, there are."""
        return math.prod(self.leading)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of a slice; a signal is one row."""
        return (1 if self.dims == 1 else self.point.shape[-2], self.point.shape[-1])

    @property
    def score_is_width(self) -> bool:
        """Whether the score is the width of the bounds, because no other was given."""
        return self.score is None

    @property
    def shows_input(self) -> bool:
        """Whether the input can be shown beside the point."""
        return self.input is not None and self.input.shape == self.point.shape

    @np.errstate(invalid="ignore", over="ignore")  # of what is infinite, all that is shown is that it is no number
    def at(self, i: int) -> dict[str, Array]:
        """Return what there is to show of one slice, each ``(rows, columns)``.

        Example:
            >>> shown = Record(np.ones((1, 2)), np.ones((1, 2)), np.full((1, 2), 3.0), dims=1).at(0)
            >>> {name: array.tolist() for name, array in shown.items() if name in ("upper", "score", "direction")}
            {'upper': [[4.0, 4.0]], 'score': [[4.0, 4.0]], 'direction': [[0.5, 0.5]]}
        """
        point, below, above = (self._cut(part, i) for part in (self.point, self.below, self.above))
        shown = {"point": point, "lower": point - below, "upper": point + above}
        shown["score"] = below + above if self.score is None else self._cut(self.score, i)
        shown["direction"] = _direction(below, above, None if self.direction is None else self._cut(self.direction, i))
        if self.target is not None:
            shown["target"] = self._cut(self.target, i)
        if self.input is not None and self.shows_input:
            shown["input"] = self._cut(self.input, i)
        return shown

    def cut(self, slices: slice = slice(None), rows: slice = slice(None), columns: slice = slice(None)) -> Record:
        """Return some of the slices, and a part of each."""
        numbers = tuple(range(self.slices)[slices])
        kept = [range(n)[part] for n, part in zip(self.size, (rows, columns), strict=True)]
        if not numbers or not all(kept):
            wanted = ", ".join(
                f"{name} {part.start or 0} to {'the end' if part.stop is None else part.stop}"
                for name, part in (("slices", slices), ("rows", rows), ("columns", columns))
                if part != slice(None)
            )
            raise ValueError(
                f"nothing is left of {self.slices} slices of {self.size[0]} rows and {self.size[1]} columns, counted "
                f"from 0, in {wanted}; choose others"
            )
        if any(part.step != 1 for part in kept):
            raise ValueError("rows and columns are cut, not thinned out: give a start and a stop only")
        changes: dict[str, Any] = {"origin": (kept[0].start, kept[1].start)}
        if len(numbers) < self.slices:
            changes["numbers"] = numbers
        for name in ("point", "below", "above", *OPTIONAL):
            part = getattr(self, name)
            if part is None or (name == "input" and not self.shows_input):
                changes[name] = None
                continue
            stack = part.reshape(-1, *self.size)[slices, rows, columns]
            changes[name] = stack if self.dims == 2 else stack[:, 0]
        return replace(self, **changes)

    def prediction(self) -> Prediction:
        """Return the prediction itself."""
        point, below, above = (torch.from_numpy(part) for part in (self.point, self.below, self.above))
        score = below + above if self.score is None else torch.from_numpy(self.score)
        deviation = None if self.deviation is None else torch.from_numpy(self.deviation)
        return Prediction(point, below, above, score, deviation)

    def __repr__(self) -> str:
        """Return the shapes of the arrays, and all else that was given but the promise."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "promise"}
        shapes = {name: part.shape if isinstance(part, np.ndarray) else part for name, part in given.items()}
        shown = [f"{name}={part!r}" for name, part in shapes.items() if part not in (None, "", (0, 0))]
        return f"Record({', '.join(shown)})"

    def _cut(self, array: Array, i: int) -> Array:
        cut: Array = array.reshape(-1, *self.size)[i]
        return cut


@np.errstate(invalid="ignore", over="ignore")
def assemble(arrays: Mapping[str, Array], where: str, **facts: Any) -> Record:
    """Return the record of arrays by name, as files hold them: with gaps or bounds, a score or none.

    Args:
        arrays: ``point``, and ``below`` and ``above`` or ``lower`` and ``upper``, and whatever else there is.
        where: What to call their source in an error.
        **facts: The other attributes of the record.
    """
    point = arrays["point"]
    for name, part in arrays.items():
        if name != "input" and part.shape != point.shape:
            raise ValueError(f"{name} of {where} must have shape {point.shape}, like the point, got {part.shape}")
    finite = np.isfinite(point)
    ends = point.min(where=finite, initial=np.inf), point.max(where=finite, initial=-np.inf)
    allowed = ROUNDING * max(0.0, float(ends[1] - ends[0]))
    if "below" in arrays and "above" in arrays:
        below, above = arrays["below"], arrays["above"]
    elif "lower" in arrays and "upper" in arrays:
        below = _gap(point - arrays["lower"], allowed, f"the lower bound of {where} lies above the point")
        above = _gap(arrays["upper"] - point, allowed, f"the upper bound of {where} lies below the point")
    else:
        raise ValueError(
            f"{where} must have lower and upper, or below and above, beside point; it has {', '.join(arrays)}"
        )
    given: dict[str, Any] = {name: arrays.get(name) for name in OPTIONAL}
    if given["score"] is not None:
        given["score"] = _score(given["score"], where)
    if given["score"] is not None and np.allclose(given["score"], below + above, atol=allowed, equal_nan=True):
        given["score"] = None
    try:
        return Record(point, below, above, **given, **facts)
    except ValueError as error:
        raise ValueError(f"{where} holds no prediction: {error}") from error


def _largest(array: Array) -> float:
    """Return the size of the largest finite number."""
    ends = (each(array, where=np.isfinite(array), initial=0.0) for each in (np.min, np.max))
    return max(abs(float(end)) for end in ends)


def _gap(gap: Array, allowed: float, what: str) -> Array:
    """Return a gap without what rounding put below 0; more than that is refused."""
    crossed = gap < -allowed
    if crossed.any():
        first = tuple(int(i) for i in np.argwhere(crossed)[0])
        raise ValueError(f"{what} in {crossed.sum()} places, first at {first} by {-gap[first]:.4g}")
    gap[gap < 0] = 0
    return gap


def _score(score: Array, where: str) -> Array:
    """Return a score without what rounding put below 0; more than that is refused."""
    if (score < -ROUNDING * _largest(score)).any():
        raise ValueError(f"score of {where} must hold numbers of 0 or more, and has negative ones")
    return np.where(score < 0, np.zeros_like(score), score)


def _direction(below: Array, above: Array, given: Array | None) -> Array:
    """Return the direction with its strength: the difference of the gaps over their sum, 0 where they are 0."""
    if given is not None and not np.isin(np.abs(given), (0, 1)).all():
        return given
    width = below + above
    with np.errstate(invalid="ignore"):  # infinite gaps on both sides: no direction can be told
        lean: Array = np.divide(above - below, width, out=np.zeros_like(width), where=width != 0)
    return lean if given is None else given * np.abs(lean)
