"""Reading: the front door guesses, says what it cannot do, and reads the shared set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest

from data.readers.dicoms import series
from intervalnn import data

REPOSITORY = Path(__file__).parents[3]


def test_a_folder_of_one_kind_is_guessed(tmp_path: Path) -> None:
    series(tmp_path / "a", 2)
    (tmp_path / "notes.txt").write_text("words")
    (tmp_path / "a" / ".hidden.dcm").write_text("words")
    (tmp_path / "__MACOSX").mkdir()
    (tmp_path / "__MACOSX" / "1.dcm").write_text("words")

    volumes = data.read(tmp_path, errors="refuse")

    assert [volume.kind for volume in volumes] == ["dicom"]


def test_several_kinds_must_be_chosen_from(tmp_path: Path) -> None:
    series(tmp_path, 2)
    nibabel.save(nibabel.Nifti1Image(np.zeros((2, 2, 2)), np.eye(4)), tmp_path / "a.nii")

    with pytest.raises(ValueError, match="holds 2 of kind 'dicom', 1 of kind 'nifti': say which, with kind"):
        data.read(tmp_path)
    assert [volume.kind for volume in data.read(tmp_path, kind="nifti")] == ["nifti"]


def test_volumes_can_be_read_again_and_are_reported_once(tmp_path: Path) -> None:
    series(tmp_path, 3)
    (tmp_path / "001.dcm").write_text("words")

    volumes = data.read(tmp_path)

    assert [len(list(volumes)) for _ in range(3)] == [1, 1, 1]
    assert len(volumes.report.skipped) == 1
    assert str(volumes.report) == "1 files skipped, 0 notes\n  001.dcm is no DICOM file"
    assert repr(volumes) == "Volumes(1 subjects, Report(1 files skipped, 0 notes))"


def test_a_report_groups_by_reason(tmp_path: Path) -> None:
    for i in range(4):
        (tmp_path / f"{i}.dcm").write_text("words")

    assert str(data.read(tmp_path).report).splitlines()[1:] == ["  0.dcm (and 3 more) is no DICOM file"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "movie"}, "kind must be one of dicom"),
        ({"errors": "ignore"}, "errors must be 'skip' or 'refuse'"),
        ({"kind": "image"}, "holds no file of kind image"),
        ({"files": "*.nii"}, "holds no file of kind"),
        ({"key": "img"}, "key is for array, and these files are of kind 'dicom'"),
        ({"values": "hu"}, "values is for nifti or array or image"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    series(tmp_path, 2)

    with pytest.raises(ValueError, match=message):
        data.read(tmp_path, **options)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        data.read(tmp_path / "x")


def test_an_unknown_subject_is_named(tmp_path: Path) -> None:
    series(tmp_path, 2)

    with pytest.raises(ValueError, match=r"no subject \['nobody'\]"):
        data.read(tmp_path).only(["nobody"])


@pytest.mark.rotating
def test_arrays_are_read_without_the_optional_packages(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3, 3), np.int16))
    code = f"""
import sys
for name in ("pydicom", "nibabel", "h5py", "PIL"):
    sys.modules[name] = None
import intervalnn.data.volumes
from intervalnn import data
print([len(volume) for volume in data.read({str(tmp_path)!r}, values="hu")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "[2]", done.stderr


@pytest.mark.parametrize(
    ("file", "package", "extra"),
    [
        ("a.nii", "nibabel", "nifti"),
        ("a.hdf5", "h5py", "hdf5"),
        ("a.png", "PIL", "images"),
        ("a.dcm", "pydicom", "dicom"),
    ],
)
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, package: str, extra: str
) -> None:
    (tmp_path / file).touch()
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(ImportError, match=rf'pip install "intervalnn\[{extra}\]"'):
        data.read(tmp_path)


# --- real slices ---


@pytest.fixture(scope="module")
def ct() -> Path:
    folder = Path(os.environ.get("INTERVALNN_CT", REPOSITORY.parent / "shared" / "data" / "ct"))
    if not (folder / "manifest.json").exists():
        pytest.skip(f"the CT slices are not in {folder}; set INTERVALNN_CT to their folder")
    return folder


@pytest.mark.parametrize(
    ("field", "counts"),
    [
        ("split", {"train": 902, "val": 197, "test": 135, "ood": 61}),
        ("paper10", {"train": 718, "val": 61, "test": 135}),
    ],
)
@pytest.mark.slow
def test_real_slices_are_all_there(ct: Path, field: str, counts: dict[str, int]) -> None:
    volumes = data.read(ct, errors="refuse")

    parts = data.split_by_subject(volumes, manifest=ct / "manifest.json", field=field)

    assert len(volumes.subjects) == 71
    assert {name: sum(len(volume) for volume in part) for name, part in parts.items()} == counts


def test_a_real_volume_is_calibrated_and_in_order(ct: Path) -> None:
    (volume,) = data.read(ct, errors="refuse").only(["KiTS-00072"])

    raw = np.load(ct / "kits_00072_part.npz")["img"]
    np.testing.assert_array_equal(volume.images, raw.astype(np.float32) - 1024)
    assert volume.z is not None and (np.diff(volume.z) < 0).all()
    np.testing.assert_allclose(volume.spacing, (2.5, 1.32812, 1.32812), atol=1e-4)


def test_real_slices_of_many_subjects_go_to_their_own(ct: Path) -> None:
    volumes = data.read(ct / "tcga_singles.npz", errors="refuse")

    found = list(volumes)

    assert len(volumes.subjects) == 53 and sum(len(volume) for volume in found) == 93
    assert data.slices(found[:3], 128).shape[1:] == (1, 128, 128)
