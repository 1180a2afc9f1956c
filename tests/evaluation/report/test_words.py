"""What the page says in sentences, and that it claims no more than the numbers do."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from evaluation.report.made import numbers, run, scored
from intervalnn.evaluation.report.groups import Group, find
from intervalnn.evaluation.report.words import also_best, meaning, promises, verdict


def group(tmp_path: Path, *runs: dict[str, dict[str, list[float]]]) -> Group:
    for seed, values in enumerate(runs):
        run(values, seed=seed).save(tmp_path / f"{seed}.json")
    return find(tmp_path).groups[0]


def test_a_clear_lead_is_called_beyond_chance(tmp_path: Path) -> None:
    found = verdict(group(tmp_path, scored(ours=1.0, theirs=1.5), scored(ours=1.1, theirs=1.4)))

    assert found is not None and (found.leader, found.sure) == ("ours", True)
    assert "lowest interval score at 90\xa0% coverage, 1.050 ±" in found.text
    assert "ahead of theirs beyond chance, and in each of 2 runs" in found.text


def test_a_lead_within_the_noise_is_not(tmp_path: Path) -> None:
    found = verdict(group(tmp_path, scored(ours=1.0, theirs=1.001, third=2.0)))

    assert found is not None and (found.leader, found.sure) == ("ours", False)
    assert "but not beyond chance" in found.text and "theirs (-0.001," in found.text
    assert "third" not in found.text and "ahead" not in found.text


def test_a_lead_that_only_the_mean_over_runs_has_says_in_how_many_runs(tmp_path: Path) -> None:
    found = verdict(group(tmp_path, scored(ours=1.0, theirs=3.0), scored(ours=1.5, theirs=1.2)))

    assert found is not None and found.sure and "in 1 of 2 runs" in found.text


def test_nothing_is_claimed_without_anything_to_compare(tmp_path: Path) -> None:
    alone = verdict(group(tmp_path / "a", scored(ours=1.0)))
    nameless = verdict(group(tmp_path / "b", {"ours": {"own": [1.0, 2.0]}, "theirs": {"own": [3.0, 4.0]}}))

    assert alone is not None and not alone.sure and "nothing to compare it with" in alone.text
    assert nameless is None


def test_methods_that_were_not_calibrated_are_not_said_to_be_at_equal_coverage(tmp_path: Path) -> None:
    found = verdict(group(tmp_path, {"ours": {"mae": numbers(1.0)}, "theirs": {"mae": numbers(2.0, seed=1)}}))

    assert found is not None and found.sure and "though not calibrated to equal coverage" in found.text


def test_other_metrics_are_named_only_where_a_method_is_best_beyond_chance(tmp_path: Path) -> None:
    values = scored(ours=1.0, theirs=1.5)
    values["ours"] |= {"mae": numbers(1.0), "pearson": numbers(0.3)}
    values["theirs"] |= {"mae": numbers(1.0, seed=1), "pearson": numbers(0.8, seed=1)}

    found = also_best(group(tmp_path, values))

    assert found == {"theirs": ["Pearson"]}


def test_coverage_that_falls_short_beyond_chance_is_told_from_such_as_may_be_chance(tmp_path: Path) -> None:
    values = {
        "kept": {"coverage": numbers(0.895, 0.05)},  # within 1.96 * 0.05 / sqrt(40) = 0.0155
        "short": {"coverage": numbers(0.85, 0.05, seed=1)},
        "wide": {"coverage": numbers(0.99, 0.001, seed=2)},
    }

    (said,) = promises(group(tmp_path, values))

    assert "falls short of the 90\xa0% asked for, beyond chance, for 1 of 3 methods: short (85\xa0%)" in said
    assert "the others keep it" in said and "less than half as often as they may: wide (99\xa0%)" in said


def test_a_kept_promise_is_said_to_be_kept(tmp_path: Path) -> None:
    metric = "coverage at equal coverage"
    values = {name: {metric: numbers(0.9, 0.02, seed=i)} for i, name in enumerate("ab")}

    (said,) = promises(group(tmp_path, values))

    assert said == (
        "Calibrated on held-out samples, coverage keeps the promise of 90\xa0% for both methods, up to chance."
    )


def test_a_promise_that_none_keeps_has_no_others(tmp_path: Path) -> None:
    (said,) = promises(group(tmp_path, {"a": {"coverage": numbers(0.5)}, "b": {"coverage": [math.nan] * 40}}))

    assert "for the one method: a (50\xa0%)." in said and "others" not in said


@pytest.mark.parametrize(
    ("metric", "kind", "name"),
    [
        ("winkler at equal coverage", "calibrated", "interval score"),
        ("winkler", "as fitted", "interval score"),
        ("my_own", "others", "my own"),
        ("my_own at equal coverage", "calibrated", "my own"),
    ],
)
def test_every_metric_has_a_kind_and_a_name(metric: str, kind: str, name: str) -> None:
    assert meaning(metric)[:2] == (kind, name)
