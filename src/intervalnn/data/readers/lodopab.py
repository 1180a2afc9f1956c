"""LoDoPaB-CT: HDF5 files of 128 slices each, whose subjects are listed beside them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from intervalnn.data.readers.skipped import Unreadable
from intervalnn.data.readers.sources import Entry, Options
from intervalnn.data.readers.units import to_hu
from intervalnn.data.readers.volume import Geometry, Volume
from intervalnn.files.limits import check_file, check_unpacked, inflated

__all__ = ["entries"]

_NAME = re.compile(r"ground_truth_(train|validation|test)_(\d{3})\.(?:hdf5|h5)")
_PER_FILE = 128
_DEFLATE, _SAME_SIZE = 1, (2, 3)  # numbers of HDF5's filters; shuffling and checksums give no more bytes than they get
DEFLATED = 1032  # the most bytes that one byte of deflate can stand for
_WIDTH = 260.0  # millimetres: all images are taken to be 26 cm wide, whatever they were


def h5py() -> Any:
    """Return the package, or say how to get it."""
    try:
        import h5py as package  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError('HDF5 needs h5py: pip install "intervalnn[hdf5]"') from error
    return package


def entries(paths: Sequence[Path], options: Options) -> list[Entry]:
    """Return one entry for each file of ground truths; the observations are left alone."""
    h5py()
    truths = (path for path in paths if not path.name.startswith("observation_"))
    found = (options.report.attempt(options.name(path), _entry, path, options) for path in truths)
    return [entry for entry in found if entry is not None]


def _entry(path: Path, options: Options) -> Entry:
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise Unreadable("is not named as in LoDoPaB-CT: ground_truth_{train,validation,test}_{000}.hdf5")
    name, part = options.name(path), match[1]
    with h5py().File(path) as file:
        count = len(_data(file, path, options.max_gib))
    rows = _rows(path, part, _PER_FILE * int(match[2]), count, options)

    def volumes(wanted: Collection[str]) -> Iterator[Volume]:
        for subject, index in rows.items():
            if subject not in wanted:
                continue
            volume = options.report.attempt(name, _read, path, name, subject, index, options.max_gib)
            if volume is not None:
                yield volume

    return Entry(name, frozenset(rows), volumes)


def _data(file: Any, path: Path, max_gib: float) -> Any:
    """Return the images of a file, if the file itself holds them: HDF5 can point to others in three ways."""
    link = file.get("data", getlink=True)
    if link is not None and not isinstance(link, h5py().HardLink):
        raise Unreadable("must hold its data set 'data' itself, and has a link there, which is not followed")
    found = file.get("data")
    if not isinstance(found, h5py().Dataset) or found.ndim != 3 or found.dtype.kind not in "fiu":
        raise Unreadable("must hold a data set 'data' of slices, rows and columns, in plain numbers")
    if found.is_virtual or found.external:
        raise Unreadable("must hold its numbers itself, and takes them from other files, which are not read")
    if not 0 < found.nbytes <= DEFLATED * path.stat().st_size:
        raise Unreadable(f"cannot hold what it promises, {found.shape} numbers")
    check_unpacked(path, found.nbytes, max_gib)
    if found.chunks is not None:
        _check_chunks(found, path, max_gib)
    return found


def _check_chunks(data: Any, path: Path, max_gib: float) -> None:
    """Refuse chunks that unpack to too much: HDF5 unpacks each to its end, however large it ought to be."""
    check_unpacked(path, math.prod(data.chunks) * data.dtype.itemsize, max_gib)
    filters = data.id.get_create_plist()
    packed = [kind for i in range(filters.get_nfilters()) if (kind := filters.get_filter(i)[0]) not in _SAME_SIZE]
    if packed not in ([], [_DEFLATE]):
        raise Unreadable(
            "has chunks that are packed otherwise than once by deflate (compression='gzip'), so no limit "
            "can be kept; write it anew"
        )
    large: list[tuple[int, ...]] = []
    data.id.chunk_iter(lambda each: large.append(each.chunk_offset) if each.size * DEFLATED > max_gib * 2**30 else None)
    for place in large if packed else ():
        for _ in inflated(path, data.id.read_direct_chunk(place)[1], max_gib):
            pass  # it is too much, or it is not


def _rows(path: Path, part: str, start: int, count: int, options: Options) -> dict[str, list[int]]:
    """Return the slices of each subject in a file."""
    table = path.with_name(f"patient_ids_rand_{part}.csv")
    if not table.exists():
        options.report.note(f"{options.name(table)} is missing, so all of {part} counts as one subject")
        return {f"lodopab-{part}": list(range(count))}
    try:
        check_file(table)
        patients = [int(line) for line in table.read_text().split()][start : start + count]
    except (ValueError, OSError):
        raise Unreadable(
            f"has no subjects, since {table.name} must be a file with a whole number in each line"
        ) from None
    if len(patients) < count:
        # the last file may have been left at its full length, with nothing in the rest
        options.report.note(f"{options.name(path)} has {count} slices, of which {len(patients)} have a subject")
    rows: dict[str, list[int]] = {}
    for i, patient in enumerate(patients):
        rows.setdefault(f"lodopab-{patient}", []).append(i)
    return rows


def _read(path: Path, name: str, subject: str, index: list[int], max_gib: float) -> Volume:
    with h5py().File(path) as file:
        stored = _data(file, path, max_gib)[index]
    # The authors transposed each DICOM image, for their operator's sake.
    images, unit = to_hu(stored.transpose(0, 2, 1), "lodopab")
    pixel = _WIDTH / images.shape[1]
    return Volume(
        images=np.ascontiguousarray(images),
        subject=subject,
        name=name,
        kind="hdf5",
        unit=unit,
        index=np.array(index, np.int64),
        geometry=Geometry.regular(np.full(len(index), np.nan), (pixel, pixel)),
        sources=(path,),
    )
