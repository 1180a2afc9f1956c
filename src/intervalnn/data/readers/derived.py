"""Derived: DICOM series computed from a volume, which a viewer shows in the volume's place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from intervalnn.data.readers.dicom_file import pydicom, quiet
from intervalnn.data.readers.volume import Volume, restored

if TYPE_CHECKING:
    from pydicom import Dataset

__all__ = ["Stored", "write_series"]

# What a derived slice shares with its source; where the source lacks one of the first group, it stays empty.
_REQUIRED = [
    *("PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyDate", "StudyTime", "StudyID"),
    *("AccessionNumber", "ReferringPhysicianName", "PositionReferenceIndicator", "KVP", "AcquisitionNumber"),
    "SliceThickness",
]
_COPIED = [
    *("SpecificCharacterSet", "IssuerOfPatientID", "PatientAge", "PatientIdentityRemoved", "DeidentificationMethod"),
    *("StudyInstanceUID", "StudyDescription", "FrameOfReferenceUID", "PatientPosition", "BodyPartExamined"),
    *("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "SpacingBetweenSlices"),
    *("SliceLocation", "LossyImageCompression", "LossyImageCompressionRatio", "LossyImageCompressionMethod"),
]

LONGEST = 1024  # characters that a short text of DICOM may have


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A quantity as whole numbers: its values are ``slope * numbers + intercept``.

    Attributes:
        numbers: ``(slices, rows, columns)``, as the images of the volume.
        slope: A power of two, so that no digit is lost where it is written in decimals.
        intercept: A whole number.
        unit: ``"HU"``, or ``"US"`` where it is another.
        description: What a viewer calls the series.
    """

    numbers: NDArray[np.int16]
    slope: float
    intercept: int
    unit: Literal["HU", "US"]
    description: str


def write_series(folder: Path, quantities: Mapping[str, Stored], volume: Volume, *, promise: str = "") -> None:
    """Write a series for each quantity, into a folder of its name; how they were derived says what is promised.

    If the volume was read from DICOM, patient, study, frame of reference, place and grid are those of
    its files, which are read again; otherwise the subject is the patient, in a study of its own.
    """
    generate_uid = pydicom().uid.generate_uid
    sources = _sources(volume)
    missing = {"StudyInstanceUID": generate_uid(None), "FrameOfReferenceUID": generate_uid(None)}
    now = datetime.now().astimezone()
    for number, (name, quantity) in enumerate(quantities.items(), 1):
        (folder / name).mkdir(parents=True)
        numbers = restored(quantity.numbers, volume.positioned().axes) if _is_dicom(volume) else quantity.numbers
        series = _Series({**missing, "SeriesInstanceUID": generate_uid(None)}, number, now, quantity, promise)
        for i, (source, image) in enumerate(zip(sources, numbers, strict=True), 1):
            wrong = _save(folder / name / f"{i:04d}.dcm", source, image, series, i)
            if wrong is not None:
                raise ValueError(
                    f"slice {i} could not be written ({wrong}): its source holds what DICOM does not allow"
                )


@dataclass(frozen=True, slots=True, eq=False)
class _Series:
    """What all slices of a series share."""

    uids: Mapping[str, str]
    number: int
    now: datetime
    quantity: Stored
    promise: str


def _save(path: Path, source: Dataset, image: NDArray[np.int16], series: _Series, instance: int) -> str | None:
    """Write a slice; return the type of what went wrong, if anything, since its message may quote what a file holds."""
    try:
        with quiet():
            _slice(source, image, series, instance).save_as(path, enforce_file_format=True)
    except (ValueError, TypeError, AttributeError) as error:
        return type(error).__name__
    return None


def _is_dicom(volume: Volume) -> bool:
    return volume.kind == "dicom" and len(volume.sources) == len(volume)


def _sources(volume: Volume) -> list[Dataset]:
    """Return the header of each slice: its file's, or one made of what the volume knows."""
    if _is_dicom(volume):
        gone = next((path for path in volume.sources if not path.exists()), None)
        if gone is not None:
            raise FileNotFoundError(f"{gone.name} is gone, and a derived series needs the files it comes from")
        with quiet():
            return [pydicom().dcmread(path, stop_before_pixels=True, force=True) for path in volume.sources]
    from pydicom.valuerep import format_number_as_ds

    geometry = volume.positioned()
    step, row, column = geometry.spacing
    headers = []
    for origin in geometry.origins:
        header = pydicom().Dataset()
        header.PatientID = volume.subject[:64]
        header.ImagePositionPatient = [format_number_as_ds(float(x)) for x in origin]
        directions = (*geometry.column_step / column, *geometry.row_step / row)
        header.ImageOrientationPatient = [format_number_as_ds(float(x)) for x in directions]
        header.PixelSpacing = [format_number_as_ds(row), format_number_as_ds(column)]
        header.SliceThickness = None if np.isnan(step) else format_number_as_ds(step)
        headers.append(header)
    return headers


def _slice(source: Dataset, image: NDArray[np.int16], series: _Series, instance: int) -> Any:
    from pydicom.dataset import Dataset
    from pydicom.uid import CTImageStorage, generate_uid

    np.array([*source.ImagePositionPatient, *source.ImageOrientationPatient], np.float64)  # it may have changed by now
    quantity, now = series.quantity, series.now
    data = Dataset()
    for tag in _REQUIRED:
        setattr(data, tag, None)
    for tag in (*_REQUIRED, *_COPIED):
        if tag in source:
            data[tag] = source[tag]
    for tag, uid in series.uids.items():
        if tag not in data:
            setattr(data, tag, uid)
    data.SOPClassUID, data.SOPInstanceUID = CTImageStorage, generate_uid(None)
    data.Modality, data.ImageType = "CT", ["DERIVED", "SECONDARY", "AXIAL"]
    data.Manufacturer, data.SoftwareVersions = "intervalnn", "intervalnn"
    told = f". {series.promise}" if series.promise else ""
    data.DerivationDescription = f"Predicted with bounds by an interval neural network{told}"[:LONGEST]
    data.SeriesDescription, data.SeriesNumber = quantity.description, _series_number(source, series.number)
    data.InstanceNumber = instance
    data.SeriesDate = data.ContentDate = now.strftime("%Y%m%d")
    data.SeriesTime = data.ContentTime = now.strftime("%H%M%S")
    if "SOPInstanceUID" in source:
        origin = Dataset()
        origin.ReferencedSOPClassUID, origin.ReferencedSOPInstanceUID = source.SOPClassUID, source.SOPInstanceUID
        data.SourceImageSequence = [origin]
    _add_pixels(data, image, quantity)
    return data


def _add_pixels(data: Dataset, image: NDArray[np.int16], quantity: Stored) -> None:
    """Put an image into a slice, with how its numbers are stored and what they mean."""
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian
    from pydicom.valuerep import format_number_as_ds

    data.Rows, data.Columns = image.shape
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 16, 16, 15, 1
    data.RescaleSlope, data.RescaleIntercept = format_number_as_ds(quantity.slope), str(quantity.intercept)
    data.RescaleType = quantity.unit
    data.add_new("PixelData", "OW", np.ascontiguousarray(image, "<i2").tobytes())
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID


def _series_number(source: Dataset, number: int) -> int:
    """Number the derived series after their source, where there is room."""
    first = int(source.get("SeriesNumber") or 0)
    return 100 * first + number if 0 < first < 2**24 else number
