"""NIfTI sets: every orientation is shown the same way, and what does not fit together is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intervalnn.data import Geometry, Volume
from intervalnn.data.volumes import write_volume
from intervalnn.view.nifti import load_nifti, nifti_sets
from view.made import prediction

nibabel = pytest.importorskip("nibabel", reason="reading NIfTI files needs nibabel")

# A body from left to right, back to front, feet to head: each voxel holds its own place.
X, Y, Z = np.meshgrid(np.arange(4.0), np.arange(5.0), np.arange(3.0), indexing="ij")
BODY = 100 * Z + 10 * Y + X
SIZES = (0.5, 0.75, 2.0)


def write(folder: Path, prefix: str = "", codes: str = "RAS", *, placed: bool = True, **changes: Any) -> None:
    """Write a set whose axes run the way of these codes."""
    affine = np.diag((*SIZES, 1.0))
    parts = {"point": BODY, "lower": BODY - 1, "upper": BODY + 3, **changes}
    folder.mkdir(exist_ok=True)
    for name, array in parts.items():
        image = nibabel.Nifti1Image(array.astype(np.float32), affine)
        start, end = (nibabel.orientations.axcodes2ornt(code) for code in ("RAS", codes))
        image = image.as_reoriented(nibabel.orientations.ornt_transform(start, end))
        if not placed:
            image.set_sform(None, code=0)
            image.set_qform(None, code=0)
        nibabel.save(image, folder / f"{prefix}{name}.nii.gz")


@pytest.mark.parametrize("codes", ["RAS", "LPS", "LAS", "PSR", "IAL"])
def test_slices_are_axial_with_the_front_up_and_the_right_side_left(tmp_path: Path, codes: str) -> None:
    write(tmp_path, codes=codes)

    record = load_nifti(tmp_path / "point.nii.gz", unit="HU")

    assert record.point.shape == (3, 5, 4) and record.sides == "APRL" and record.unit == "HU"
    assert record.at(1)["point"][0].tolist() == [143, 142, 141, 140]  # foremost row, from the right to the left side
    assert record.at(1)["point"][-1, -1] == 100 and record.at(0)["point"][-1, -1] == 200  # the head first
    assert record.spacing == pytest.approx((0.75, 0.5))
    assert record.at(0)["direction"] == pytest.approx(np.full((5, 4), 0.5), abs=1e-4)


def test_without_a_place_in_space_no_sides_are_named(tmp_path: Path) -> None:
    write(tmp_path, placed=False)

    assert load_nifti(tmp_path / "lower.nii.gz").sides == ""


def test_the_header_may_say_unit_and_promise(tmp_path: Path) -> None:
    write(tmp_path)
    assert (load_nifti(tmp_path / "point.nii.gz").unit, load_nifti(tmp_path / "point.nii.gz").promise) == ("", "")
    image = nibabel.load(tmp_path / "point.nii.gz")
    image.header["descrip"] = "intervalnn point, HU"
    for text in ("a comment of others", "intervalnn promise: At most one in ten."):
        image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", text.encode()))
    nibabel.save(image, tmp_path / "point.nii.gz")

    record = load_nifti(tmp_path / "lower.nii.gz")

    assert (record.unit, record.promise) == ("HU", "At most one in ten.")
    assert load_nifti(tmp_path / "point.nii.gz", unit="mm").unit == "mm"


def test_a_description_by_others_is_no_unit(tmp_path: Path) -> None:
    write(tmp_path)
    image = nibabel.load(tmp_path / "point.nii.gz")
    image.header["descrip"] = "FSL5.0, HU"
    nibabel.save(image, tmp_path / "point.nii.gz")

    assert load_nifti(tmp_path / "point.nii.gz").unit == ""


def test_several_sets_in_a_folder_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path, "a_", target=BODY + 0.5, direction=np.ones_like(BODY), score=0 * BODY + 4)
    write(tmp_path, "b_")

    assert list(nifti_sets(tmp_path)) == ["a_", "b_"]
    record = load_nifti(tmp_path / "a_target.nii.gz")
    assert record.target is not None and record.score_is_width
    assert record.at(0)["direction"] == pytest.approx(np.full((5, 4), 0.5), abs=1e-4)
    assert load_nifti(tmp_path / "b_point.nii.gz").target is None


def test_what_the_library_writes_comes_back(tmp_path: Path) -> None:
    made, _ = prediction((4, 6, 5))
    geometry = Geometry.regular(-3.0 * np.arange(4), (0.75, 0.5))
    images = np.zeros((4, 6, 5), np.float32)
    volume = Volume(images, "s", "s", kind="array", unit="hu", index=np.arange(4), geometry=geometry)
    write_volume(tmp_path / "p", made, volume, promise="At most one in ten.")

    record = load_nifti(tmp_path / "p" / "point.nii.gz")

    assert (record.unit, record.promise) == ("HU", "At most one in ten.")
    assert np.array_equal(record.point, made.point.numpy()) and record.score_is_width
    assert record.spacing == pytest.approx((0.75, 0.5)) and record.sides == "APRL"
    want = (made.above - made.below) / made.width
    assert record.at(2)["direction"] == pytest.approx(want[2].numpy(), abs=0.02)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    write(tmp_path, target=BODY[:3])
    with pytest.raises(ValueError, match=r"target\.nii\.gz must lie on the same grid"):
        load_nifti(tmp_path / "point.nii.gz")

    (tmp_path / "target.nii.gz").unlink()
    (tmp_path / "upper.nii.gz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"upper\.nii\.gz is no NIfTI file"):
        load_nifti(tmp_path / "point.nii.gz")

    write(tmp_path, upper=np.stack((BODY, BODY), -1))
    with pytest.raises(ValueError, match=r"upper\.nii\.gz must hold one volume"):
        load_nifti(tmp_path / "point.nii.gz")

    (tmp_path / "upper.nii.gz").unlink()
    with pytest.raises(ValueError, match="must have lower and upper"):
        load_nifti(tmp_path / "point.nii.gz")

    (tmp_path / "scan.nii.gz").write_bytes(b"")
    with pytest.raises(ValueError, match="one of a set of files"):
        load_nifti(tmp_path / "scan.nii.gz")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_nifti(tmp_path / "none.nii.gz")


def test_a_part_of_a_file_is_refused(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=(40, 40, 40))
    write(tmp_path, point=noise, lower=noise - 1, upper=noise + 1)
    whole = (tmp_path / "lower.nii.gz").read_bytes()
    (tmp_path / "lower.nii.gz").write_bytes(whole[: len(whole) // 2])

    with pytest.raises(ValueError, match=r"lower\.nii\.gz is no NIfTI file of real numbers, or a part"):
        load_nifti(tmp_path / "point.nii.gz")
