"""How much memory a DICOM file unpacks to, told before it is unpacked: its whole data set, or its image alone."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any, cast

from intervalnn.data.readers.skipped import Unreadable
from intervalnn.files.limits import check_unpacked, inflated

__all__ = ["check_frame", "plain"]

_RUN = 64  # the most bytes that one byte of RLE can stand for
_NO_SIZE = (0xC4, 0xC8, 0xCC)  # markers of JPEG that stand among those of sizes, and tell something else
_BARE = (0x01, *range(0xD0, 0xD9))  # those behind which no length stands


def plain(path: Path, max_gib: float) -> Path | BytesIO:
    """Return what pydicom is to read: the file or, where its data set is deflated, the same with that unpacked."""
    from pydicom.filereader import read_dataset, read_preamble
    from pydicom.filewriter import write_file_meta_info
    from pydicom.uid import DeflatedExplicitVRLittleEndian, ExplicitVRLittleEndian

    with path.open("rb") as file:
        read_preamble(file, force=True)
        about: Any = read_dataset(file, False, True, stop_when=lambda tag, *_: tag >> 16 != 2)
        if about.get("TransferSyntaxUID") != DeflatedExplicitVRLittleEndian:
            return path
        packed = file.read()
    about.TransferSyntaxUID = ExplicitVRLittleEndian
    whole = BytesIO()
    whole.write(bytes(128) + b"DICM")
    write_file_meta_info(cast(Any, whole), about, enforce_standard=False)
    whole.writelines(inflated(path, packed, max_gib, bare=True))
    whole.seek(0)
    return whole


def check_frame(path: Path, data: Any, max_gib: float) -> None:
    """Refuse a compressed image that is of another size than its header says, since that is what it unpacks to."""
    syntax = data.file_meta.TransferSyntaxUID
    if not syntax.is_encapsulated:
        return
    from pydicom.encaps import get_frame
    from pydicom.uid import RLELossless

    frame = get_frame(data.PixelData, 0, number_of_frames=1)
    if syntax == RLELossless:
        check_unpacked(path, _RUN * len(frame), max_gib, stored=0)
        return
    rows, columns = _of_jpeg_2000(frame) if "2000" in syntax.name else _of_jpeg(frame)
    if (rows, columns) != (data.Rows, data.Columns):
        raise Unreadable(
            f"has a compressed image of {rows} x {columns}, where its header says {data.Rows} x {data.Columns}"
        )


def _of_jpeg(frame: bytes) -> tuple[int, int]:
    """Return rows and columns of a JPEG or JPEG-LS image, from the marker that starts its frame."""
    at = 2
    while at + 9 <= len(frame):
        marker = frame[at + 1]
        if frame[at] != 0xFF:
            break
        if marker == 0xFF or marker in _BARE:  # filled up, or without a length
            at += 1 if marker == 0xFF else 2
        elif (0xC0 <= marker <= 0xCF and marker not in _NO_SIZE) or marker == 0xF7:
            return int.from_bytes(frame[at + 5 : at + 7]), int.from_bytes(frame[at + 7 : at + 9])
        else:
            at += 2 + int.from_bytes(frame[at + 2 : at + 4])
    raise Unreadable("has a compressed image that does not say its size")


def _of_jpeg_2000(frame: bytes) -> tuple[int, int]:
    """Return rows and columns of a JPEG 2000 image, from the marker that each has just once."""
    marker = b"\xff\x4f\xff\x51"
    at = frame.find(marker)
    if at < 0 or frame.count(marker) > 1 or len(frame) < at + 40:
        raise Unreadable("has a compressed image that does not say its size")
    right, bottom, left, top = (int.from_bytes(frame[i : i + 4]) for i in range(at + 8, at + 24, 4))
    return bottom - top, right - left
