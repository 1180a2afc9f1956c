"""The functions of the page that compute, called in the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intervalnn.view.levels import LAST, NO_NUMBER, Levels
from intervalnn.view.page import SCRIPTS, STATIC
from intervalnn.view.record import Record


@pytest.fixture(scope="module")
def call(browser: Any) -> Iterator[Callable[..., Any]]:
    """Call a function of the scripts, all but the one that starts the page."""
    page = browser.new_page()
    for name in SCRIPTS[:-1]:
        page.add_script_tag(path=str(STATIC / name))
    yield lambda code, *arguments: page.evaluate(f"(given) => {{ {code} }}", list(arguments))
    page.close()


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (-43.217, 0.06, "−43.2"),
        (0.30411, 1.5e-5, "0.3041"),
        (-0.0001, 0.01, "0.00"),
        (1234.5, 3, "1235"),
        (2e-9, 1e-14, "2.000e−9"),
        (None, 1, "–"),
    ],
)
def test_numbers_are_shown_as_exactly_as_they_are_known(
    call: Callable[..., Any], value: float | None, step: float, text: str
) -> None:
    assert call("return show(given[0] ?? NaN, given[1])", value, step) == text


def test_shares_are_shown_with_more_digits_where_small(call: Callable[..., Any]) -> None:
    assert call("return given.map(percent)", 0, 0.00004, 0.0123, 0.5, 1) == [
        "0.0 %",
        "0.004 %",
        "1.23 %",
        "50.0 %",
        "100.0 %",
    ]


@pytest.mark.parametrize(("low", "high", "count"), [(0, 1, 5), (-1024, 3071, 4), (1e-7, 3e-7, 3), (-5, -4.9, 6)])
def test_ticks_are_round_and_lie_between_the_ends(
    call: Callable[..., Any], low: float, high: float, count: int
) -> None:
    ticks = call("return ticks(...given)", low, high, count)

    assert 2 <= len(ticks) <= count + 1 and low <= ticks[0] and ticks[-1] <= high
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[0])
    assert float(f"{steps[0]:.3e}"[0]) in (1, 2, 5)


def test_the_grid_of_the_score_is_that_of_the_other_side_bit_for_bit(call: Callable[..., Any]) -> None:
    one = np.full((1, 1, 1), 0.123456789)
    grid = Levels(Record(one, one, one)).grid
    picked = [0, 1, 2, 777, 30_000, LAST - 1, LAST]

    got = call("return given[0].map((level) => scoreOf(level, given[1]))", picked, 2 * 0.123456789)

    assert got == grid[picked].tolist()
    assert call("return given[0].map((score) => levelOf(score, given[1]))", got, 2 * 0.123456789) == picked


def test_counts_above_a_level(call: Callable[..., Any]) -> None:
    levels = [5, 0, 9, 9, NO_NUMBER]

    assert [call("return countAbove(given[0], given[1])", levels, level) for level in (0, 5, 9)] == [4, 3, 1]
    assert call("return [...above(given)]", 3, 0, 2, 1) == [3, 3, 1, 0]


def test_colour_maps_grow_lighter_evenly_and_direction_is_even_on_both_sides(call: Callable[..., Any]) -> None:
    def lightness(code: str) -> np.ndarray[Any, Any]:
        packed = np.array(call(f"return [...{code}]"), dtype=np.int64)
        rgb = np.stack([packed & 255, packed >> 8 & 255, packed >> 16 & 255], -1) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        y = linear @ (0.2126, 0.7152, 0.0722)
        return np.where(y > 0.008856, 116 * np.cbrt(y) - 16, 903.3 * y)  # that of CIELAB

    score = lightness("SEQUENTIAL")
    steps = np.diff(score[::15])
    assert score[0] < 20 and score[-1] > 88 and (steps > 0).all() and steps.max() < 1.8 * steps.min()
    for theme in ("light", "dark"):
        direction = lightness(f"DIVERGING.{theme}")
        assert np.abs(direction - direction[::-1]).max() < 9
        assert np.abs(direction[127] - direction[0]) > 30


def test_colours_follow_the_window(call: Callable[..., Any]) -> None:
    code = """
        const colours = evenColours(-1000, 0.1, [-160, 240], GREY);
        return given.map((value) => colours[Math.round((value + 1000) * 10)] & 255);
    """

    assert call(code, -1000, -160, 41, 239.9, 240, 3000) == [0, 0, 128, 255, 255, 255]
    assert call("return evenColours(0, 1, [0, 1], GREY)[NO_NUMBER]") == 0


def test_errors_are_painted_by_their_sign_and_gaps_in_the_data_not_at_all(call: Callable[..., Any]) -> None:
    code = """
        const pixels = new Uint32Array(4);
        paintDifference(given[0], given[1], 0.5, [-10, 10], GREY, pixels);
        return [...pixels].map((p) => p && p & 255);
    """

    assert call(code, [100, 100, 60, NO_NUMBER], [100, 60, 100, 0]) == [128, 255, 0, 0]


def test_zooming_keeps_the_point_under_the_pointer(call: Callable[..., Any]) -> None:
    code = """
        const [image, panel, at] = given;
        let look = fitted(image);
        let t = transform(look, panel, image);
        const before = toImage(t, at.x, at.y);
        look = zoomed(look, t, at, 3, image);
        t = transform(look, panel, image);
        const out = zoomed(look, t, at, 0.01, image);
        return [before, toImage(t, at.x, at.y), t.sy / t.sx, out];
    """
    image = {"columns": 100, "rows": 50, "spacing": [2, 1]}

    before, after, shape, out = call(code, image, {"width": 300, "height": 400}, {"x": 120, "y": 180})

    assert after == pytest.approx(before) and shape == 2 and out == {"zoom": 1, "x": 50, "y": 25}


def test_a_line_visits_its_ends_and_every_pixel_between(call: Callable[..., Any]) -> None:
    image = {"columns": 10, "rows": 10, "spacing": [1, 2]}

    line = call("return along(...given)", {"x": 1, "y": 2}, {"x": 4, "y": 4}, image)

    assert line["pixels"] == [21, 32, 33, 44] and line["distances"] == pytest.approx(
        [0, 40**0.5 / 3, 2 * 40**0.5 / 3, 40**0.5]
    )


@pytest.mark.parametrize(
    ("count", "width", "height", "columns"), [(6, 1100, 600, 3), (6, 400, 1200, 1), (5, 1600, 400, 4), (1, 9, 9, 1)]
)
def test_panels_are_laid_out_so_that_images_are_large(
    call: Callable[..., Any], count: int, width: int, height: int, columns: int
) -> None:
    best = call("return bestColumns(...given, 1)", count, width, height)

    size = {c: min(width / c, height / -(-count // c)) for c in range(1, count + 1)}
    assert size[best] >= 0.99 * max(size.values())


def test_slices_ahead_come_first(call: Callable[..., Any]) -> None:
    assert call("return around(...given)", 5, 1, 12)[:7] == [6, 7, 4, 8, 9, 10, 3]
    assert call("return around(...given)", 5, -1, 12)[:4] == [4, 3, 2, 6]


def test_slices_are_fetched_once_and_the_oldest_make_room(call: Callable[..., Any]) -> None:
    code = """
        const meta = { rows: 1, columns: 1, channels: ["point"], slices: 40 };
        const asked = [];
        const slices = new Slices(meta, async (i) => { asked.push(i); return new ArrayBuffer(48); });
        slices.room = 3;
        return (async () => {
            await Promise.all([slices.get(1), slices.get(1), slices.get(2)]);
            await slices.get(3);
            slices.peek(1);
            await slices.get(4);
            return [asked, [...slices.kept.keys()]];
        })();
    """

    assert call(code) == [[1, 2, 3, 4], [3, 1, 4]]


def test_outlines_run_along_the_border_of_what_is_flagged(call: Callable[..., Any]) -> None:
    code = """
        const canvas = Object.assign(document.createElement("canvas"), { width: 12, height: 12 });
        const levels = new Uint16Array(16);
        levels[5] = 9;
        outline(canvas, levels, given[0], { sx: 3, sy: 3, tx: 0, ty: 0 }, { columns: 4, rows: 4 });
        const { data } = canvas.getContext("2d").getImageData(0, 0, 12, 12);
        return Array.from({ length: 144 }, (_, k) => (data[4 * k + 3] === 0 ? 0 : data[4 * k] > 0 ? 2 : 1));
    """

    drawn = np.array(call(code, 8)).reshape(12, 12)

    light = np.zeros((12, 12), dtype=bool)
    light[3:6, 3:6] = True
    light[4, 4] = False
    assert np.array_equal(drawn == 2, light)
    assert (drawn[2, 3:6] == 1).all() and (drawn[6, 3:6] == 1).all() and (drawn == 1).sum() == 12
    assert not np.any(call(code, 9))


def test_a_page_reads_what_python_packed(call: Callable[..., Any], tmp_path: Path) -> None:
    draws = np.random.default_rng(0)
    point, below, above = draws.normal(size=(1, 3, 4)), draws.random((1, 3, 4)), draws.random((1, 3, 4))
    point[0, 1, 1] = np.nan
    record = Record(point, below, above, target=point + 0.1)
    levels = Levels(record)

    got = call(
        """
        const bytes = Uint8Array.from(given[0]).buffer;
        const slice = readSlice(bytes, given[1]);
        return Array.from({ length: 12 }, (_, k) => valuesAt(slice, k, given[1]));
        """,
        list(levels.packed(0)),
        levels.meta("it"),
    )

    shown = {**record.at(0), "error": np.full((3, 4), 0.1)}
    for name, want in shown.items():
        found = np.array([np.nan if values[name] is None else values[name] for values in got]).reshape(3, 4)
        finite = np.isfinite(point[0]) if name not in ("score", "direction") else np.full((3, 4), True)
        assert found[finite] == pytest.approx(want[finite], abs=1e-4, rel=1e-3), name
        assert np.isnan(found[~finite]).all()
