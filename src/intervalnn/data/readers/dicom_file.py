"""One DICOM file: what its header says, and its pixels in Hounsfield units."""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from intervalnn.data.readers.dicom_unpacked import check_frame, plain
from intervalnn.data.readers.skipped import Unreadable
from intervalnn.data.readers.sources import Options
from intervalnn.data.readers.units import AIR, finite

if TYPE_CHECKING:
    from pydicom import Dataset

__all__ = ["Slice", "header", "pixels", "pydicom", "quiet"]

# All that is read of a file: nothing else that may name a patient is ever looked at.
_HEADER = [
    *("SOPClassUID", "Modality", "ImageType", "PatientID", "StudyInstanceUID", "SeriesInstanceUID"),
    *("SeriesDescription", "ConvolutionKernel", "InstanceNumber", "NumberOfFrames"),
    *("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "SliceThickness", "SpacingBetweenSlices"),
    *("Rows", "Columns", "SamplesPerPixel", "BitsAllocated", "RescaleSlope", "RescaleIntercept", "RescaleType"),
]
_PIXELS = [
    *("Rows", "Columns", "SamplesPerPixel", "PhotometricInterpretation", "PlanarConfiguration", "NumberOfFrames"),
    *("BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "PixelData"),
    *("PixelPaddingValue", "PixelPaddingRangeLimit", "RescaleSlope", "RescaleIntercept"),
]
_NEEDED = [
    *("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "Rows", "Columns"),
    *("RescaleSlope", "RescaleIntercept"),
]
_MODALITIES = {"MR", "PT", "NM", "US", "CR", "DX", "XA", "MG", "OT", "SC", "SR", "PR", "KO", "REG", "SEG"} | {
    *("RTSTRUCT", "RTPLAN", "RTDOSE", "RTIMAGE", "RTRECORD")  # those that may be named; all else is text like any other
}
_ENHANCED_CT = "1.2.840.10008.5.1.4.1.1.2.1"
_AXIAL = 0.8  # least cosine between the slices' normal and the body's axis; a gantry tilts by 30 degrees at most


def pydicom() -> Any:
    """Return the package, or say how to get it."""
    try:
        import pydicom as package
    except ImportError as error:
        raise ImportError('DICOM needs pydicom: pip install "intervalnn[dicom]"') from error
    return package


@contextmanager
def quiet() -> Iterator[None]:
    """Keep pydicom from warning and logging, since its messages may quote what a file holds."""
    loggers = [logging.getLogger(name) for name in ("pydicom", "pylibjpeg", "libjpeg", "openjpeg")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)  # not disabled, since only a level reaches the loggers below
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """What the header of a file says."""

    path: Path
    subject: str
    series: str
    instance: int
    shape: tuple[int, int]
    bits: int
    position: NDArray[np.float64]
    row_step: NDArray[np.float64]
    column_step: NDArray[np.float64]
    thickness: float

    @property
    def grid(self) -> tuple[Any, ...]:
        """What the slices of a series must share."""
        return (self.shape, *(round(float(x), 3) for x in (*self.row_step, *self.column_step)))


def header(path: Path, options: Options) -> Slice | None:
    """Return what a file says of its slice, or None if the user did not ask for it."""
    with quiet():
        header = pydicom().dcmread(
            plain(path, options.max_gib), stop_before_pixels=True, specific_tags=_HEADER, force=True
        )
        if "SOPClassUID" not in header and "Modality" not in header:
            raise Unreadable("is no DICOM file")
        if not _asked_for(header, options):
            return None
        _check(header)
        row, column = (float(x) for x in header.PixelSpacing)
        across, down = np.array(header.ImageOrientationPatient, np.float64).reshape(2, 3)
        position = np.array(header.ImagePositionPatient, np.float64)
        _check_direction(across, down, position, row, column)
        return Slice(
            path=path,
            subject=_subject(header, path, options),
            series=str(header.get("SeriesInstanceUID") or path.parent),
            instance=int(header.get("InstanceNumber") or 0),
            shape=(int(header.Rows), int(header.Columns)),
            bits=int(header.get("BitsAllocated") or 16),
            position=position,
            row_step=row * down,
            column_step=column * across,
            thickness=abs(float(header.get("SpacingBetweenSlices") or header.get("SliceThickness") or "nan")),
        )


def _asked_for(header: Dataset, options: Options) -> bool:
    for wanted, tag in ((options.description, "SeriesDescription"), (options.kernel, "ConvolutionKernel")):
        found = header.get(tag) or ""
        values = [found] if isinstance(found, str) else list(found)
        if wanted is not None and not any(fnmatchcase(str(v).strip().lower(), wanted.lower()) for v in values):
            return False
    return True


def _check(header: Dataset) -> None:
    """Refuse what is no single calibrated CT slice."""
    modality = str(header.get("Modality", ""))
    if modality != "CT":
        known = modality if modality in _MODALITIES else "another"
        raise Unreadable(
            f"is no CT, its modality is {known}; convert it to NIfTI or arrays in [0, 1], and read with values='unit'"
        )
    if "LOCALIZER" in (header.get("ImageType") or ()):
        raise Unreadable("is a localizer")
    if int(header.get("NumberOfFrames") or 1) > 1 or header.get("SOPClassUID") == _ENHANCED_CT:
        raise Unreadable("holds several slices (enhanced CT), which is not supported; convert it to one file a slice")
    if int(header.get("SamplesPerPixel") or 1) != 1:
        raise Unreadable("is a colour image")
    missing = [tag for tag in _NEEDED if header.get(tag) in (None, "")]
    if missing:
        raise Unreadable(f"is no calibrated slice, it has no {', '.join(missing)}")
    if str(header.get("RescaleType") or "HU") not in ("HU", "US"):
        raise Unreadable("does not hold Hounsfield units")
    syntax = _syntax(header)
    if syntax.is_compressed and not _can_decode(syntax):
        raise Unreadable(f'is compressed ({syntax.name}), and no decoder is there: pip install "intervalnn[dicom]"')


def _check_direction(
    across: NDArray[np.float64], down: NDArray[np.float64], position: NDArray[np.float64], row: float, column: float
) -> None:
    lengths = np.linalg.norm(across), np.linalg.norm(down)
    if not np.isfinite([*position, row, column]).all() or position.shape != (3,) or not (row > 0 and column > 0):
        raise Unreadable("has a position or a spacing that cannot be")
    if not np.allclose(lengths, 1, atol=1e-2) or abs(across @ down) > 1e-2:
        raise Unreadable("has rows and columns that are not at right angles")
    if abs(np.cross(across, down)[2]) < _AXIAL:
        raise Unreadable("is not axial")


def _syntax(header: Dataset) -> Any:
    uid = pydicom().uid
    found = header.file_meta.get("TransferSyntaxUID") if hasattr(header, "file_meta") else None
    if found:
        return uid.UID(found)
    implicit, little = header.original_encoding  # without a file header, as what it was read
    return uid.ImplicitVRLittleEndian if implicit else uid.ExplicitVRLittleEndian if little else uid.ExplicitVRBigEndian


def _can_decode(syntax: Any) -> bool:
    from pydicom.pixels.decoders.base import get_decoder

    try:
        return bool(get_decoder(syntax).is_available)
    except NotImplementedError:
        return False


def _subject(header: Dataset, path: Path, options: Options) -> str:
    """Return who it is: what the path says, else a short hash of the patient's number."""
    by_path = options.subject_of(path)
    if by_path is not None:
        return by_path
    patient = str(header.get("PatientID") or "").strip()
    folders = path.relative_to(options.root).parent.parts
    if patient and patient in (options.root.name, *folders):
        return patient
    if not patient:
        patient = folders[0] if folders else str(header.get("StudyInstanceUID") or "")
        options.report.note("some files have no PatientID: their subjects are told apart by folder, or by study")
    return "p-" + hashlib.sha256(patient.encode()).hexdigest()[:12]


def pixels(one: Slice, max_gib: float) -> NDArray[np.float32]:
    """Return a slice in Hounsfield units, as it is stored."""
    with quiet():
        data = pydicom().dcmread(plain(one.path, max_gib), specific_tags=_PIXELS, force=True)
        if "PixelData" not in data:
            raise Unreadable("has no pixels, or was cut short")
        if (data.Rows, data.Columns, int(data.get("NumberOfFrames") or 1)) != (*one.shape, 1):
            raise Unreadable("has another header than a moment before")
        data.file_meta.TransferSyntaxUID = _syntax(data)
        check_frame(one.path, data, max_gib)
        stored = data.pixel_array
        if stored.shape != one.shape:
            raise Unreadable(f"has pixels of shape {stored.shape}, where its header says {one.shape}")
        outside = _padding(data, stored)
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            hu = stored.astype(np.float32) * np.float32(data.RescaleSlope) + np.float32(data.RescaleIntercept)
    hu[outside] = AIR
    return np.maximum(finite(hu), np.float32(AIR))


def _padding(data: Dataset, stored: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which pixels lie outside the field of view."""
    limits = [data.get(tag) for tag in ("PixelPaddingValue", "PixelPaddingRangeLimit")]
    found = [_as_stored(int(value), data) for value in limits if value not in (None, "")]
    if limits[0] in (None, ""):
        return np.zeros(stored.shape, np.bool_)
    return np.asarray((stored >= min(found)) & (stored <= max(found)))


def _as_stored(value: int, data: Dataset) -> int:
    """Return a padding value with the sign that the pixels have, since some files store it without."""
    signed = int(data.PixelRepresentation) == 1
    bits = int(data.BitsAllocated)
    return value - 2**bits if signed and value >= 2 ** (bits - 1) else value
