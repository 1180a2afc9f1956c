"""Images: PNG and TIFF files, where a folder is a volume and its files are the slices."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intervalnn.data.readers.skipped import Unreadable
from intervalnn.data.readers.sources import Entry, Options
from intervalnn.data.readers.units import Values, to_hu
from intervalnn.data.readers.volume import Unit, Volume
from intervalnn.files.limits import check_unpacked

__all__ = ["entries"]

_MODES = {"L": np.uint8, "I;16": np.uint16, "I;16L": np.uint16, "I;16B": np.uint16, "I": np.int32, "F": np.float32}
_FORMATS = ("PNG", "TIFF")  # whatever the name says: Pillow reads others by programs of their own
_PAGES = 2**14  # of a TIFF file; Pillow takes the longer to find a page, the more there are before it
_TILES = (322, 323)  # the tags with the size of a tile, which may be larger than the image


def pillow() -> Any:
    """Return the package, or say how to get it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('PNG and TIFF need Pillow: pip install "intervalnn[images]"') from error
    return Image


def entries(paths: Sequence[Path], options: Options) -> list[Entry]:
    """Return one entry for each folder and subject; a folder is a subject, unless its path says another."""
    pillow()
    values = options.values
    if values is None:
        raise ValueError("an image does not say what its numbers are: give values, such as 'hu', 'hu+1024' or 'unit'")
    groups: dict[tuple[Path, str], list[Path]] = {}
    for path in paths:
        subject = options.subject_of(path) or path.parent.name
        groups.setdefault((path.parent, subject), []).append(path)
    return [
        _entry(folder, subject, sorted(files, key=_natural), values, options)
        for (folder, subject), files in groups.items()
    ]


def _natural(path: Path) -> list[tuple[int, str]]:
    """Order names as people do: slice 9 before slice 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def _entry(folder: Path, subject: str, files: list[Path], values: Values, options: Options) -> Entry:
    name = options.name(folder)

    def volumes(wanted: Collection[str]) -> Iterator[Volume]:
        read: list[tuple[Path, NDArray[np.float32], Unit]] = []
        sizes = {path: options.report.attempt(options.name(path), _size, path, options.max_gib) for path in files}
        small = {path: size for path, size in sizes.items() if size is not None}
        if options.report.attempt(name, _small_enough, folder, small, options.max_gib) is None:
            return
        for path in small:
            for image, unit in options.report.attempt(options.name(path), _read, path, values, options) or ():
                read.append((path, image, unit))
        if not read:
            return
        shape = Counter(image.shape for _, image, _ in read).most_common(1)[0][0]
        kept = []
        for path, image, unit in read:
            if image.shape == shape:
                kept.append((path, image, unit))
            else:
                options.report.skip(
                    options.name(path), f"has another size {image.shape} than most of its folder {shape}"
                )
        yield Volume(
            images=np.stack([image for _, image, _ in kept]),
            subject=subject,
            name=name,
            kind="image",
            unit=kept[0][2],
            index=np.arange(len(kept)),
            sources=tuple(path for path, _, _ in kept),
        )

    return Entry(name, frozenset([subject]), volumes)


def _size(path: Path, max_gib: float) -> int:
    """Return how many bytes the images of a file unpack to, if these are not too many."""
    size = 0
    with pillow().open(path, formats=_FORMATS) as image:
        for number in range(_PAGES + 1):
            try:
                image.seek(number)
            except EOFError:
                return size
            if image.mode not in _MODES:
                raise Unreadable(f"must have one channel of 8, 16 or 32 bits, got mode {image.mode}")
            tile = [image.tag_v2.get(tag, 1) for tag in _TILES] if image.format == "TIFF" else [1, 1]
            size += max(math.prod(image.size), math.prod(tile)) * np.dtype(_MODES[image.mode]).itemsize
            check_unpacked(path, size, max_gib)
    raise Unreadable(f"has more than {_PAGES} images; divide it into several files")


def _small_enough(folder: Path, sizes: dict[Path, int], max_gib: float) -> bool:
    check_unpacked(folder, sum(sizes.values()), max_gib, stored=sum(path.stat().st_size for path in sizes))
    return True


def _read(path: Path, values: Values, options: Options) -> list[tuple[NDArray[np.float32], Unit]]:
    """Return the images of a file, of which a TIFF may have several."""
    with pillow().open(path, formats=_FORMATS) as image:
        image.verify()  # the checksums of PNG, which reading the pixels leaves out
    with pillow().open(path, formats=_FORMATS) as image:
        frames = []
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            frames.append(to_hu(np.array(image, _MODES[image.mode]), values, options.window))
        return frames
