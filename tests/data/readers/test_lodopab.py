"""LoDoPaB-CT: slices are read lazily, by subject, in Hounsfield units and upright."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from intervalnn import data
from intervalnn.data.readers.units import MU_MAX

HU = np.random.default_rng(0).uniform(-1000, 2000, (200, 6, 6)).astype(np.float32)
PATIENTS = [632 + i % 7 for i in range(200)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stored = ((HU * (20 - 0.02) / 1000 + 20) / MU_MAX).transpose(0, 2, 1)
    for number, part in enumerate((stored[:128], stored[128:])):
        for kind in ("ground_truth", "observation"):
            with h5py.File(tmp_path / f"{kind}_validation_{number:03d}.hdf5", "w") as file:
                file["data"] = part.astype(np.float32)
    (tmp_path / "patient_ids_rand_validation.csv").write_text("\n".join(map(str, PATIENTS)) + "\n")
    return tmp_path


def test_every_slice_is_read_once_with_its_subject(folder: Path) -> None:
    volumes = data.read(folder, errors="refuse")

    found = np.full_like(HU, np.nan)
    for volume in volumes:
        start = 128 * int(volume.name[-8:-5])
        for image, index in zip(volume.images, volume.index, strict=True):
            found[start + index] = image
            assert volume.subject == f"lodopab-{PATIENTS[start + index]}"
    np.testing.assert_allclose(found, HU, atol=2e-2)
    assert volumes.subjects == tuple(f"lodopab-{n}" for n in range(632, 639))


def test_only_the_slices_of_a_subject_are_read(folder: Path) -> None:
    one = list(data.read(folder).only(["lodopab-635"]))

    assert {volume.subject for volume in one} == {"lodopab-635"}
    assert sum(len(volume) for volume in one) == PATIENTS.count(635)
    assert one[0].spacing is not None and one[0].spacing[1:] == (260 / 6, 260 / 6)


def test_a_later_file_alone_has_the_right_subjects(folder: Path) -> None:
    (folder / "ground_truth_validation_000.hdf5").unlink()

    subjects = {index: volume.subject for volume in data.read(folder) for index in volume.index.tolist()}

    assert [subjects[i] for i in range(72)] == [f"lodopab-{n}" for n in PATIENTS[128:]]


def test_slices_without_a_subject_are_left_out(folder: Path) -> None:
    (folder / "patient_ids_rand_validation.csv").write_text("\n".join(map(str, PATIENTS[:190])))

    volumes = data.read(folder)

    assert sum(len(volume) for volume in volumes) == 190
    assert volumes.report.notes == ("ground_truth_validation_001.hdf5 has 72 slices, of which 62 have a subject",)


def test_without_the_list_a_part_is_one_subject(folder: Path) -> None:
    (folder / "patient_ids_rand_validation.csv").unlink()

    volumes = data.read(folder)

    assert volumes.subjects == ("lodopab-validation",)
    assert "counts as one subject" in volumes.report.notes[0]


def test_what_cannot_be_read_is_named(folder: Path) -> None:
    good = (folder / "ground_truth_validation_000.hdf5").read_bytes()
    (folder / "ground_truth_test_000.hdf5").write_bytes(good[:1000])
    (folder / "other.hdf5").write_bytes(good)
    with h5py.File(folder / "ground_truth_train_000.hdf5", "w") as file:
        file["something"] = np.zeros(3)
    with h5py.File(folder / "ground_truth_train_001.hdf5", "w") as file:
        file["data"] = np.zeros((1, 2, 2))
    (folder / "patient_ids_rand_train.csv").write_text("one\ntwo\n")

    volumes = data.read(folder)

    assert sum(len(volume) for volume in volumes) == 200
    assert {skipped.path for skipped in volumes.report.skipped} == {
        "ground_truth_test_000.hdf5",
        "ground_truth_train_000.hdf5",
        "ground_truth_train_001.hdf5",
        "other.hdf5",
    }


def _elsewhere(folder: Path, how: str) -> None:
    """Write a file of one slice whose numbers lie in a file outside of the folder that is read."""
    other = folder.parent / "other"
    other.mkdir()
    np.full((1, 6, 6), 0.5, np.float32).tofile(other / "raw")
    with h5py.File(other / "o.hdf5", "w") as file:
        file["in/data"] = np.full((1, 6, 6), 0.5, np.float32)
    with h5py.File(folder / "ground_truth_test_000.hdf5", "w", userblock_size=512 if "user" in how else 0) as file:
        if "external storage" in how:
            whole = [(str(other / "raw"), 0, h5py.h5f.UNLIMITED)]
            file.create_dataset("in/data", (1, 6, 6), np.float32, external=whole)
        elif "virtual" in how:
            layout = h5py.VirtualLayout((1, 6, 6), np.float32)
            layout[:] = h5py.VirtualSource(other / "o.hdf5", "in/data", (1, 6, 6))
            file.create_virtual_dataset("in/data", layout)
        elif "group" in how:
            file["in"] = h5py.ExternalLink(str(other / "o.hdf5"), "/in")
        else:
            file["in/data"] = h5py.ExternalLink(str(other / "o.hdf5"), "/in/data")
        if "soft" in how or "group" in how:
            file["data"] = h5py.SoftLink("/in/data")
        else:
            file.move("in/data", "data")


@pytest.mark.parametrize("where", ["", ", soft link", ", user block"])
@pytest.mark.parametrize("how", ["external storage", "virtual", "external link", "group"])
def test_numbers_in_other_files_are_not_read(how: str, where: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    _elsewhere(tmp_path / "data", how + where)

    with pytest.raises(ValueError, match=r"must hold its (numbers|data set 'data') itself"):
        list(data.read(tmp_path / "data", errors="refuse"))
    skipped = data.read(tmp_path / "data")
    assert not skipped.subjects and len(skipped.report.skipped) == 1


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_list_of_subjects_that_is_no_file_is_refused(make: Callable[[Path], object], folder: Path) -> None:
    (folder / "patient_ids_rand_validation.csv").unlink()
    make(folder / "patient_ids_rand_validation.csv")

    skipped = data.read(folder).report.skipped

    assert len(skipped) == 2 and all("must be a file with a whole number in each line" in s.reason for s in skipped)


@pytest.mark.parametrize("packed", [{"compression": "lzf"}, {"scaleoffset": 4}], ids=str)
def test_what_is_packed_so_that_no_limit_can_be_kept_is_refused(packed: dict[str, Any], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "ground_truth_test_000.hdf5", "w") as file:
        file.create_dataset("data", data=np.ones((3, 6, 5), np.float32), chunks=(1, 6, 5), **packed)

    with pytest.raises(ValueError, match="packed otherwise than once by deflate"):
        data.read(tmp_path, errors="refuse")
