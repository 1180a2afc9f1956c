"""Volumes: predictions of whole series are blended soundly, and written where they belong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pydicom
import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn
from data.readers.dicoms import SECRETS, pixels, save, series, slice_of
from intervalnn import data
from intervalnn.data import Geometry, Volume
from intervalnn.data.volumes import predict_volume, write_volume
from intervalnn.data.writing import QUANTITIES
from intervalnn.prediction import Prediction


class Noisy:
    """A method whose bounds differ from patch to patch, yet always contain ``x``."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(0)
        self.shapes: list[tuple[int, ...]] = []

    def predict(self, *args: Any) -> Prediction:
        (x,) = args
        self.shapes.append(tuple(x.shape))
        error = torch.randn(x.shape, generator=self.generator)
        more = torch.rand(x.shape, generator=self.generator)
        return Prediction(x + error, error.clamp(min=0) + more, (-error).clamp(min=0), more, error.abs())


def volume(shape: tuple[int, int, int] = (5, 12, 10), **changes: Any) -> Volume:
    hu = np.random.default_rng(0).uniform(-900, 900, shape).astype(np.float32)
    geometry = Geometry.regular(-3.0 * np.arange(shape[0]), (0.75, 0.5))
    return replace(Volume(hu, "someone", "a", "array", "hu", np.arange(shape[0]), geometry), **changes)


def random_prediction(shape: tuple[int, ...], seed: int = 0) -> Prediction:
    generator = torch.Generator().manual_seed(seed)
    point, below, above = (torch.rand(shape, generator=generator) for _ in range(3))
    gaps = (200 * below).where(below > 0.1, torch.zeros(())), (150 * above).where(above > 0.1, torch.zeros(()))
    return Prediction(2600 * point - 1100, *gaps, gaps[0] + gaps[1])


# --- predicting ---


@pytest.mark.rotating
@pytest.mark.parametrize("batch_size", [1, 3, 50])
def test_slices_are_predicted_as_the_network_does(batch_size: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1)).eval()
    net = inn.IntervalNetwork(model, layers="all")
    net.set_gaps("2.weight", below=0.01, above=0.02)
    scan = volume()

    found = predict_volume(net, scan, batch_size=batch_size, progress=False)

    x = torch.from_numpy((scan.images + 1000) / 2000)[:, None]
    expected = net.predict(x)
    for name, factor, offset in (
        ("point", 2000, -1000),
        ("lower", 2000, -1000),
        ("upper", 2000, -1000),
        ("score", 2000, 0),
    ):
        torch.testing.assert_close(found[name], expected[name][:, 0] * factor + offset, rtol=1e-4, atol=1e-2)
    assert torch.equal(found.direction, expected.direction[:, 0])


def test_a_model_of_three_dimensions_wants_patches_of_three() -> None:
    torch.manual_seed(0)
    net = inn.IntervalNetwork(nn.Conv3d(1, 1, 3, padding=1).eval(), layers="all")
    net.set_gaps("bias", below=0.01, above=0.02)
    scan = volume((5, 12, 10))

    with pytest.raises(ValueError, match="does not take this input") as refused:
        predict_volume(net, scan, progress=False)
    found = predict_volume(net, scan, patch=(8, 16, 16), progress=False)

    assert "predicted slice by slice" in refused.value.__notes__[0] and "--patch D,H,W" in refused.value.__notes__[0]
    x = torch.from_numpy((scan.images + 1000) / 2000)[None, None]
    torch.testing.assert_close(found.upper, net.predict(x).upper[0, 0] * 2000 - 1000, rtol=1e-4, atol=1e-2)


def test_methods_that_fail_in_three_dimensions_get_no_advice_on_them() -> None:
    net = inn.IntervalNetwork(nn.Conv2d(1, 1, 3, padding=1).eval(), layers="all")

    with pytest.raises(ValueError, match="does not take this input") as refused:
        predict_volume(net, volume(), patch=(3, 6, 6), overlap=0.0, progress=False)

    assert not hasattr(refused.value, "__notes__")


