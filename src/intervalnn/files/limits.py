"""Limits: what is a file at all, and how much it may unpack to; both are told before any of it is taken into memory."""

from __future__ import annotations

import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["MAX_GIB", "NotTaken", "TooLarge", "check_file", "check_limit", "check_unpacked", "inflated"]

MAX_GIB = 4.0  # a whole body of 2000 CT slices has 1 GiB
PIECE = 2**16  # bytes that are unpacked at a time


class NotTaken(ValueError):  # noqa: N818 - to users, a ValueError
    """A file that is refused, damaged or not.

    Attributes:
        reason: Why it is refused, as the rest of a sentence that starts with its path.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.reason = reason


class TooLarge(NotTaken):
    """A file that unpacks to more than it may."""


def check_file(path: Path) -> None:
    """Refuse what is no plain file: one that is not there, a folder, a pipe or a device, which may never end."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is a pipe or a device, and may never end; write its contents to a file first")


def check_limit(max_gib: float) -> None:
    """Refuse what is no limit."""
    if not max_gib > 0:
        raise ValueError(f"max_gib must be a number of GiB above 0, got {max_gib}")


def check_unpacked(path: Path, unpacked: int, max_gib: float, *, stored: int | None = None) -> None:
    """Refuse a file that unpacks to more bytes than are allowed, and than it has itself.

    Args:
        path: What to call it.
        unpacked: How many bytes it unpacks to, or so many at least.
        max_gib: How many are allowed, in GiB.
        stored: How many bytes it has; by default as the file at the path.
    """
    if unpacked > max_gib * 2**30 and unpacked > (path.stat().st_size if stored is None else stored):
        raise TooLarge(
            path,
            f"unpacks to {unpacked / 2**30:.3g} GiB or more, and {max_gib:g} are allowed; "
            "if you trust it, allow more: max_gib, on the command line --max-gib",
        )


def inflated(path: Path, packed: bytes, max_gib: float, *, bare: bool = False) -> Iterator[bytes]:
    """Yield what deflated bytes unpack to, part by part, for as long as these are not too many.

    Args:
        path: What to call their file.
        packed: The bytes.
        max_gib: How much is allowed, in GiB.
        bare: Whether zlib's header and checksum are left out, as in DICOM.
    """
    unpacker, size = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS), 0
    for start in range(0, len(packed), PIECE):
        piece, part = packed[start : start + PIECE], b"some"
        while part and not unpacker.eof:
            part = unpacker.decompress(piece, PIECE)
            piece = unpacker.unconsumed_tail
            size += len(part)
            check_unpacked(path, size, max_gib)
            yield part
    if not unpacker.eof:
        raise ValueError(f"{path} was cut short")
