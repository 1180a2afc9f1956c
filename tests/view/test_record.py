"""Records: what is worked out from the gaps, what is cut, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from intervalnn.view.record import Record, assemble

POINT = np.array([[[0.0, 1.0], [2.0, 3.0]]])
BELOW = np.array([[[1.0, 0.0], [3.0, 0.0]]])
ABOVE = np.array([[[1.0, 0.0], [1.0, 2.0]]])


def test_score_and_direction_come_from_the_gaps() -> None:
    shown = Record(POINT, BELOW, ABOVE).at(0)

    assert shown["score"].tolist() == [[2, 0], [4, 2]]
    assert shown["direction"].tolist() == [[0, 0], [-0.5, 1]]
    assert shown["lower"].tolist() == [[-1, 1], [-1, 3]]


def test_signs_take_their_strength_from_the_gaps_and_other_directions_stay() -> None:
    signs = np.array([[[0.0, 0.0], [-1.0, 1.0]]])
    graded = np.array([[[0.1, 0.2], [-0.3, 0.4]]])

    assert Record(POINT, BELOW, ABOVE, direction=signs).at(0)["direction"].tolist() == [[0, 0], [-0.5, 1]]
    assert Record(POINT, BELOW, ABOVE, direction=graded).at(0)["direction"].tolist() == graded[0].tolist()


def test_a_record_prints_shapes_and_no_numbers() -> None:
    record = Record(POINT, BELOW, ABOVE, input=np.zeros(3), unit="HU", spacing=(2.0, 0.5), promise="A long sentence.")

    shapes = "point=(1, 2, 2), below=(1, 2, 2), above=(1, 2, 2), input=(3,)"
    assert repr(record) == f"Record({shapes}, unit='HU', spacing=(2.0, 0.5), dims=2)"


def test_leading_axes_count_slices() -> None:
    point = np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)

    record = Record(point, np.zeros_like(point), np.zeros_like(point))

    assert (record.slices, record.size) == (6, (4, 5))
    assert np.array_equal(record.at(4)["point"], point[1, 1])


def test_an_input_of_another_shape_is_not_shown() -> None:
    assert "input" not in Record(POINT, BELOW, ABOVE, input=np.zeros((1, 7))).at(0)
    assert "input" in Record(POINT, BELOW, ABOVE, input=POINT).at(0)


def test_a_cut_keeps_the_numbers_of_slices_and_the_origin() -> None:
    point = np.arange(10 * 6 * 8.0).reshape(10, 1, 6, 8)
    record = Record(point, np.zeros_like(point), np.zeros_like(point), input=np.zeros(3), target=point + 1)

    cut = record.cut(slice(2, 9, 3), slice(1, 4), slice(5, None))

    assert cut.numbers == (2, 5, 8) and cut.origin == (1, 5) and cut.input is None
    assert np.array_equal(cut.at(1)["target"], point[5, 0, 1:4, 5:] + 1)


def test_all_slices_need_no_numbers() -> None:
    assert Record(POINT, BELOW, ABOVE).cut(rows=slice(1)).numbers is None


def test_signals_can_be_cut() -> None:
    point = np.arange(12.0).reshape(3, 4)

    cut = Record(point, point, point, dims=1).cut(slice(1, None), columns=slice(1, 3))

    assert cut.at(0)["point"].tolist() == [[5, 6]] and cut.size == (1, 2)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"slices": slice(20, None)}, "nothing is left"),
        ({"rows": slice(0, 2, 2)}, "cut, not thinned out"),
    ],
)
def test_cuts_that_make_no_sense_are_refused(parts: dict[str, slice], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Record(POINT, BELOW, ABOVE).cut(**parts)


def test_a_score_that_is_the_width_is_known_as_such() -> None:
    arrays = {"point": POINT, "below": BELOW, "above": ABOVE}

    assert assemble({**arrays, "score": BELOW + ABOVE}, "it").score_is_width
    assert not assemble({**arrays, "score": 2 * (BELOW + ABOVE)}, "it").score_is_width


def test_bounds_that_cross_by_rounding_are_taken_and_others_named() -> None:
    arrays = {"point": POINT, "lower": POINT - BELOW, "upper": POINT + ABOVE}
    arrays["lower"][0, 0, 1] += 1e-4
    record = assemble(arrays, "it")
    assert record.below[0, 0, 1] == 0

    arrays["lower"][0, 1, 0] = 2.5
    with pytest.raises(
        ValueError, match=r"lower bound of it lies above the point in 1 places, first at \(0, 1, 0\) by 0.5"
    ):
        assemble(arrays, "it")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"below": -BELOW}, "below must hold gaps"),
        ({"above": ABOVE[0]}, "above must have shape"),
        ({"target": ABOVE[0]}, "target must have shape"),
        ({"dims": 3}, "dims must be 1"),
        ({"spacing": (1.0,)}, "spacing must be 2 numbers"),
        ({"spacing": (1.0, 0.0)}, "spacing must be 2 numbers"),
        ({"point": POINT[:0], "below": BELOW[:0], "above": ABOVE[:0]}, "none empty"),
    ],
)
def test_what_is_no_prediction_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Record(**{"point": POINT, "below": BELOW, "above": ABOVE, **changes})