@pytest.mark.rotating
@pytest.mark.parametrize("patch", [None, (12, 10), (6, 4), (7, 7), (20, 6), (3, 6, 4), (2, 5, 5), (8, 4, 16)], ids=str)
@pytest.mark.parametrize("overlap", [0.0, 0.5, 0.8])
def test_bounds_that_contain_the_truth_in_each_patch_contain_it_blended(patch: Any, overlap: float) -> None:
    scan, method = volume(), Noisy()

    found = predict_volume(method, scan, patch=patch, overlap=overlap, progress=False)

    truth = torch.from_numpy(scan.images)
    assert found.point.shape == truth.shape
    assert (found.below >= 0).all() and (found.above >= 0).all()
    assert (found.lower <= found.point).all() and (found.point <= found.upper).all()
    assert (found.lower <= truth + 0.01).all() and (truth - 0.01 <= found.upper).all()
    wanted = (1, *(patch or (12, 10)))
    assert {shape[1:] for shape in method.shapes} == {wanted}


def test_patches_are_blended_as_weighted_means() -> None:
    scan = volume((1, 1, 6))

    class Numbered:
        count = 0

        def predict(self, *args: Any) -> Prediction:
            (x,) = args
            values = torch.arange(self.count, self.count + len(x))[:, None, None, None].expand(x.shape).float()
            self.count += len(x)
            return Prediction(values, values, values, values)

    found = predict_volume(Numbered(), scan, patch=(1, 4), overlap=0.5, window=(0.0, 1.0), progress=False)

    first, second = np.array([1, 2, 2, 1, 0, 0]), np.array([0, 0, 1, 2, 2, 1])  # of patches 0 and 1
    np.testing.assert_allclose(found.score[0, 0], second / (first + second), rtol=1e-6)
    np.testing.assert_allclose(found.point[0, 0], second / (first + second), rtol=1e-6)


def test_a_network_in_three_dimensions_takes_patches() -> None:
    torch.manual_seed(0)
    net = inn.IntervalNetwork(
        nn.Sequential(nn.Conv3d(1, 1, 1)).eval(), layers="all"
    )  # pixel by pixel, so patches do not matter
    net.set_gaps("0.bias", below=0.01, above=0.02)
    scan = volume()

    found = predict_volume(net, scan, patch=(2, 8, 8), overlap=0.5, batch_size=4, progress=False)

    x = torch.from_numpy((scan.images + 1000) / 2000)[None, None]
    expected = net.predict(x)
    torch.testing.assert_close(found.lower, expected.lower[0, 0] * 2000 - 1000, rtol=1e-4, atol=1e-2)
    torch.testing.assert_close(found.score, torch.full_like(found.score, 60.0), rtol=1e-4, atol=1e-2)


@pytest.mark.rotating
@pytest.mark.parametrize("patch", [(14, 11), (9, 40, 30)], ids=str)
def test_patches_give_what_whole_slices_or_volumes_give(patch: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d if len(patch) == 2 else nn.Conv3d
    net = inn.IntervalNetwork(
        nn.Sequential(conv(1, 2, 3, padding=1), nn.ReLU(), conv(2, 1, 3, padding=1)).eval(), layers="all"
    )
    net.set_gaps("2.weight", below=0.01, above=0.02)
    scan = volume((20, 40, 30))

    found = predict_volume(net, scan, patch=patch, progress=False)

    x = torch.from_numpy((scan.images + 1000) / 2000)
    expected = net.predict(x[:, None] if len(patch) == 2 else x[None, None])
    for name, offset in (("point", -1000), ("lower", -1000), ("upper", -1000), ("score", 0)):
        whole = expected[name].view_as(x) * 2000 + offset
        torch.testing.assert_close(found[name], whole, rtol=1e-4, atol=1e-2)


def test_patches_of_a_network_that_looks_everywhere_are_blended_if_asked() -> None:
    method, scan = inn.ConstantWidth(nn.InstanceNorm2d(1).eval()), volume((2, 40, 30))

    with pytest.raises(ValueError, match=r"blend patches: predict_volume\(..., overlap=0.25\)"):
        predict_volume(method, scan, patch=(20, 30), progress=False)
    found = predict_volume(method, scan, patch=(20, 30), overlap=0.25, progress=False)

    assert found.point.shape == (2, 40, 30)


def test_images_are_cut_to_the_window_and_unit_images_are_left_alone() -> None:
    seen: list[Tensor] = []

    class Watching:
        def predict(self, *args: Any) -> Prediction:
            seen.append(args[0])
            return Prediction.of(inn.Interval(args[0], torch.ones_like(args[0]), torch.ones_like(args[0])))

    values = np.array([[[-1024, -160, 40, 240, 3000]]], np.float32)
    hu = predict_volume(Watching(), volume((1, 1, 5), images=values), window=(-160, 240), progress=False)
    unit = predict_volume(Watching(), volume((1, 1, 5), images=values / 3000, unit="unit"), progress=False)

    assert seen[0].flatten().tolist() == [0, 0, 0.5, 1, 1]
    assert hu.point.flatten().tolist() == [-160, -160, 40, 240, 240] and hu.below.unique().tolist() == [400]
    torch.testing.assert_close(unit.point, torch.from_numpy(values / 3000))
    assert unit.below.unique().tolist() == [1]


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patch": (4,)}, "patch must be"),
        ({"patch": (4, 0)}, "patch must be"),
        ({"overlap": 1.0}, r"overlap must lie in \[0, 1\)"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
    ],
)
def test_what_cannot_be_asked_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predict_volume(Noisy(), volume(), progress=False, **options)


