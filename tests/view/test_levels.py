"""Levels: what the browser can work out again, and what stays exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from intervalnn.view.levels import LAST, NO_NUMBER, Levels
from intervalnn.view.record import Record


def record(seed: int, shape: tuple[int, ...] = (4, 13, 17), **options: Any) -> Record:
    draws = np.random.default_rng(seed)
    point = draws.normal(size=shape, scale=10.0 ** draws.integers(-6, 7)).astype(np.float32)
    below, above = (np.abs(draws.normal(size=shape) ** 5).astype(np.float32) * point.std() for _ in range(2))
    below[draws.random(shape) < 0.1] = 0
    return Record(point, below, above, **options)


def unpacked(data: bytes, channels: list[str], shape: tuple[int, int]) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    head = np.frombuffer(data[:40], dtype="<f8")
    levels = np.frombuffer(data[40:], dtype="<u2").reshape(-1, *shape)
    return head, dict(zip(channels, levels, strict=True))


@given(seed=st.integers(0, 10_000))
def test_numbers_come_back_to_half_a_step_and_bounds_never_cross(seed: int) -> None:
    made = record(seed, target=record(seed + 1).point, input=record(seed + 2).point)
    levels = Levels(made)

    head, packed = unpacked(levels.packed(2), list(made.at(2)), made.size)

    for name, want in made.at(2).items():
        if name == "score":
            continue
        offset, step = {"direction": (-1, 2 / LAST), "input": head[2:4]}.get(name, head[:2])
        rounding = 4 * np.finfo(np.float32).eps * max(abs(offset), abs(offset + step * LAST))
        assert np.abs(offset + step * packed[name].astype(float) - want).max() <= step / 2 + rounding, name
    assert (packed["lower"] <= packed["point"]).all() and (packed["point"] <= packed["upper"]).all()


@given(seed=st.integers(0, 10_000), level=st.integers(0, LAST))
def test_a_threshold_on_the_grid_parts_scores_exactly(seed: int, level: int) -> None:
    made = record(seed)
    levels = Levels(made)
    counts = np.frombuffer(levels.counts(), dtype="<u4")

    score = made.below + made.above

    packed = levels.score_levels(score)
    assert np.array_equal(packed > level, score > levels.grid[level])
    assert counts[level + 1 :].sum() == (score > levels.grid[level]).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_on_the_grid_itself_keep_their_level(dtype: type) -> None:
    top = np.full((1, 1, 1), 3.7, dtype=dtype)
    levels = Levels(Record(top, 0 * top, top))
    grid = levels.grid.astype(dtype)

    got = levels.score_levels(grid)

    want = np.searchsorted(levels.grid, grid)
    assert np.array_equal(got, np.minimum(want, LAST))


def test_small_scores_keep_their_digits_beside_a_huge_one() -> None:
    score = np.array([[[1e-6, 1e-3, 1e6]]])
    levels = Levels(Record(0 * score, 0 * score, score))

    back = levels.grid[levels.score_levels(score)]

    assert back[0, 0] == pytest.approx(score[0, 0], rel=0.3)
    assert back[0, 0, 1:] == pytest.approx(score[0, 0, 1:], rel=0.05)


def test_what_is_not_finite_is_marked_and_counts_as_flagged() -> None:
    point = np.array([[[0.0, np.nan, 2.0, 3.0]]])
    above = np.array([[[1.0, 1.0, np.inf, 1.0]]])
    levels = Levels(Record(point, np.ones_like(point), above))

    head, packed = unpacked(levels.packed(0), list(levels.record.at(0)), (1, 4))

    assert packed["point"][0].tolist() == [round(LAST / 5), NO_NUMBER, round(3 * LAST / 5), round(4 * LAST / 5)]
    assert packed["upper"][0, 2] == NO_NUMBER and packed["score"][0, 2] == NO_NUMBER
    assert head[:2].tolist() == [-1, 5 / LAST] and levels.top == 2
    assert np.isfinite([*levels.meta("it")["ranges"]["score"]]).all()


@pytest.mark.parametrize("value", [0.0, 7.5, np.nan])
def test_constant_and_empty_slices_can_be_shown(value: float) -> None:
    point = np.full((2, 3, 3), value)
    levels = Levels(Record(point, np.zeros_like(point), np.zeros_like(point), target=point))

    head, packed = unpacked(levels.packed(0), list(levels.record.at(0)), (3, 3))

    assert len(set(packed["point"].ravel().tolist())) == 1 and head[1] == 0
    low, high = levels.meta("it")["ranges"]["value"]
    assert low < high


def test_the_share_inside_is_that_of_numpy() -> None:
    made = record(3, target=record(3).point + record(4).point)

    head, _ = unpacked(Levels(made).packed(1), list(made.at(1)), made.size)

    shown = made.at(1)
    inside = (shown["lower"] <= shown["target"]) & (shown["target"] <= shown["upper"])
    assert 0 < head[4] < 1 and head[4] == inside.mean()
