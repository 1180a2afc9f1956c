"""What is drawn is what was measured."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from evaluation.report.made import run, scored
from intervalnn.evaluation.report import figures
from intervalnn.evaluation.report.curves import pooled
from intervalnn.evaluation.report.groups import find
from intervalnn.evaluation.report.images import comparison
from intervalnn.evaluation.report.signals import story


def drawn_lines(figure: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in figure.axes[0].lines}


def test_every_method_has_a_line_of_its_own() -> None:
    names = ["INN", "ProbOut", "ProbOut, published", *(f"method {i}" for i in range(20))]

    lines = figures.lines_of(names)

    assert len({(line.color, str(line.stroke)) for line in lines.values()}) == len(names)


def test_calibration_is_the_mean_of_what_is_defined() -> None:
    curves = {"a": [{"levels": [0.5, 0.9, 0.99], "shares": shares} for shares in ([0.4, None, None], [0.6, 0.8, None])]}

    line = drawn_lines(figures.calibration(curves, figures.lines_of(["a"])))["a"]

    assert np.ma.filled(line.get_ydata(), np.nan).tolist()[:2] == [0.5, 0.8]
    assert np.ma.getmaskarray(line.get_ydata()).tolist() == [False, False, True]


def test_a_run_with_other_places_does_not_enter_the_mean() -> None:
    shapes = ([0.0, 0.5], [0.0, 0.25, 0.5])
    curves = {"a": [{"removed": x, "by_score": [i + 1.0] * len(x), "oracle": x} for i, x in enumerate(shapes)]}

    line = drawn_lines(figures.sparsification(curves, figures.lines_of(["a"])))["a"]

    assert line.get_ydata().tolist() == [1.0, 1.0]


def test_of_many_parameters_the_largest_shares_are_drawn_in_the_order_of_the_model() -> None:
    shares = np.random.default_rng(0).permutation(100) / 4950
    rows = [{"name": f"layer {i}", "share": share} for i, share in enumerate(shares.tolist())]

    axes = figures.layers({"INN": [rows, rows]}).axes[0]

    names = [label.get_text() for label in axes.get_yticklabels()]
    kept = [f"layer {i}" for i in range(100) if shares[i] >= 60 / 4950]
    assert names == kept and len(kept) == figures.SHOWN
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([s for s in shares if s >= 60 / 4950])


def test_differences_that_may_be_chance_are_hollow(tmp_path: Path) -> None:
    run(scored(first=1.0, near=1.001, far=2.0)).save(tmp_path / "run.json")
    group = find(tmp_path).groups[0]

    axes = figures.differences(group).axes[0]

    dots = {line.get_ydata()[0]: line for line in axes.lines if line.get_marker() == "o"}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["near", "far"]
    assert dots[0].get_markerfacecolor() == "white" and dots[1].get_markerfacecolor() != "white"
    assert dots[1].get_xdata()[0] == pytest.approx(100.0)  # percent of the first


def leaning(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return an example of which the first half is wider above, and the second below."""
    wide, narrow = np.full(shape, 0.5), np.full(shape, 0.1)
    first = np.arange(shape[-1]) < shape[-1] // 2
    below, above = np.where(first, narrow, wide), np.where(first, wide, narrow)
    parts = {"x": np.zeros(shape), "y": np.ones(shape), "ours/point": np.zeros(shape), "ours/score": below + above}
    return parts | {"ours/below": below, "ours/above": above}


def test_a_run_counts_in_a_direction_for_as_many_components_as_it_keeps() -> None:
    many = {"kept": [1.0, 0.3, 0.0], "accuracy": [0.6, 0.9, None]}
    few = {"kept": [1.0, 0.1, 0.0], "accuracy": [0.7, 0.5, math.nan]}

    assert pooled([many, few], "kept")[:2] == [1.0, 0.2]
    assert pooled([many, few], "accuracy")[:2] == pytest.approx([0.65, (0.3 * 0.9 + 0.1 * 0.5) / 0.4])
    assert math.isnan(pooled([many, few], "accuracy")[2])


def test_the_direction_of_images_is_orange_where_bounds_are_wider_above() -> None:
    drawn = comparison(leaning((1, 1, 16, 16)), ["ours"], 0, title="")

    axes = next(each for each in drawn.axes if each.get_ylabel().startswith("direction"))
    image = axes.images[0]
    red, green, blue, _ = image.to_rgba(image.get_array())[0, 0]
    assert axes.get_ylabel() == "direction\n(orange: wider above)" and red > green > blue


def test_marks_of_a_signal_say_on_which_side_its_bounds_are_wider() -> None:
    drawn = story(leaning((1, 1, 20)), "ours", 0, coverage=0.9)

    marks = {each.get_label(): each.get_offsets()[:, 0].tolist() for each in drawn.axes[-1].collections[1:]}
    assert marks == {"wider above": list(range(10)), "wider below": list(range(10, 20))}