def test_a_method_must_keep_the_size() -> None:
    class Halving:
        def predict(self, *args: Any) -> Prediction:
            half = args[0][..., ::2]
            return Prediction(half, half, half, half)

    with pytest.raises(ValueError, match=r"must have shape \(5, 1, 12, 10\), like x, got \(5, 1, 12, 5\)"):
        predict_volume(Halving(), volume(), progress=False)


def test_progress_is_shown_if_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    predict_volume(Noisy(), volume(), progress=False)
    assert capsys.readouterr().out == ""

    predict_volume(Noisy(), volume(), progress=True)
    assert "predicting" in capsys.readouterr().out


# --- NIfTI ---


def test_nifti_lies_on_the_file_that_was_read(tmp_path: Path) -> None:
    affine = np.array([[0, -0.5, 0, 40], [0.75, 0, 0, -30], [0, 0, -2.5, 60], [0, 0, 0, 1]])
    nibabel.save(nibabel.Nifti1Image(np.arange(60, dtype=np.int16).reshape(4, 5, 3), affine), tmp_path / "ct.nii.gz")
    (scan,) = data.read(tmp_path)
    prediction = random_prediction(scan.images.shape)

    written = write_volume(tmp_path / "out" / "p", prediction, scan)

    assert [path.name for path in written.values()] == [f"{name}.nii.gz" for name in QUANTITIES]
    for name, path in written.items():
        image = nibabel.load(path)
        assert image.shape == (4, 5, 3)
        np.testing.assert_allclose(image.affine, affine, atol=1e-6)
        (again,) = data.read(path)
        expected = np.maximum(prediction[name].numpy(), -1024)
        np.testing.assert_array_equal(again.images, expected)


def test_nifti_of_a_dicom_series_lies_where_the_series_does(tmp_path: Path) -> None:
    series(tmp_path / "ct", 4)
    (scan,) = data.read(tmp_path / "ct")
    as_read = Prediction(*(torch.from_numpy(scan.images),) + (torch.zeros(scan.images.shape),) * 3)

    written = write_volume(tmp_path / "out", as_read, scan)

    image = nibabel.load(written["point"])
    assert nibabel.aff2axcodes(image.affine) == ("R", "A", "S")
    place = np.diag([-1, -1, 1, 1]) @ np.array([-100.5 + 3 * 0.5, -90.25 + 2 * 0.75, -6, 1])  # slice 2, row 2, column 3
    i, j, k = np.rint(np.linalg.solve(image.affine, place))[:3].astype(int)
    assert image.get_fdata()[i, j, k] == pixels(2)[2, 3] - 1024


def test_slices_that_are_missing_cannot_be_nifti(tmp_path: Path) -> None:
    series(tmp_path / "ct", 6)[3].unlink()
    (scan,) = data.read(tmp_path / "ct")
    prediction = random_prediction(scan.images.shape)

    with pytest.raises(ValueError, match="write DICOM instead"):
        write_volume(tmp_path / "out", prediction, scan)

    assert not (tmp_path / "out").exists() and [p.name for p in tmp_path.iterdir()] == ["ct"]
    written = write_volume(tmp_path / "out", prediction, scan, form="dicom")
    (again,) = data.read(written["point"])
    assert again.z is not None and scan.z is not None
    np.testing.assert_array_equal(again.z, scan.z)


# --- DICOM ---


def read_back(folder: Path) -> list[pydicom.Dataset]:
    return [pydicom.dcmread(path) for path in sorted(folder.iterdir())]


