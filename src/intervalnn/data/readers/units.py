"""Units: what the numbers of a file mean, as Hounsfield units, and the scale of the networks."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from intervalnn.data.readers.skipped import Unreadable
from intervalnn.data.readers.volume import Unit

__all__ = ["AIR", "Values", "finite", "to_hu", "to_unit"]

Values = Literal["hu", "hu+1024", "hu+32768", "unit", "mu", "lodopab"]

AIR = -1024.0  # the least value of a CT image, and what lies outside the field of view
MU_WATER, MU_AIR, MU_MAX = 20.0, 0.02, 81.35858  # per metre, the constants of LoDoPaB-CT; the last at 3071 HU


def to_hu(
    array: NDArray[Any], values: Values, window: tuple[float, float] | None = None
) -> tuple[NDArray[np.float32], Unit]:
    """Return an array in Hounsfield units, at least -1024, and its unit.

    Args:
        array: The numbers of a file.
        values: What they are: ``"hu"``; ``"hu+1024"`` or ``"hu+32768"``; ``"mu"``, attenuation per
            metre; ``"lodopab"``, the same divided by its value at 3071 HU; or ``"unit"``, [0, 1], where
            integers are divided by the largest of their type.
        window: Hounsfield units at 0 and at 1, for ``"unit"``; without them the values stay as they are.
    """
    if values not in get_args(Values):
        raise ValueError(f"values must be one of {', '.join(get_args(Values))}, got {values!r}")
    if array.dtype.kind not in "iuf":
        raise Unreadable(f"holds {array.dtype}, not plain numbers")
    if not array.size:
        raise Unreadable(f"is empty: it has the shape {array.shape}")
    if array.dtype.itemsize == 1 and values != "unit":
        raise Unreadable(f"has 8 bits, so it was windowed and cannot hold {values!r}; use values='unit'")
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        numbers, unit = _converted(array, values, window)
    return finite(numbers), unit


def finite(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return numbers as they are, or refuse them."""
    if not np.isfinite(numbers).all():
        raise Unreadable("holds values that are not finite")
    return numbers


def _converted(
    array: NDArray[Any], values: Values, window: tuple[float, float] | None
) -> tuple[NDArray[np.float32], Unit]:
    numbers = finite(array.astype(np.float32))
    if values == "unit":
        return _from_unit(numbers, array.dtype, window)
    if values in ("hu+1024", "hu+32768"):
        numbers -= float(values.removeprefix("hu+"))
    elif values != "hu":
        mu = numbers * MU_MAX if values == "lodopab" else numbers
        numbers = (mu - MU_WATER) * (1000 / (MU_WATER - MU_AIR))
    return np.maximum(numbers, np.float32(AIR)), "hu"


def _from_unit(
    numbers: NDArray[np.float32], dtype: np.dtype[Any], window: tuple[float, float] | None
) -> tuple[NDArray[np.float32], Unit]:
    if dtype.kind != "f":
        numbers /= np.iinfo(dtype).max
    elif numbers.min() < -1 or numbers.max() > 2:  # some overshoot is common, another unit is not
        raise Unreadable(f"must lie in [0, 1] for values='unit', got {numbers.min():g} to {numbers.max():g}")
    if window is None:
        return numbers, "unit"
    low, high = window
    return np.maximum(low + (high - low) * numbers, np.float32(AIR)), "hu"


def to_unit(hu: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return Hounsfield units on the scale of the networks: air 0, water 0.5, 1000 HU and more 1.

    Example:
        >>> to_unit(np.float32([-1024, -1000, 0, 500, 3000]))
        array([0.  , 0.  , 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return np.clip((hu + 1000) / 2000, 0, 1).astype(np.float32)
