"""NIfTI: whatever the orientation of a file, its volume is upright."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest

from intervalnn import data
from intervalnn.data.readers.nifti import write

CODES = ["".join(codes) for triple in permutations(("RL", "AP", "SI")) for codes in product(*triple)]


def image(codes: str = "RAS", shape: tuple[int, ...] = (4, 5, 3)) -> Any:
    """Return an image whose values tell where they are, stored along these axes."""
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    cos, sin = np.cos(0.04), np.sin(0.04)  # a little tilted
    affine = np.eye(4)
    affine[:3, :3] = np.array([[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]]) * [0.5, 0.75, 2.5]
    affine[:3, 3] = -12.5, 7.25, 100
    plain = nibabel.Nifti1Image(values, affine)
    wanted = nibabel.orientations.axcodes2ornt(codes)
    return plain.as_reoriented(nibabel.orientations.ornt_transform(nibabel.orientations.axcodes2ornt("RAS"), wanted))


@pytest.mark.parametrize("codes", CODES)
def test_every_orientation_gives_the_same_volume(tmp_path: Path, codes: str) -> None:
    nibabel.save(image(codes), tmp_path / "someone.nii.gz")

    (volume,) = data.read(tmp_path, errors="refuse")

    expected = image("RAS").get_fdata().transpose(2, 1, 0)[::-1, ::-1, ::-1]  # head first, front first, right first
    np.testing.assert_array_equal(volume.images, expected)
    assert volume.subject == "someone" and volume.unit == "hu"
    np.testing.assert_allclose(volume.spacing, (2.5, 0.75, 0.5), rtol=1e-6)
    assert volume.z is not None and (np.diff(volume.z) < 0).all()


@pytest.mark.parametrize("codes", CODES)
def test_what_is_written_lies_on_the_grid_of_the_file(tmp_path: Path, codes: str) -> None:
    nibabel.save(image(codes), tmp_path / "a.nii")
    (volume,) = data.read(tmp_path)

    write(tmp_path / "b.nii.gz", volume.images, volume)

    first, second = nibabel.load(tmp_path / "a.nii"), nibabel.load(tmp_path / "b.nii.gz")
    np.testing.assert_array_equal(first.get_fdata(), second.get_fdata())
    np.testing.assert_allclose(first.affine, second.affine, atol=1e-5)
    np.testing.assert_allclose(second.header.get_sform(), second.affine)
    assert second.header.get_xyzt_units()[0] == "mm"


def test_slope_and_intercept_are_applied(tmp_path: Path) -> None:
    stored = nibabel.Nifti1Image(np.full((2, 2, 2), 100, np.int16), np.eye(4))
    stored.header.set_slope_inter(2.0, -50.0)
    path = tmp_path / "a.nii"
    nibabel.save(stored, path)

    (volume,) = data.read(path)
    (shifted,) = data.read(path, values="hu+1024")

    assert np.unique(volume.images).tolist() == [150]
    assert np.unique(shifted.images).tolist() == [150 - 1024]


def test_a_file_is_a_subject_unless_its_path_says_another(tmp_path: Path) -> None:
    for name in ("x/1.nii", "x/2.nii.gz", "L067/ct.nii"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        nibabel.save(image(), tmp_path / name)

    assert data.read(tmp_path).subjects == ("L067", "x/1", "x/2")
    assert data.read(tmp_path, subject=r"^\w+").subjects == ("L067", "x")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    nibabel.save(image(), tmp_path / "good.nii.gz")
    content = (tmp_path / "good.nii.gz").read_bytes()
    (tmp_path / "cut.nii.gz").write_bytes(content[:-40])
    (tmp_path / "text.nii").write_text("this is no image" * 100)
    (tmp_path / "empty.nii").touch()
    nibabel.save(nibabel.Nifti1Image(np.zeros((2, 2, 2, 3)), np.eye(4)), tmp_path / "series.nii")
    nibabel.save(nibabel.Nifti1Image(np.full((2, 2, 2), np.nan), np.eye(4)), tmp_path / "nan.nii")
    colour = np.zeros((2, 2, 2), [("R", "u1"), ("G", "u1"), ("B", "u1")])
    nibabel.save(nibabel.Nifti1Image(colour, np.eye(4)), tmp_path / "colour.nii")

    volumes = data.read(tmp_path)

    assert [volume.name for volume in volumes] == ["good.nii.gz"]
    reasons = {skipped.path: skipped.reason for skipped in volumes.report.skipped}
    assert reasons.keys() == {"cut.nii.gz", "text.nii", "empty.nii", "series.nii", "nan.nii", "colour.nii"}
    assert reasons["series.nii"] == "must have three dimensions, got (2, 2, 2, 3)"
    with pytest.raises(ValueError, match=r"colour\.nii holds .* not plain numbers"):
        list(data.read(tmp_path, errors="refuse"))


@pytest.mark.parametrize("high", [1.0, 1.5], ids=["in the unit interval", "beyond it by a little"])
def test_values_that_cannot_be_hounsfield_units_are_warned_of(tmp_path: Path, high: float) -> None:
    stored = np.linspace(0, high, 8, dtype=np.float32).reshape(2, 2, 2)
    nibabel.save(nibabel.Nifti1Image(stored, np.eye(4)), tmp_path / "a.nii")

    with pytest.warns(UserWarning, match=rf"a.nii holds values from 0 to {high:g}, which cannot be Hounsfield .*unit"):
        (volume,) = data.read(tmp_path)

    assert volume.unit == "hu"
    for values in ("unit", "hu"):  # whoever says what they are is believed
        assert [each.unit for each in data.read(tmp_path, values=values)] == [values]


@pytest.mark.parametrize("ends", [(0, 0), (1, 1), (-1000, 1), (0, 2)], ids=str)
def test_values_that_may_be_hounsfield_units_are_not_warned_of(tmp_path: Path, ends: tuple[int, int]) -> None:
    stored = np.linspace(*ends, 8, dtype=np.float32).reshape(2, 2, 2)
    nibabel.save(nibabel.Nifti1Image(stored, np.eye(4)), tmp_path / "a.nii")

    assert len(list(data.read(tmp_path))) == 1  # for a warning is an error here