def test_dicom_bounds_are_rounded_outwards(tmp_path: Path) -> None:
    series(tmp_path / "ct", 4)
    (scan,) = data.read(tmp_path / "ct")
    prediction = random_prediction(scan.images.shape)

    written = write_volume(tmp_path / "out", prediction, scan, form="dicom")

    found = {}
    for name, folder in written.items():
        slices = read_back(folder)
        slope = float(slices[0].RescaleSlope)
        found[name] = np.stack([s.pixel_array * slope + float(s.RescaleIntercept) for s in slices])
        error = found[name] - prediction[name].numpy().astype(np.float64)
        assert np.abs(error).max() <= slope <= (1 if name == "direction" else 0.125)
        assert slices[0].pixel_array.dtype == np.int16
    assert (found["lower"] <= found["point"]).all() and (found["point"] <= found["upper"]).all()
    assert (found["lower"] <= prediction.lower.numpy()).all() and (found["upper"] >= prediction.upper.numpy()).all()
    assert (found["score"] >= prediction.score.numpy()).all()
    np.testing.assert_array_equal(found["direction"], prediction.direction.numpy())


@pytest.mark.rotating
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 30.0, 1e4])
def test_dicom_holds_values_of_any_size(tmp_path: Path, scale: float) -> None:
    scan = volume()
    plain = random_prediction(scan.images.shape)
    prediction = Prediction(*(scale * part for part in (plain.point, plain.below, plain.above, plain.score)))

    written = write_volume(tmp_path / "out", prediction, scan, form="dicom")

    numbers = {name: np.stack([s.pixel_array for s in read_back(written[name])]) for name in QUANTITIES}
    assert (numbers["lower"] <= numbers["point"]).all() and (numbers["point"] <= numbers["upper"]).all()
    first = read_back(written["upper"])[0]
    values = first.pixel_array * float(first.RescaleSlope) + float(first.RescaleIntercept)
    np.testing.assert_allclose(values, prediction.upper[0], atol=max(scale, 0.05) * 0.2)


def test_dicom_series_are_new_and_keep_patient_study_and_place(tmp_path: Path) -> None:
    sources = series(tmp_path / "ct", 4)
    (scan,) = data.read(tmp_path / "ct")

    written = write_volume(tmp_path / "out", random_prediction(scan.images.shape), scan, form="dicom")

    first = [pydicom.dcmread(path) for path in sources]
    derived = {name: read_back(folder) for name, folder in written.items()}
    every = [s for slices in derived.values() for s in slices]
    assert len({s.SOPInstanceUID for s in every} | {s.SOPInstanceUID for s in first}) == 6 * 4
    assert len({s.SeriesInstanceUID for s in every} | {first[0].SeriesInstanceUID}) == 6
    assert sorted({s.SeriesNumber for s in every}) == [301, 302, 303, 304, 305]
    for name, slices in derived.items():
        for new, old in zip(slices, first, strict=True):
            for tag in ("StudyInstanceUID", "FrameOfReferenceUID", "ImagePositionPatient", "ImageOrientationPatient"):
                assert new[tag].value == old[tag].value
            for tag in ("PixelSpacing", "SliceThickness", "PatientName", "PatientID", "PatientBirthDate", "StudyDate"):
                assert new[tag].value == old[tag].value
            assert new.ImageType == ["DERIVED", "SECONDARY", "AXIAL"] and new.Modality == "CT"
            assert new.SourceImageSequence[0].ReferencedSOPInstanceUID == old.SOPInstanceUID
            assert new.SeriesDescription == f"INN {name}"
            assert new.RescaleType == ("US" if name == "direction" else "HU")
            assert new.file_meta.MediaStorageSOPInstanceUID == new.SOPInstanceUID


def test_dicom_keeps_the_grid_of_a_prone_patient(tmp_path: Path) -> None:
    for i in range(3):
        tags = {"ImageOrientationPatient": [-1, 0, 0, 0, -1, 0], "ImagePositionPatient": [50, 60, -2 * i]}
        save(tmp_path / "ct" / f"{i}.dcm", slice_of(pixels(i), **tags))
    (scan,) = data.read(tmp_path / "ct")
    as_read = Prediction(*(torch.from_numpy(scan.images),) + (torch.zeros(scan.images.shape),) * 3)

    written = write_volume(tmp_path / "out", as_read, scan, form="dicom")

    slices = read_back(written["point"])
    assert slices[1].ImageOrientationPatient == [-1, 0, 0, 0, -1, 0]
    values = slices[1].pixel_array * float(slices[1].RescaleSlope) + float(slices[1].RescaleIntercept)
    np.testing.assert_array_equal(values, pixels(1).astype(np.float32) - 1024)
    (again,) = data.read(written["point"])
    np.testing.assert_array_equal(again.images, scan.images)


