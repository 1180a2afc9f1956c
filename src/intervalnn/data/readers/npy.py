"""Npy: numpy's own files, read only where they hold what their headers promise, and never unpickled."""

from __future__ import annotations

import bz2
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from intervalnn.files.limits import MAX_GIB, NotTaken, check_file, check_limit, check_unpacked

__all__ = ["Npz", "load", "load_mapped"]

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class Npz(Mapping[str, NDArray[Any]]):
    """The arrays of an npz file by name, each read when it is asked for.

    Args:
        path: The file.
        max_gib: How much all of its arrays may unpack to, in GiB, unless the file is as large itself.
    """

    def __init__(self, path: Path, max_gib: float = MAX_GIB) -> None:
        self.path, self.max_gib = path, max_gib
        check_limit(max_gib)
        check_file(path)
        with self._archive() as archive:
            check_unpacked(path, sum(each.file_size for each in archive.infolist()), max_gib)
            for name in archive.namelist():
                archive.open(name).close()  # where the name in the archive's index and the one on the spot are compared
            self._names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        with self._archive() as archive:
            about = archive.getinfo(f"{name}.npy")
            check_unpacked(self.path, about.file_size, self.max_gib)  # again, since the file may be another by now
            with _opened(archive, about) as file:
                array = _read(file, about.file_size)
                if file.read(1):  # at its end, the checksum is compared too
                    raise ValueError(f"{name} is larger than it says")
                return array

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        """Open the file, and look at its index for what zipfile does not look at."""
        with self.path.open("rb") as file, _whole(self.path, "npz"), zipfile.ZipFile(file) as archive:
            _check_index(file, len(archive.namelist()))
            _check_members(self.path, archive)
            yield archive

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load(path: Path, max_gib: float = MAX_GIB) -> NDArray[Any] | Npz:
    """Return the array in an npy file, or those in an npz file, whatever its name."""
    check_file(path)
    with path.open("rb") as file:
        if file.read(2) == b"PK":
            return Npz(path, max_gib)
        file.seek(0)
        with _whole(path, "npy"):
            return _read(file, path.stat().st_size)


def load_mapped(path: Path) -> NDArray[Any]:
    """Return the array in an npy file, mapped into memory rather than read."""
    check_file(path)
    with path.open("rb") as file, _whole(path, "npy"):
        _check(file, path.stat().st_size)
        mapped: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
        return mapped


def _check_index(file: BinaryIO, found: int) -> None:
    """Refuse an archive whose index was cut: it ends in a record of how many it lists."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - 22))
    end = file.read()
    listed = int.from_bytes(end[10:12], "little")
    if end.startswith(b"PK\5\6") and listed not in (found, 0xFFFF):  # which stands for more than fit there
        raise ValueError(f"its index must list {listed} arrays, and lists {found}")


def _check_members(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse an archive in which a name stands for two arrays, or that is packed so that no limit can be kept."""
    names = archive.namelist()
    if len(set(names)) < len(names):
        raise ValueError("it has two arrays of one name")
    if other := next((each for each in archive.infolist() if each.compress_type not in PACKED), None):
        kind = "LZMA" if other.compress_type == zipfile.ZIP_LZMA else f"method {other.compress_type}"
        raise NotTaken(path, f"is packed by {kind}, must be by deflate or bzip2; write it with numpy.savez_compressed")


def _opened(archive: zipfile.ZipFile, about: zipfile.ZipInfo) -> BinaryIO:
    """Open what is packed under a name, so that no more is unpacked at a time than is read.

    Of bzip2, zipfile would unpack all of the piece that it has read, which can stand for thousands of times as much.
    """
    if about.compress_type != zipfile.ZIP_BZIP2:
        return cast(BinaryIO, archive.open(about))
    packed = copy(about)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, about.compress_size
    packed.CRC = None  # type: ignore[assignment] # that of what is unpacked; bzip2 has checksums of its own
    return cast(BinaryIO, bz2.BZ2File(archive.open(packed)))


def _check(file: BinaryIO, size: int) -> None:
    """Refuse a file before memory is taken for it, unless it has just as many bytes as its header promises."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"plain numbers have version 1 or 2, and this is {version}")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never unpickled")
    promised, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if promised != there:
        raise ValueError(f"its header promises {promised} bytes, and {there} are there")


def _read(file: BinaryIO, size: int) -> NDArray[Any]:
    _check(file, size)
    file.seek(0)
    array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array


@contextmanager
def _whole(path: Path, kind: str) -> Iterator[None]:
    """Say of whatever a damaged file does to a library that it is damaged, and which it is."""
    try:
        yield
    except NotTaken:  # which says so itself
        raise
    except Exception as error:
        raise ValueError(f"{path} is no {kind} file of plain numbers, or a part of one only ({error})") from error
