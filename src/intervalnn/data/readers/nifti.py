"""NIfTI: one file, one volume, turned upright."""

from __future__ import annotations

import gzip
import math
import warnings
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intervalnn.data.readers.skipped import Unreadable
from intervalnn.data.readers.sources import Entry, Options
from intervalnn.data.readers.units import to_hu
from intervalnn.data.readers.volume import Geometry, Volume, canonical, restored, restored_affine, upright
from intervalnn.files.limits import MAX_GIB, check_file, check_unpacked

__all__ = ["entries", "load", "write"]

_LPS = np.diag([-1.0, -1.0, 1.0, 1.0])  # NIfTI counts to the right and the front, we to the left and the back
_STEPS = 1e-6, 1e6  # millimetres between which a voxel's size lies
_UNIT = -0.5, 1.5  # where values that were scaled to [0, 1] lie, with some overshoot
_RAS = (-3, -2, -1)  # the axes of a file that no NIfTI file came before


def nibabel() -> Any:
    """Return the package, or say how to get it."""
    try:
        import nibabel as package
    except ImportError as error:
        raise ImportError('NIfTI needs nibabel: pip install "intervalnn[nifti]"') from error
    return package


def load(path: Path, max_gib: float = MAX_GIB) -> Any:
    """Return an image of nibabel's, once the file is known to hold what its header promises, and not too much.

    The numbers are read rather than mapped, since a file that is cut short while it is mapped ends the process.
    """
    check_file(path)
    size = path.stat().st_size if path.suffix != ".gz" else _unzipped(path, max_gib)
    image = nibabel().load(path, mmap=False)
    stored = image.dataobj
    promised = int(stored.offset) + math.prod(map(int, stored.shape)) * stored.dtype.itemsize
    if promised > size:
        raise ValueError(f"its header promises {promised} bytes, and {size} are there")
    return image


def _unzipped(path: Path, max_gib: float) -> int:
    """Return how many bytes are in a gzip file, read to its end, where the checksum is, if these are not too many."""
    size = 0
    with gzip.open(path) as file:
        for part in iter(partial(file.read, 2**20), b""):
            size += len(part)
            check_unpacked(path, size, max_gib)
    return size


def entries(paths: Sequence[Path], options: Options) -> list[Entry]:
    """Return one entry for each file; a file is a subject of its own, unless its path says another."""
    nibabel()
    return [_entry(path, options) for path in paths]


def _entry(path: Path, options: Options) -> Entry:
    name = options.name(path)
    subject = options.subject_of(path) or name.removesuffix(".gz").removesuffix(".nii")

    def volumes(wanted: Collection[str]) -> Iterator[Volume]:
        volume = options.report.attempt(name, _read, path, name, subject, options)
        if volume is not None:
            yield volume

    return Entry(name, frozenset([subject]), volumes)


def _read(path: Path, name: str, subject: str, options: Options) -> Volume:
    image = load(path, options.max_gib)
    if image.get_data_dtype().kind not in "iuf":
        raise Unreadable(f"holds {image.get_data_dtype()}, not plain numbers")
    stored = np.asarray(image.dataobj)  # scaled by the slope and intercept of the header
    if stored.ndim == 4 and stored.shape[3] == 1:
        stored = stored[..., 0]
    if stored.ndim != 3:
        raise Unreadable(f"must have three dimensions, got {stored.shape}")
    affine = _LPS @ np.asarray(image.affine, np.float64)
    steps = np.linalg.norm(affine[:3, :3], axis=0)
    if not (_STEPS[0] < steps.min() <= steps.max() < _STEPS[1]) or not abs(np.linalg.det(affine)) >= 1e-9:
        raise Unreadable("has an affine map that cannot be")
    axes, turned = canonical(stored.shape, affine)
    images, unit = to_hu(upright(stored, axes), options.values or "hu", options.window)
    if options.values is None:
        _warn_of_units(name, images)
    origins = turned[:3, 3] + np.arange(len(images))[:, None] * turned[:3, 0]
    thickness = float(np.linalg.norm(turned[:3, 0]))
    return Volume(
        images=images.copy(),  # also where an axis of length 1 runs backwards
        subject=subject,
        name=name,
        kind="nifti",
        unit=unit,
        index=np.arange(len(images)),
        geometry=Geometry(origins, turned[:3, 1], turned[:3, 2], thickness, axes),
        sources=(path,),
    )


def _warn_of_units(name: str, images: NDArray[np.float32]) -> None:
    """Warn of values that are no Hounsfield units, for all of them would be those of water."""
    low, high = float(images.min()), float(images.max())
    if _UNIT[0] <= low < high <= _UNIT[1]:
        warnings.warn(
            f"{name} holds values from {low:g} to {high:g}, which cannot be Hounsfield units, and is read as if they "
            "were; if it is on a scale from 0 to 1, say so: values='unit', on the command line --values unit",
            stacklevel=2,
        )


def write(path: Path, array: NDArray[Any], volume: Volume, *, description: str = "", comment: str = "") -> None:
    """Write an array like the volume's images as NIfTI, on the grid of the volume's file if that is NIfTI too.

    Args:
        path: The file.
        array: ``(slices, rows, columns)``.
        volume: On whose grid it lies.
        description: What it is, in 80 characters at most; viewers show it.
        comment: What else there is to say, of any length; it stands behind the header.
    """
    geometry = volume.positioned()
    if not geometry.even:
        raise ValueError("NIfTI holds evenly spaced slices, and slices of this volume are missing; write DICOM instead")
    affine = geometry.affine
    axes = geometry.axes if volume.kind == "nifti" else _RAS
    stored = np.ascontiguousarray(restored(array, axes))
    image = nibabel().Nifti1Image(stored, _LPS @ restored_affine(array.shape, affine, axes))
    image.set_sform(image.affine, code="scanner")
    image.set_qform(image.affine, code="scanner")
    image.header.set_xyzt_units("mm")
    image.header["descrip"] = description
    if comment:
        image.header.extensions.append(nibabel().nifti1.Nifti1Extension("comment", comment.encode()))
    nibabel().save(image, path)
