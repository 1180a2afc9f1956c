"""Splits: a subject is in one of them, whatever files it has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intervalnn import data
from intervalnn.data import Volumes
from intervalnn.data.readers.splits import _chosen


def volumes(folder: Path, subjects: int = 10, files: int = 3) -> Volumes:
    for subject in range(subjects):
        for file in range(files):
            np.save(folder / f"s{subject}_{file}.npy", np.zeros((file + 1, 2, 2)))
    return data.read(folder, values="hu", subject=r"s\d+")


def test_no_subject_is_in_two_splits(tmp_path: Path) -> None:
    parts = data.split_by_subject(volumes(tmp_path))

    assert {name: len(part.subjects) for name, part in parts.items()} == {"train": 8, "val": 1, "test": 1}
    read = {name: [volume.subject for volume in part] for name, part in parts.items()}
    assert {name: len(found) for name, found in read.items()} == {"train": 24, "val": 3, "test": 3}
    assert {name: set(found) for name, found in read.items()} == {n: set(p.subjects) for n, p in parts.items()}
    assert len(set().union(*(part.subjects for part in parts.values()))) == 10


def test_the_seed_alone_chooses(tmp_path: Path) -> None:
    found = volumes(tmp_path)

    first = data.split_by_subject(found, seed=1)

    assert first["test"].subjects == data.split_by_subject(found, seed=1)["test"].subjects
    assert len({data.split_by_subject(found, seed=s)["test"].subjects for s in range(20)}) > 3


@pytest.mark.parametrize("subjects", range(3, 40))
def test_every_split_gets_its_share_and_at_least_one(subjects: int) -> None:
    shares = {"train": 0.8, "val": 0.1, "test": 0.1}

    chosen = list(_chosen([str(i) for i in range(subjects)], shares, seed=0).values())

    assert len(chosen) == subjects
    for name, share in shares.items():
        assert chosen.count(name) >= 1
        assert abs(chosen.count(name) - share * subjects) < 1.5


def test_a_list_says_who_goes_where(tmp_path: Path) -> None:
    found = volumes(tmp_path, 4)

    parts = data.split_by_subject(found, manifest={"train": ["s0", "s1"], "test": ["s2", "s3", "s9"]})

    assert {name: part.subjects for name, part in parts.items()} == {"train": ("s0", "s1"), "test": ("s2", "s3")}


def test_a_manifest_says_who_goes_where(tmp_path: Path) -> None:
    found = volumes(tmp_path, 3)
    listed = [{"file": f"s{i}.npy", "subject": f"s{i}", "split": s} for i, s in enumerate(["train", "test", None])]
    table = tmp_path / "splits.json"
    table.write_text(json.dumps({"volumes": listed}))

    parts = data.split_by_subject(found, manifest=table)

    assert {name: part.subjects for name, part in parts.items()} == {"train": ("s0",), "test": ("s1",)}
    with pytest.raises(ValueError, match=r"the field 'paper10', and s0\.npy has none"):
        data.split_by_subject(found, manifest=table, field="paper10")
    table.write_text(json.dumps({"volumes": [*listed, {"file": "x", "subject": "s0", "split": "test"}]}))
    with pytest.raises(ValueError, match="puts s0 into train and test"):
        data.split_by_subject(found, manifest=table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": {"train": 0.5}}, "add up to 1"),
        ({"shares": {"train": 1.5, "test": -0.5}}, "must be positive"),
        ({"shares": dict.fromkeys("abcdef", 1 / 6)}, "6 splits need as many subjects at least, got 4"),
        ({"manifest": {"train": ["s0"]}}, r"says nothing of \['s1', 's2', 's3'\]"),
        ({"manifest": {"train": ["s0"], "test": ["s0"]}}, r"\['s0'\] are in several"),
        ({"manifest": {}, "shares": {"train": 1.0}}, "not both"),
    ],
)
def test_what_makes_no_split_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data.split_by_subject(volumes(tmp_path, 4, 1), **options)
