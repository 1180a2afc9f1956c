"""Units: every convention ends in Hounsfield units, and what cannot be is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from intervalnn.data.readers.skipped import Unreadable
from intervalnn.data.readers.units import MU_MAX, to_hu

HU = np.array([-1000.0, 0.0, 40.0, 1000.0, 3071.0])


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ("hu", HU.astype(np.int16)),
        ("hu", HU.astype(np.float64)),
        ("hu+1024", (HU + 1024).astype(np.uint16)),
        ("hu+32768", (HU + 32768).astype(np.uint16)),
        ("mu", HU * (20 - 0.02) / 1000 + 20),
        ("lodopab", (HU * (20 - 0.02) / 1000 + 20) / MU_MAX),
    ],
)
def test_conventions_agree(values: Any, stored: Any) -> None:
    found, unit = to_hu(stored, values)

    np.testing.assert_allclose(found, HU, atol=1e-3)
    assert unit == "hu" and found.dtype == np.float32


def test_the_largest_attenuation_is_that_of_3071_hu() -> None:
    assert pytest.approx(3071 * (20 - 0.02) / 1000 + 20) == MU_MAX


def test_nothing_is_less_than_air() -> None:
    assert to_hu(np.array([-3024, -1024, 5], np.int16), "hu")[0].tolist() == [-1024, -1024, 5]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_integers_are_divided_by_their_largest(dtype: Any) -> None:
    largest = np.iinfo(dtype).max

    plain, unit = to_hu(np.array([0, largest], dtype), "unit")
    windowed, calibrated = to_hu(np.array([0, largest], dtype), "unit", (-160, 240))

    assert (plain.tolist(), unit) == ([0, 1], "unit")
    assert (windowed.tolist(), calibrated) == ([-160, 240], "hu")


@pytest.mark.parametrize(
    ("stored", "values", "reason"),
    [
        (np.zeros(2, np.uint8), "hu", "has 8 bits"),
        (np.zeros(2, np.complex64), "hu", "not plain numbers"),
        (np.array([1.0, np.nan]), "hu", "not finite"),
        (np.array([0.0, 1500.0]), "unit", r"must lie in \[0, 1\]"),
    ],
)
def test_what_cannot_be_is_refused(stored: Any, values: Any, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        to_hu(stored, values)


def test_an_unknown_convention_is_the_callers_error() -> None:
    with pytest.raises(ValueError, match="values must be one of hu, "):
        to_hu(HU, "gray")  # type: ignore[arg-type]
