"""Which runs are put together, and what a group is called."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from evaluation.report.made import numbers, run, scored
from intervalnn.evaluation.report.groups import find

TWO = scored(a=1.0, b=2.0)


def test_runs_that_differ_by_seed_curves_and_measurements_go_together(tmp_path: Path) -> None:
    for seed in range(3):
        values = {name: each | {"mae": numbers(1.0, seed=seed)} for name, each in TWO.items()}
        settings = {"noise": 0.1, "scale": {"name": "x", "seeds": seed}, "mae": seed / 7, "curves": {"a": {"s": seed}}}
        run(values, seed=seed, **settings).save(tmp_path / f"{seed}.json")

    found = find(tmp_path)

    assert [len(group.results.runs) for group in found.groups] == [3]
    assert found.groups[0].samples == 3 * 40


def test_other_settings_methods_coverage_and_folders_stay_apart_and_say_why(tmp_path: Path) -> None:
    run(TWO, noise=0.0).save(tmp_path / "one" / "a.json")
    run(TWO, noise=0.05).save(tmp_path / "one" / "b.json")
    run(TWO, noise=0.05).save(tmp_path / "two" / "b.json")
    run(TWO, coverage=0.8).save(tmp_path / "three" / "a.json")
    run(TWO, coverage=0.95).save(tmp_path / "three" / "b.json")
    run(scored(a=1.0)).save(tmp_path / "four" / "a.json")
    run(scored(a=1.0, c=2.0)).save(tmp_path / "four" / "b.json")

    found = find(tmp_path)

    assert [group.title for group in found.groups] == [
        "four: methods a",
        "four: methods a, c",
        "one: noise 0",
        "one: noise 0.05",
        "three: coverage 0.8",
        "three: coverage 0.95",
        "two",
    ]


def test_no_two_groups_have_the_same_file_name(tmp_path: Path) -> None:
    for number, task in enumerate(("a b", "a-b", "a/b", "A B 2")):
        run(TWO, task=task).save(tmp_path / f"{number}.json")

    names = [group.name for group in find(tmp_path).groups]

    assert len(set(names)) == 4 and not any(set(name) & set("/\\ :") for name in names)


def test_methods_are_ordered_from_best_to_worst_with_the_undefined_at_the_end(tmp_path: Path) -> None:
    values = scored(worse=3.0, best=1.0, middle=2.0)
    values = {"none": {"winkler at equal coverage": [math.nan] * 40}} | values
    run(values).save(tmp_path / "a.json")

    group = find(tmp_path).groups[0]

    assert group.results.methods == ["best", "middle", "worse", "none"]
    assert group.ranked == ["best", "middle", "worse"]


def test_higher_can_be_better(tmp_path: Path) -> None:
    run({"a": {"pearson": numbers(0.2)}, "b": {"pearson": numbers(0.7)}}).save(tmp_path / "a.json")

    group = find(tmp_path).groups[0]

    assert group.ranked_by == "pearson" and group.results.methods == ["b", "a"]


def test_a_metric_without_any_value_ranks_nothing(tmp_path: Path) -> None:
    run({"a": {"mae": [math.nan] * 5}, "b": {"mae": [math.nan] * 5}}).save(tmp_path / "a.json")

    group = find(tmp_path).groups[0]

    assert group.ranked_by is None and group.ranked == []


def test_files_that_are_no_runs_are_named_with_the_reason(tmp_path: Path) -> None:
    run(TWO).save(tmp_path / "run.json")
    run({}).save(tmp_path / "started.json")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "other.json").write_text(json.dumps({"format": "intervalnn results 99"}))
    (tmp_path / "cut.json").write_text('{"format": ')

    found = find(tmp_path)

    assert len(found.groups) == 1
    assert [path.name for path, _ in found.others] == ["cut.json", "list.json", "other.json", "started.json"]
    assert all(reason for _, reason in found.others)


def test_one_file_is_enough(tmp_path: Path) -> None:
    path = run(TWO).save(tmp_path / "deep" / "run.json")
    run(TWO).save(tmp_path / "deep" / "other.json")

    found = find(path)

    assert [group.files for group in found.groups] == [(path,)] and found.groups[0].title == "deep"


def test_an_empty_or_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no runs in .*; make some, as with evaluate"):
        find(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        find(tmp_path / "nowhere")


def test_limits_are_those_of_the_mean_over_runs(tmp_path: Path) -> None:
    for seed in range(2):
        run({"a": {"coverage": numbers(0.8 + 0.1 * seed, 0.05, n=100)}}, seed=seed).save(tmp_path / f"{seed}.json")
    group = find(tmp_path).groups[0]

    mean, lower, upper = group.limits("a", "coverage")

    deviation = [float(values.std(ddof=1)) for values in group.results.per_run("a", "coverage")]
    reach = 1.96 * math.hypot(*(d / 10 for d in deviation)) / 2
    assert mean == pytest.approx(0.85) and upper - mean == pytest.approx(reach) == pytest.approx(mean - lower)
