"""Sources: what a path leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from intervalnn.view.source import entries
from view.made import signals, volume
from view.test_nifti import write


def test_a_file_leads_to_one_prediction(tmp_path: Path) -> None:
    (entry,) = entries(volume(tmp_path / "scan.npz"), unit="mm")

    assert entry.name == "scan" and entry.load().unit == "mm"


def test_a_folder_leads_to_all_that_it_holds(tmp_path: Path) -> None:
    volume(tmp_path / "b.npz")
    signals(tmp_path / "a.npz")
    write(tmp_path, "case7_")
    write(tmp_path / "patient")
    (tmp_path / "notes.txt").write_text("not a prediction")

    found = {entry.name: entry.load() for entry in entries(tmp_path)}

    assert list(found) == ["a", "b", "case7", "patient"]
    assert [record.dims for record in found.values()] == [1, 2, 2, 2]


def test_a_file_of_a_set_leads_to_the_set(tmp_path: Path) -> None:
    write(tmp_path / "patient")

    (entry,) = entries(tmp_path / "patient" / "upper.nii.gz", unit="HU")

    assert entry.name == "patient" and entry.load().unit == "HU"


def test_other_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "scan.dcm").write_bytes(b"")

    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        entries(tmp_path / "none")
    with pytest.raises(ValueError, match="must hold npz files or NIfTI sets"):
        entries(tmp_path)
    with pytest.raises(ValueError, match=r"is an \.npz, \.nii or \.nii\.gz file"):
        entries(tmp_path / "scan.dcm")