def test_dicom_of_another_kind_of_file_has_its_geometry(tmp_path: Path) -> None:
    nibabel.save(nibabel.Nifti1Image(np.zeros((4, 5, 3)), np.diag([-0.5, 0.75, 2.5, 1])), tmp_path / "someone.nii")
    (scan,) = data.read(tmp_path / "someone.nii")
    prediction = random_prediction(scan.images.shape)

    written = write_volume(tmp_path / "out", prediction, scan, form="dicom")

    (again,) = data.read(written["upper"], errors="refuse")
    np.testing.assert_allclose(again.images, prediction.upper, atol=0.1)
    assert again.geometry is not None and scan.geometry is not None
    np.testing.assert_allclose(again.geometry.affine, scan.geometry.affine)
    assert {s.PatientID for s in read_back(written["lower"])} == {"someone"}
    assert len({s.StudyInstanceUID for folder in written.values() for s in read_back(folder)}) == 1


def test_nothing_of_a_patient_is_shown_when_writing_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = series(tmp_path / "ct", 3)
    (scan,) = data.read(tmp_path / "ct")
    prediction = random_prediction(scan.images.shape)
    broken = paths[1].read_bytes().replace(b"-100.5\\-90.25\\", b"Xanthippe\\Quux", 1)
    paths[1].write_bytes(broken)

    with pytest.raises(ValueError, match="slice 2 could not be written") as error:
        write_volume(tmp_path / "out", prediction, scan, form="dicom")

    shown = [str(error.value), repr(error.value.__context__), repr(error.value.__cause__), *capsys.readouterr()]
    assert not [text for text in shown for secret in SECRETS if secret.lower() in text.lower()]
    assert [p.name for p in tmp_path.iterdir()] == ["ct"]
    paths[1].unlink()
    with pytest.raises(FileNotFoundError, match=r"002\.dcm is gone"):
        write_volume(tmp_path / "out", prediction, scan, form="dicom")


# --- either ---


@pytest.mark.rotating
@pytest.mark.parametrize("form", ["nifti", "dicom"])
def test_a_folder_is_replaced_only_if_asked_and_ours(tmp_path: Path, form: Any) -> None:
    scan = volume()
    out = tmp_path / "out"
    write_volume(out, random_prediction(scan.images.shape), scan, form=form)

    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_volume(out, random_prediction(scan.images.shape, 1), scan, form=form)
    again = random_prediction(scan.images.shape, 2)
    written = write_volume(out, again, scan, form="nifti", overwrite=True)

    (found,) = data.read(written["upper"])
    np.testing.assert_array_equal(found.images, np.maximum(again.upper.numpy(), -1024))
    assert [p.name for p in tmp_path.iterdir()] == ["out"] and len(list(out.iterdir())) == 5
    (out / "thesis.tex").touch()
    with pytest.raises(FileExistsError, match="holds more than a prediction"):
        write_volume(out, again, scan, overwrite=True)


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    scan = volume()
    prediction = random_prediction(scan.images.shape)

    with pytest.raises(ValueError, match="form must be"):
        write_volume(tmp_path / "out", prediction, scan, form="png")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must have shape \(5, 12, 10\)"):
        write_volume(tmp_path / "out", prediction[:2], scan)
    with pytest.raises(ValueError, match="the lower must be finite"):
        write_volume(tmp_path / "out", replace(prediction, point=prediction.point / 0), scan)
    with pytest.raises(ValueError, match=r"Geometry\.regular"):
        write_volume(tmp_path / "out", prediction, replace(scan, geometry=None))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rotating
@pytest.mark.parametrize("window", [(1000.0, -1000.0), (0.0, 0.0), (0.0, float("inf"))])
def test_a_window_that_is_none_is_refused(window: tuple[float, float]) -> None:
    volume = Volume(np.zeros((1, 4, 4), np.float32), "p", "v", "array", "hu", np.arange(1))

    with pytest.raises(ValueError, match="ascending order"):
        predict_volume(inn.ConstantWidth(nn.Identity()), volume, window=window, progress=False)
