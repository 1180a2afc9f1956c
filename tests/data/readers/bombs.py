"""Bombs: small files that unpack to a lot, of every kind that is read, and as large as one likes."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import h5py
import nibabel
import numpy as np
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate, get_frame
from pydicom.filereader import dcmread, read_dataset, read_preamble
from pydicom.filewriter import write_file_meta_info
from pydicom.uid import DeflatedExplicitVRLittleEndian, JPEG2000Lossless, JPEGLosslessSV1, JPEGLSLossless, RLELossless

from data.readers.dicoms import lossless_jpeg, pixels, save, slice_of

__all__ = ["BOMBS", "deflated"]

PART = bytes(2**20)


def zeros(count: int, bits: int = zlib.MAX_WBITS, before: bytes = b"") -> bytes:
    """Return so many zeros behind some bytes, deflated: zlib's form, with 31 gzip's, with -15 bare."""
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    parts = [packer.compress(before), *(packer.compress(PART) for _ in range(count // len(PART)))]
    return b"".join([*parts, packer.compress(bytes(count % len(PART))), packer.flush()])


# --- DICOM ---


def deflated(path: Path, extra: int = 0) -> None:
    """Write a slice whose data set is deflated, with so many zeros in it that nobody looks at."""
    save(path, slice_of(pixels(1)))
    with path.open("rb") as file:
        read_preamble(file, force=True)
        about = FileMetaDataset(read_dataset(file, False, True, stop_when=lambda tag, *_: tag >> 16 != 2))
        rest = file.read()
    about.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    made: Any = io.BytesIO()
    made.write(bytes(128) + b"DICM")
    write_file_meta_info(made, about)
    private = struct.pack("<HH2sHI", 0x7FE1, 0x1010, b"OB", 0, extra) if extra else b""
    path.write_bytes(made.getvalue() + zeros(extra, -zlib.MAX_WBITS, rest + private))


def _with_frame(path: Path, frame: bytes, syntax: str, shape: tuple[int, int]) -> None:
    one: Dataset = slice_of(pixels(1))
    one.Rows, one.Columns = shape
    one.PixelData = encapsulate([frame])
    one["PixelData"].is_undefined_length = True
    save(path, one, syntax)


def _frame(path: Path, syntax: str) -> bytearray:
    save(path, slice_of(pixels(1, (40, 40))), syntax)
    return bytearray(get_frame(dcmread(path).PixelData, 0, number_of_frames=1))


def rle(path: Path, size: int) -> None:
    """Write a slice whose runs are much longer than its image."""
    _with_frame(path, struct.pack("<16I", 2, 64, 64, *[0] * 13) + b"\x81\x00" * (size // 128), RLELossless, (12, 10))


def jpeg(path: Path, size: int, *, told: bool = False, syntax: str = JPEGLosslessSV1) -> None:
    """Write a slice whose compressed image says that it is large; and so may its header."""
    side = min(65500, int((size / 2) ** 0.5) + 1)
    frame = _frame(path, syntax) if syntax != JPEGLosslessSV1 else bytearray(lossless_jpeg(pixels(1, (40, 40))))
    if syntax == JPEG2000Lossless:
        at = frame.index(b"\xff\x4f\xff\x51")
        for place in (at + 8, at + 24):  # of the image, and of its one tile
            frame[place : place + 8] = struct.pack(">II", side, side)
    else:
        at = frame.index(b"\xff\xc3" if syntax == JPEGLosslessSV1 else b"\xff\xf7")
        frame[at + 5 : at + 9] = struct.pack(">HH", side, side)
    _with_frame(path, bytes(frame), syntax, (side, side) if told else (40, 40))


# --- arrays ---


def npy_header(shape: tuple[int, ...]) -> bytes:
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return made.getvalue()


def npz(path: Path, size: int, kind: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", kind) as archive, archive.open("x.npy", "w", force_zip64=True) as file:
        file.write(npy_header((size // len(PART), 1024, 1024)))
        for _ in range(size // len(PART)):
            file.write(PART)


def lying_npz(path: Path, size: int, kind: int) -> None:
    """Write an archive whose index says that the array is small."""
    npz(path, size, kind)
    stored, small = bytearray(path.read_bytes()), len(npy_header((1, 1, 1))) + 1
    entry = stored.rindex(b"PK\1\2")
    stored[entry + 24 : entry + 28] = struct.pack("<I", small)
    path.write_bytes(stored)


def nifti(path: Path, size: int) -> None:
    header = nibabel.Nifti2Image(np.zeros((1, 1, 1), np.int16), np.eye(4)).header
    header["dim"][1:4] = (1024, 1024, size // 2**21)
    path.write_bytes(zeros(size, 31, header.binaryblock + bytes(4)))


# --- HDF5 ---


def hdf5(path: Path, size: int) -> None:
    """Write chunks that are as large as they say, and many."""
    with h5py.File(path, "w") as file:
        chunks = {"chunks": (1, 1024, 1024), "compression": "gzip"}
        data = file.create_dataset("data", shape=(size // 2**22, 1024, 1024), dtype="f4", **chunks)
        for i in range(len(data)):
            data.id.write_direct_chunk((i, 0, 0), zeros(2**22))


def hdf5_chunk(path: Path, size: int, **options: Any) -> None:
    """Write a chunk that unpacks to much more than it should, of a small data set or of a large chunk."""
    with h5py.File(path, "w") as file:
        options = {"shape": (3, 6, 5), "chunks": (1, 6, 5), "compression": "gzip"} | options
        data = file.create_dataset("data", dtype="f4", **options)
        data.id.write_direct_chunk((0, 0, 0), zeros(size))


def hdf5_large_chunk(path: Path, size: int) -> None:
    hdf5_chunk(path, size, maxshape=(None, None, None), chunks=(1, 1024, size // 4096))


# --- images ---


def _png_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(path: Path, size: int, *, more: bytes = b"") -> None:
    side = int((size / 2) ** 0.5) + 1
    head = _png_chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 16, 0, 0, 0, 0))
    image = _png_chunk(b"IDAT", zeros((2 * side + 1) * side))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + more + image + _png_chunk(b"IEND", b""))


def png_text(path: Path, size: int, *, name: bytes = b"zTXt") -> None:
    """Write a small image with a large text or colour profile."""
    png(path, 200, more=_png_chunk(name, b"a\0\0" + zeros(size)))


def tiff(path: Path, size: int, *, pages: int = 1, tile: int = 0) -> None:
    """Write pages that share one deflated strip; or one small page with a large tile."""
    side = 64 if tile else int((size / pages) ** 0.5) + 1
    strip = zeros(side * side)
    made = bytearray(struct.pack("<2sHI", b"II", 42, 8 + len(strip)) + strip)
    tags = {256: side, 257: side, 258: 8, 259: 8, 262: 1, 277: 1}
    tags |= {322: tile, 323: tile, 324: 8, 325: len(strip)} if tile else {273: 8, 278: side, 279: len(strip)}
    for page in range(pages):
        made += struct.pack("<H", len(tags))
        made += b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
        made += struct.pack("<I", len(made) + 4 if page < pages - 1 else 0)
    path.write_bytes(made)


# --- all: what the file is called, how it is written, and the options that it is read with ---

_UNIT, _HU = {"values": "unit"}, {"values": "hu"}
_H5 = "ground_truth_test_000.hdf5"
BOMBS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "deflated DICOM": ("1.dcm", lambda path, size: deflated(path, min(size, 2**32 - 2)), {}),
    "DICOM, RLE": ("1.dcm", rle, {}),
    **{
        f"DICOM, {name}{', as its header says' if told else ''}": (
            "1.dcm",
            lambda path, size, told=told, syntax=syntax: jpeg(path, size, told=told, syntax=syntax),
            {},
        )
        for name, syntax in (("JPEG", JPEGLosslessSV1), ("JPEG-LS", JPEGLSLossless), ("JPEG 2000", JPEG2000Lossless))
        for told in (False, True)
    },
    "NIfTI": ("a.nii.gz", nifti, {}),
    "NPZ": ("a.npz", npz, _UNIT),
    "NPZ, bzip2": ("a.npz", lambda path, size: npz(path, size, zipfile.ZIP_BZIP2), _UNIT),
    "NPZ, bzip2 that lies": ("a.npz", lambda path, size: lying_npz(path, size, zipfile.ZIP_BZIP2), _UNIT),
    "NPZ, LZMA": ("a.npz", lambda path, size: lying_npz(path, size, zipfile.ZIP_LZMA), _UNIT),
    "HDF5": (_H5, hdf5, {}),
    "HDF5, a chunk that is larger than it says": (_H5, hdf5_chunk, {}),
    "HDF5, a chunk that is larger than its data": (_H5, hdf5_large_chunk, {}),
    "PNG": ("1.png", png, _UNIT),
    "PNG with a text": ("1.png", png_text, _UNIT),
    "PNG with a profile": ("1.png", lambda path, size: png_text(path, size, name=b"iCCP"), _UNIT),
    "TIFF": ("1.tif", tiff, _UNIT),
    "TIFF of many pages": ("1.tif", lambda path, size: tiff(path, size, pages=100), _UNIT),
    "TIFF with a large tile": ("1.tif", lambda path, size: tiff(path, size, tile=16 * int(size**0.5 / 16 + 1)), _UNIT),
}
