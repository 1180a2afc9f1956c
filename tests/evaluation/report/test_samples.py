"""The best and the worst samples: which they are, and with which bounds."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from evaluation.report.made import run
from intervalnn.evaluation.report.groups import Group, find
from intervalnn.evaluation.report.samples import examples, pictures

SHAPES = [(12,), (1, 12), (2, 9, 12), (1, 5, 9, 12)]


def made(folder: Path, shape: tuple[int, ...] = (1, 12), samples: list[int] | None = None, **methods: float) -> Group:
    """Write a run whose sample ``i`` has the interval score ``(7 * i) % 10``, and four examples."""
    values = {
        name: {"winkler at equal coverage": [(7 * i) % 10 * mean for i in range(10)]} for name, mean in methods.items()
    }
    made = run(values)
    methods_ = {name: replace(each, factors=[2.0]) for name, each in made.methods.items()}
    replace(made, methods=methods_).save(folder / "run.json")
    arrays: dict[str, Any] = {key: np.random.default_rng(1).random((4, *shape)) for key in ("x", "y")}
    arrays |= {
        f"{name}/{part}": np.ones((4, *shape)) for name in methods for part in ("point", "below", "above", "score")
    }
    arrays |= {} if samples is None else {"samples": np.array(samples)}
    np.savez(folder / "run.npz", **arrays)
    return find(folder).groups[0]


def test_first_samples_are_taken_for_the_first_of_the_run(tmp_path: Path) -> None:
    best, worst = examples(made(tmp_path, ours=1.0, theirs=2.0))[0]

    assert best.title == "best of the 4 kept: sample 0, rank 1 of 10 by interval score"
    assert worst.title == "worst of the 4 kept: sample 1, rank 8 of 10 by interval score"  # 0, 7, 4, 1
    assert best.names == ["ours", "theirs"]


def test_samples_are_known_by_their_numbers(tmp_path: Path) -> None:
    best, worst = examples(made(tmp_path, samples=[2, 3, 7, 9], ours=1.0))[0]

    assert "sample 3, rank 2 of 10" in best.title and "sample 7, rank 10 of 10" in worst.title
    with np.load(tmp_path / "run.npz") as file:
        assert best.arrays["y"].tolist() == file["y"][1:2].tolist()
        assert worst.arrays["x"].tolist() == file["x"][2:3].tolist()


def test_bounds_are_those_after_calibration(tmp_path: Path) -> None:
    best, _ = examples(made(tmp_path, ours=1.0))[0]

    assert (best.arrays["ours/below"] == 2.0).all() and (best.arrays["ours/above"] == 2.0).all()
    assert (best.arrays["ours/point"] == 1.0).all()


def test_without_examples_nothing_is_shown_and_odd_files_are_named(tmp_path: Path) -> None:
    group = made(tmp_path, ours=1.0)
    path = tmp_path / "run.npz"

    path.write_bytes(b"PK cut off")
    damaged = examples(group)
    np.savez(path, y=np.zeros(3))
    others = examples(group)
    path.unlink()

    assert damaged[0] == others[0] == [] and examples(group) == ([], [])
    assert [(where, "is no npz file of plain numbers" in why) for where, why in damaged[1]] == [(path, True)]
    assert others[1] == [(path, "holds no examples of this run: it must have x, y and predictions of its methods")]


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({"x": np.array(["a"] * 4)}, "must have real numbers in x"),
    "complex": ({"ours/point": np.ones((4, 1, 12), complex)}, "must have real numbers in ours/point"),
    "fewer": ({"ours/score": np.ones((3, 1, 12))}, "must have ours/score of shape"),
    "other size": ({"ours/above": np.ones((4, 1, 11))}, "must have ours/above of shape"),
    "no axes": ({"y": np.ones(())}, "must have real numbers in y"),
    "nothing": ({"x": np.ones((4, 0))}, "must have real numbers in x"),
    "other count of inputs": ({"x": np.ones((5, 1, 12))}, "must have x and a whole number in samples for each of 4 y"),
    "broken numbers": ({"samples": np.arange(4) + 0.5}, "must have x and a whole number in samples"),
    "nested numbers": ({"samples": np.arange(8).reshape(4, 2)}, "must have x and a whole number in samples"),
}


@pytest.mark.rotating
@pytest.mark.parametrize("case", ODD)
def test_examples_that_do_not_fit_are_named(case: str, tmp_path: Path) -> None:
    group = made(tmp_path, ours=1.0)
    change, why = ODD[case]
    with np.load(tmp_path / "run.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "run.npz", **(arrays | change))

    found, left_out = examples(group)

    assert found == [] and [where for where, _ in left_out] == [tmp_path / "run.npz"] and why in left_out[0][1]


def test_numbers_that_no_sample_has_are_passed_over(tmp_path: Path) -> None:
    best, worst = examples(made(tmp_path, samples=[-1, 3, 10**12, 9], ours=1.0))[0]

    assert "best of the 2 kept: sample 3" in best.title and "sample 9" in worst.title


@pytest.mark.rotating
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_numbers_that_are_not_finite_are_drawn_around(value: float, shape: tuple[int, ...], tmp_path: Path) -> None:
    group = made(tmp_path, shape, ours=1.0)
    with np.load(tmp_path / "run.npz") as file:
        arrays = dict(file)
    for name in ("ours/point", "ours/above", "x", "y"):
        arrays[name][:, ..., 0] = value
    np.savez(tmp_path / "run.npz", **arrays)

    for drawn in pictures(examples(group)[0]):
        drawn.savefig(io.BytesIO(), format="svg")


@pytest.mark.rotating
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_signals_images_and_volumes_are_drawn(shape: tuple[int, ...], tmp_path: Path) -> None:
    drawn = pictures(examples(made(tmp_path, shape, ours=1.0, theirs=2.0))[0])

    assert len(drawn) == (1 if len(shape) < 3 else 2)
    titles = {axes.get_title() or axes.get_title(loc="left") for axes in drawn[0].axes}
    wanted = (
        {"ours", "theirs"} if len(shape) < 3 else {"input", "target", "prediction", "absolute error", "half the width"}
    )
    assert wanted <= titles


def test_what_lies_outside_the_bounds_is_marked(tmp_path: Path) -> None:
    group = made(tmp_path, ours=1.0)
    with np.load(tmp_path / "run.npz") as file:
        arrays = dict(file)
    arrays["y"] = np.tile([0.0, 2.9, 3.1, -0.9, -1.1, 1.0], (4, 1, 2))  # the point is 1, the gaps are 2
    np.savez(tmp_path / "run.npz", **arrays)

    (drawn,) = pictures(examples(group)[0])

    marked = next(line for line in drawn.axes[2].lines if line.get_label() == "outside")
    assert marked.get_xdata().tolist() == [2, 4, 8, 10]
