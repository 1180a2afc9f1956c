"""Real DICOM files, with a patient whose name must never be seen."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import UID, CTImageStorage, ExplicitVRLittleEndian, generate_uid

SECRETS = ("Xanthippe", "Quux", "19610321", "MRN-4711", "Dr. Nemo")  # parts of the name, the birth date, the number


def uid(name: str) -> str:
    return generate_uid(entropy_srcs=[name])


def slice_of(stored: NDArray[Any], z: float = 0.0, **tags: Any) -> Dataset:
    """Return one axial slice whose rescaling is ``stored - 1024``; ``tags`` change or, if None, remove elements."""
    data = Dataset()
    data.SOPClassUID = CTImageStorage
    data.SOPInstanceUID = generate_uid()
    data.Modality = "CT"
    data.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL"]
    data.PatientName = "Xanthippe^Quux"
    data.PatientID = "MRN-4711"
    data.PatientBirthDate = "19610321"
    data.PatientSex = "F"
    data.ReferringPhysicianName = "Dr. Nemo"
    data.StudyDate, data.StudyTime, data.StudyID, data.AccessionNumber = "20200102", "101112", "7", "A1"
    data.StudyInstanceUID = uid("study")
    data.SeriesInstanceUID = uid("series")
    data.FrameOfReferenceUID = uid("frame")
    data.SeriesNumber = 3
    data.InstanceNumber = 1
    data.ImagePositionPatient = [-100.5, -90.25, z]
    data.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    data.PixelSpacing = [0.75, 0.5]
    data.SliceThickness = 3
    data.KVP = 120
    data.PatientPosition = "HFS"
    data.Rows, data.Columns = stored.shape[:2]
    data.SamplesPerPixel = 1
    data.PhotometricInterpretation = "MONOCHROME2"
    data.BitsAllocated, data.BitsStored, data.HighBit = 16, 16, 15
    data.PixelRepresentation = int(stored.dtype.kind == "i")
    data.RescaleSlope, data.RescaleIntercept = 1, -1024
    data.PixelData = stored.tobytes()
    data["PixelData"].VR = "OW"
    for tag, value in tags.items():
        if value is None:
            del data[tag]
        else:
            setattr(data, tag, value)
    return data


def save(path: Path, data: Dataset, syntax: str = ExplicitVRLittleEndian) -> Path:
    """Write a slice in a transfer syntax; compressed ones need an encoder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID
    if UID(syntax).is_compressed and not data["PixelData"].is_undefined_length:
        data.compress(syntax)
    data.file_meta.TransferSyntaxUID = syntax
    data.save_as(path, enforce_file_format=True)
    return path


def save_bare(path: Path, data: Dataset) -> Path:
    """Write a slice as older archives did: implicit little endian, with neither preamble nor file header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    data.save_as(buffer, implicit_vr=True, little_endian=True)
    path.write_bytes(buffer.getvalue())
    return path


def lossless_jpeg(image: NDArray[np.uint16]) -> bytes:
    """Encode an image as lossless JPEG, predicted from the left, since no package here does."""
    rows, columns = image.shape
    before = np.empty(image.shape, np.int64)
    before[:, 1:] = image[:, :-1]
    before[1:, 0] = image[:-1, 0]
    before[0, 0] = 2**15
    bits = ""
    for change in ((image - before + 2**15) % 2**16 - 2**15).ravel().tolist():
        size = abs(change).bit_length()
        bits += f"{size:05b}"  # all 17 sizes have codes of five bits
        bits += f"{change if change > 0 else change + 2**size - 1:0{size}b}" if size % 16 else ""
    bits += "1" * (-len(bits) % 8)
    scan = int(bits, 2).to_bytes(len(bits) // 8).replace(b"\xff", b"\xff\x00")
    table = bytes([0, 0, 0, 0, 0, 17, *[0] * 11, *range(17)])
    frame = struct.pack(">BHHBBBB", 16, rows, columns, 1, 1, 0x11, 0)
    parts = [(0xC4, table), (0xC3, frame), (0xDA, bytes([1, 1, 0, 1, 0, 0]))]
    head = b"".join(struct.pack(">BBH", 0xFF, marker, len(part) + 2) + part for marker, part in parts)
    return b"\xff\xd8" + head + scan + b"\xff\xd9"


def pixels(number: int, shape: tuple[int, int] = (12, 10)) -> NDArray[np.uint16]:
    """Return a slice whose every pixel tells where it is."""
    rows, columns = np.indices(shape)
    return (1000 * number + 20 * rows + columns).astype(np.uint16)


def series(folder: Path, count: int = 4, *, step: float = 3.0, suffix: str = ".dcm", **tags: Any) -> list[Path]:
    """Write slices from the head (number 0) to the feet, under names that sort the other way."""
    return [
        save(folder / f"{count - i:03d}{suffix}", slice_of(pixels(i), -step * i, InstanceNumber=i + 1, **tags))
        for i in range(count)
    ]
