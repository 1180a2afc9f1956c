"""DICOM: series are read as they lie in the patient, and what is no CT slice is named."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydicom.encaps import encapsulate
from pydicom.uid import ImplicitVRLittleEndian, JPEG2000Lossless, JPEGLosslessSV1, JPEGLSLossless, RLELossless

from data.readers.dicoms import SECRETS, lossless_jpeg, pixels, save, save_bare, series, slice_of, uid
from intervalnn import data
from intervalnn.data import Volume, Volumes

HASHED = "p-" + hashlib.sha256(b"MRN-4711").hexdigest()[:12]


def only(volumes: Volumes) -> Volume:
    (volume,) = volumes
    return volume


def reasons(volumes: Volumes) -> dict[str, str]:
    list(volumes)
    return {skipped.path: skipped.reason for skipped in volumes.report.skipped}


def test_a_series_is_sorted_by_position_and_calibrated(tmp_path: Path) -> None:
    paths = series(tmp_path / "a")

    volume = only(data.read(tmp_path))

    np.testing.assert_array_equal(volume.images, np.stack([pixels(i) for i in range(4)]).astype(np.float32) - 1024)
    assert volume.images.dtype == np.float32 and volume.unit == "hu" and volume.kind == "dicom"
    assert volume.z is not None and volume.z.tolist() == [0, -3, -6, -9]
    assert volume.spacing == (3, 0.75, 0.5)
    assert volume.index.tolist() == [1, 2, 3, 4]
    assert volume.sources == tuple(paths)
    assert volume.name == "a" and volume.subject == HASHED
    assert volume.geometry is not None
    np.testing.assert_allclose(volume.geometry.affine @ [2, 3, 4, 1], [-100.5 + 4 * 0.5, -90.25 + 3 * 0.75, -6, 1])


@pytest.mark.parametrize(
    "syntax", [ImplicitVRLittleEndian, RLELossless, JPEGLSLossless, JPEG2000Lossless], ids=lambda s: s.name
)
def test_every_transfer_syntax_gives_the_same_pixels(tmp_path: Path, syntax: Any) -> None:
    stored = np.random.default_rng(0).integers(0, 4096, (64, 48)).astype(np.uint16)
    save(tmp_path / "1.dcm", slice_of(stored), syntax)

    volume = only(data.read(tmp_path, errors="refuse"))

    np.testing.assert_array_equal(volume.images[0], stored.astype(np.float32) - 1024)


def test_lossless_jpeg_is_read(tmp_path: Path) -> None:
    stored = np.random.default_rng(0).integers(0, 4096, (20, 16)).astype(np.uint16)
    slice_ = slice_of(stored)
    slice_.PixelData = encapsulate([lossless_jpeg(stored)])
    slice_["PixelData"].is_undefined_length = True
    save(tmp_path / "1.dcm", slice_, JPEGLosslessSV1)

    volume = only(data.read(tmp_path, errors="refuse"))

    np.testing.assert_array_equal(volume.images[0], stored.astype(np.float32) - 1024)


def test_a_file_without_preamble_is_read_whatever_its_name(tmp_path: Path) -> None:
    save_bare(tmp_path / "IM0001", slice_of(pixels(1)))

    volume = only(data.read(tmp_path, errors="refuse"))

    np.testing.assert_array_equal(volume.images[0], pixels(1).astype(np.float32) - 1024)


def test_signed_pixels_and_fractions_are_rescaled(tmp_path: Path) -> None:
    stored = np.array([[-1000, 0], [500, 2000]], np.int16)
    save(tmp_path / "1.dcm", slice_of(stored, RescaleSlope="0.5", RescaleIntercept="-10"))

    assert only(data.read(tmp_path)).images[0].tolist() == [[-510, -10], [240, 990]]


@pytest.mark.parametrize("value", [-2000, 63536])
def test_padding_is_air(tmp_path: Path, value: int) -> None:
    stored = np.array([[-2000, 0], [-1990, 40]], np.int16)
    slice_ = slice_of(stored, RescaleIntercept=0)
    slice_.add_new("PixelPaddingValue", "SS" if value < 0 else "US", value)
    save(tmp_path / "1.dcm", slice_)

    assert only(data.read(tmp_path)).images[0].tolist() == [[-1024, 0], [-1024, 40]]


def test_padding_above_the_air_is_air_too(tmp_path: Path) -> None:
    stored = np.array([[3000, 3005], [1024, 3006]], np.uint16)
    slice_ = slice_of(stored)
    slice_.add_new("PixelPaddingValue", "US", 3000)
    slice_.add_new("PixelPaddingRangeLimit", "US", 3005)
    save(tmp_path / "1.dcm", slice_)

    assert only(data.read(tmp_path)).images[0].tolist() == [[-1024, -1024], [0, 1982]]


def test_a_prone_patient_is_turned(tmp_path: Path) -> None:
    for i in range(3):
        tags = {"ImageOrientationPatient": [-1, 0, 0, 0, -1, 0], "ImagePositionPatient": [50, 60, -2 * i]}
        save(tmp_path / f"{i}.dcm", slice_of(pixels(i), **tags))

    volume = only(data.read(tmp_path))

    np.testing.assert_array_equal(volume.images[1], pixels(1)[::-1, ::-1].astype(np.float32) - 1024)
    assert volume.geometry is not None
    first = [50 - 9 * 0.5, 60 - 11 * 0.75, 0, 1]  # 10 columns and 12 rows on from where the file begins
    np.testing.assert_allclose(volume.geometry.affine @ [0, 0, 0, 1], first)
    np.testing.assert_allclose(volume.geometry.affine @ [1, 11, 9, 1], [50, 60, -2, 1])


@pytest.mark.parametrize("count", [1, 3])
def test_rows_that_run_to_the_front_are_turned(tmp_path: Path, count: int) -> None:
    for i in range(count):
        save(tmp_path / f"{i}.dcm", slice_of(pixels(i), -3.0 * i, ImageOrientationPatient=[1, 0, 0, 0, -1, 0]))

    volume = only(data.read(tmp_path))

    np.testing.assert_array_equal(volume.images[0], pixels(0)[::-1].astype(np.float32) - 1024)
    assert volume.geometry is not None and volume.geometry.axes == (1, -2, 3)
    np.testing.assert_allclose(volume.geometry.affine @ [0, 11, 0, 1], [-100.5, -90.25, 0, 1])
    np.testing.assert_allclose(volume.geometry.affine[:3, 0], [0, 0, -3])


def test_a_tilted_gantry_is_axial_and_keeps_its_shear(tmp_path: Path) -> None:
    down = [0, np.cos(0.3), -np.sin(0.3)]
    for i in range(3):
        save(tmp_path / f"{i}.dcm", slice_of(pixels(i), -5.0 * i, ImageOrientationPatient=[1, 0, 0, *down]))

    volume = only(data.read(tmp_path))

    assert volume.geometry is not None and volume.spacing is not None
    np.testing.assert_allclose(volume.geometry.affine[:3, 0], [0, 0, -5])
    np.testing.assert_allclose(volume.spacing[0], 5 * np.cos(0.3))


def test_one_slice_has_its_thickness(tmp_path: Path) -> None:
    save(tmp_path / "1.dcm", slice_of(pixels(0), 7.0))

    volume = only(data.read(tmp_path))

    assert volume.spacing == (3, 0.75, 0.5)
    assert volume.geometry is not None
    np.testing.assert_allclose(volume.geometry.affine[:3, 0], [0, 0, -3])


def test_two_series_in_one_folder_are_two_volumes_of_one_subject(tmp_path: Path) -> None:
    series(tmp_path / "x", suffix="a.dcm", SeriesInstanceUID=uid("a"), ConvolutionKernel="B30f")
    series(tmp_path / "x", 2, suffix="b.dcm", SeriesInstanceUID=uid("b"), ConvolutionKernel=["D45f", "2"])

    volumes = data.read(tmp_path)

    assert sorted(len(volume) for volume in volumes) == [2, 4]
    assert len({volume.name for volume in volumes}) == 2
    assert volumes.subjects == (HASHED,)
    assert [len(v) for v in data.read(tmp_path, kernel="d45*")] == [2]


def test_patients_in_mixed_folders_are_kept_apart(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        series(tmp_path / folder, 2, suffix="a.dcm", PatientID="one", SeriesInstanceUID=uid(f"one{folder}"))
        series(tmp_path / folder, 3, suffix="b.dcm", PatientID="two", SeriesInstanceUID=uid(f"two{folder}"))

    volumes = data.read(tmp_path)

    sizes: dict[str, list[int]] = {}
    for volume in volumes:
        sizes.setdefault(volume.subject, []).append(len(volume))
    assert sorted(sizes.values()) == [[2, 2], [3, 3]]
    parts = data.split_by_subject(volumes, shares={"train": 0.5, "test": 0.5})
    assert [len({v.subject for v in part}) for part in parts.values()] == [1, 1]


def test_one_series_uid_of_two_patients_is_two_volumes(tmp_path: Path) -> None:
    series(tmp_path / "x", 2, PatientID="one")
    series(tmp_path / "y", 3, PatientID="two")

    assert sorted(len(volume) for volume in data.read(tmp_path)) == [2, 3]


@pytest.mark.parametrize(
    "folder",
    ["1mm B30/full_1mm/L067/full_1mm", "L067/full_3mm", "sets/L067"],
)
def test_the_low_dose_layouts_name_their_patients(tmp_path: Path, folder: str) -> None:
    series(tmp_path / folder, 2, suffix=".IMA")

    assert data.read(tmp_path).subjects == ("L067",)
    assert data.read(tmp_path / folder.partition("/L067")[0].removesuffix("/full_3mm")).subjects == ("L067",)


def test_a_flat_folder_names_patients_by_file(tmp_path: Path) -> None:
    name = "L506_FD_3_1.CT.0001.0105.2015.12.22.20.19.39.34094.358586575.IMA"
    save(tmp_path / name, slice_of(pixels(0)))

    assert data.read(tmp_path).subjects == ("L506",)


def test_dose_folders_are_chosen_by_pattern(tmp_path: Path) -> None:
    for patient in ("L067", "L096"):
        series(tmp_path / patient / "full_3mm", 2, suffix=".IMA", SeriesInstanceUID=uid(f"{patient}f"))
        series(tmp_path / patient / "quarter_3mm", 3, suffix=".IMA", SeriesInstanceUID=uid(f"{patient}q"))

    volumes = data.read(tmp_path, files="*/full_3mm/*")

    assert [(v.subject, len(v), v.name) for v in volumes] == [
        ("L067", 2, "L067/full_3mm"),
        ("L096", 2, "L096/full_3mm"),
    ]


def test_the_layout_of_the_cancer_imaging_archive(tmp_path: Path) -> None:
    study = tmp_path / "LIDC-IDRI" / "LIDC-IDRI-0001" / "01-01-2000-NA-NA-30178"
    full = {"PatientID": "LIDC-IDRI-0001", "SeriesDescription": "Full Dose Images"}
    series(study / "3000566.000000-Full Dose Images-03192", 2, SeriesInstanceUID=uid("f"), **full)
    low = {"PatientID": "LIDC-IDRI-0001", "SeriesDescription": "Low Dose Images"}
    series(study / "3000567.000000-Low Dose Images-03193", 2, SeriesInstanceUID=uid("l"), **low)
    (study / "LICENSE").write_text("words")

    volumes = data.read(tmp_path, description="full dose images", errors="refuse")

    assert volumes.subjects == ("LIDC-IDRI-0001",)
    assert [Path(volume.name).name for volume in volumes] == ["3000566.000000-Full Dose Images-03192"]


def test_a_pattern_finds_the_subject(tmp_path: Path) -> None:
    series(tmp_path / "case-12_scan-1")

    assert data.read(tmp_path, subject=r"case-\d+").subjects == ("case-12",)
    assert data.read(tmp_path, subject=r"case-(\d+)").subjects == ("12",)


def test_files_without_a_patient_go_by_folder(tmp_path: Path) -> None:
    series(tmp_path / "x" / "1", 2, PatientID="", SeriesInstanceUID=uid("1"))
    series(tmp_path / "x" / "2", 2, PatientID=None, SeriesInstanceUID=uid("2"))
    series(tmp_path / "y", 2, PatientID="", SeriesInstanceUID=uid("3"))

    volumes = data.read(tmp_path)

    assert len(volumes.subjects) == 2
    assert "no PatientID" in volumes.report.notes[0]


def test_a_slice_at_the_place_of_another_is_dropped(tmp_path: Path) -> None:
    series(tmp_path)
    save(tmp_path / "again.dcm", slice_of(pixels(5), -3.0, InstanceNumber=9))

    volumes = data.read(tmp_path)

    assert reasons(volumes) == {"again.dcm": "lies where another slice of its series lies"}
    np.testing.assert_array_equal(only(volumes).images[1], pixels(1).astype(np.float32) - 1024)


def test_missing_slices_are_reported(tmp_path: Path) -> None:
    series(tmp_path / "a", 6)[3].unlink()

    volumes = data.read(tmp_path)

    assert only(volumes).notes == ("slices are missing after number 2: 6 mm, where the step is 3",)
    assert volumes.report.notes == (f"a: {only(volumes).notes[0]}",)
    assert only(volumes).geometry is not None and not only(volumes).geometry.even  # type: ignore[union-attr]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "localizer": ({"ImageType": ["ORIGINAL", "PRIMARY", "LOCALIZER"]}, "is a localizer"),
    "coronal": ({"ImageOrientationPatient": [1, 0, 0, 0, 0, -1]}, "is not axial"),
    "sagittal": ({"ImageOrientationPatient": [0, 1, 0, 0, 0, -1]}, "is not axial"),
    "pet": ({"Modality": "PT"}, "is no CT, its modality is PT"),
    "odd modality": ({"Modality": "QUUX 1961"}, "is no CT, its modality is another"),
    "frames": ({"NumberOfFrames": 3}, "holds several slices"),
    "colour": ({"SamplesPerPixel": 3}, "is a colour image"),
    "projection": ({"ImagePositionPatient": None}, "is no calibrated slice, it has no ImagePositionPatient"),
    "capture": ({"RescaleSlope": None}, "is no calibrated slice, it has no RescaleSlope"),
    "atomic number": ({"RescaleType": "Z_EFF"}, "does not hold Hounsfield units"),
    "skewed": (
        {"ImageOrientationPatient": [1, 0, 0, 0.5, 0.8, 0]},
        "has rows and columns that are not at right angles",
    ),
    "spacing": ({"PixelSpacing": [0, 1]}, "has a position or a spacing that cannot be"),
    "no pixels": ({"PixelData": None}, "has no pixels, or was cut short"),
}


@pytest.mark.parametrize(("tags", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_axial_ct_slice_is_skipped_or_refused(tmp_path: Path, tags: dict[str, Any], reason: str) -> None:
    series(tmp_path / "good")
    save(tmp_path / "bad" / "1.dcm", slice_of(pixels(0), 50.0, **tags))

    volumes = data.read(tmp_path)

    (path, found), *others = reasons(volumes).items()
    assert path == "bad/1.dcm" and found.startswith(reason) and not others
    assert len(only(volumes)) == 4
    with pytest.raises(ValueError, match=r"bad/1\.dcm .*errors='skip'"):
        list(data.read(tmp_path, errors="refuse"))


def test_slices_unlike_the_rest_of_their_series_are_skipped(tmp_path: Path) -> None:
    series(tmp_path)
    save(tmp_path / "wide.dcm", slice_of(pixels(0, (12, 14)), 3.0))
    save(tmp_path / "fine.dcm", slice_of(pixels(0), 6.0, PixelSpacing=[0.3, 0.3]))

    volumes = data.read(tmp_path)

    found = reasons(volumes)
    assert found["wide.dcm"] == "has another size (12 x 14) than most of its series (12 x 10)"
    assert found["fine.dcm"].startswith("has another spacing or direction")
    assert len(only(volumes)) == 4


def test_damaged_files_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    series(tmp_path, 5)
    whole = (tmp_path / "003.dcm").read_bytes()
    (tmp_path / "003.dcm").write_bytes(whole[:-50])  # within the pixels
    (tmp_path / "004.dcm").write_bytes(whole[:600])  # within the header
    (tmp_path / "text.dcm").write_text("this is no image, but it is long enough to be taken for one" * 10)
    (tmp_path / "empty.dcm").write_bytes(b"")
    (tmp_path / "noise.dcm").write_bytes(np.random.default_rng(0).bytes(5000))
    (tmp_path / "DICOMDIR").write_bytes(b"\0" * 128 + b"DICM")

    volumes = data.read(tmp_path)

    assert len(only(volumes)) == 3
    assert reasons(volumes).keys() == {"003.dcm", "004.dcm", "text.dcm", "empty.dcm", "noise.dcm"}


@pytest.mark.parametrize("syntax", [RLELossless, JPEGLSLossless, JPEG2000Lossless], ids=lambda s: s.name)
@pytest.mark.parametrize("share", [0.5, 0.9, 0.97])
def test_compressed_pixels_that_were_cut_short_are_skipped(tmp_path: Path, syntax: Any, share: float) -> None:
    stored = np.random.default_rng(0).integers(0, 4096, (64, 64)).astype(np.uint16)
    save(tmp_path / "good.dcm", slice_of(stored), syntax)
    bad = save(tmp_path / "bad.dcm", slice_of(stored, 3.0), syntax)
    content = bad.read_bytes()
    bad.write_bytes(content[: int(share * len(content))])

    volumes = data.read(tmp_path)

    assert reasons(volumes).keys() == {"bad.dcm"}
    assert len(only(volumes)) == 1


def test_a_missing_decoder_is_named_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pydicom.pixels.decoders import JPEG2000LosslessDecoder

    save(tmp_path / "1.dcm", slice_of(pixels(0, (64, 64))), JPEG2000Lossless)
    monkeypatch.setattr(JPEG2000LosslessDecoder, "_available", {})

    volumes = data.read(tmp_path)

    (skipped,) = volumes.report.skipped
    assert "JPEG 2000" in skipped.reason and 'pip install "intervalnn[dicom]"' in skipped.reason
    with pytest.raises(ValueError, match=r"there is no volume that could be read: 1 files skipped"):
        list(volumes)


def test_a_folder_without_any_ct_is_refused_with_the_reason(tmp_path: Path) -> None:
    for i in range(3):
        save(tmp_path / f"{i}.dcm", slice_of(pixels(0), 3.0 * i, Modality="MR"))

    volumes = data.read(tmp_path)

    wanted = (
        r"no volume that could be read: 3 files skipped, 0 notes\n  0.dcm \(and 2 more\) is no CT, its modality is MR"
    )
    with pytest.raises(ValueError, match=wanted):
        list(volumes)
    assert "read with values='unit'" in volumes.report.skipped[0].reason


def test_nothing_of_a_patient_is_ever_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    series(tmp_path / "a")
    whole = save(tmp_path / "b" / "cut.dcm", slice_of(pixels(0))).read_bytes()
    (tmp_path / "b" / "cut.dcm").write_bytes(whole[:-9])
    broken = whole.replace(b"-100.5\\-90.25\\0.0 ", b"Xanthippe\\Quux\\0.0")  # a name where numbers should be
    assert broken != whole
    (tmp_path / "b" / "name.dcm").write_bytes(broken)
    (tmp_path / "b" / "early.dcm").write_bytes(whole[:500])
    for name, (tags, _) in BAD.items():
        save(tmp_path / name / "1.dcm", slice_of(pixels(0), **tags))

    volumes = data.read(tmp_path)
    shown = [repr(volumes), repr(volumes.report), str(volumes.report)]
    for volume in volumes:
        shown += [repr(volume), volume.subject, volume.name, str(volume.notes), str(volume.sources)]
    shown += [str(volumes.report), repr(volumes.report.skipped), repr(volumes.report.notes)]
    for folder in ("b", *BAD):
        for path in sorted((tmp_path / folder).iterdir()):
            with pytest.raises(ValueError, match=r"\.dcm") as error:
                list(data.read(path, errors="refuse"))
            shown += [str(error.value), repr(error.value.__cause__), repr(error.value.__context__)]
    shown += [caplog.text, *capsys.readouterr()]

    assert len(volumes.report.skipped) == len(BAD) + 3
    assert not [text for text in shown for secret in SECRETS if secret.lower() in text.lower()]
