"""NIfTI: a prediction as a set of files, one per part, whose names end in the name of the part."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from intervalnn.data.readers.nifti import load, nibabel
from intervalnn.data.readers.volume import canonical, upright
from intervalnn.files.limits import MAX_GIB, NotTaken
from intervalnn.view.record import Array, Record, assemble

__all__ = ["NAME", "load_nifti", "nifti_sets"]

PARTS = ("point", "lower", "upper", "below", "above", "score", "direction", "target", "input")
LPS = np.diag([-1.0, -1.0, 1.0, 1.0])  # NIfTI counts to the right and the front, volumes to the left and the back
NAME = re.compile(rf"(?P<prefix>.*?)(?P<part>{'|'.join(PARTS)})\.nii(\.gz)?")
UNIT = re.compile(r"intervalnn \w+, (.+)")  # in the description of the header, which has no field for it
PROMISE = re.compile(r"intervalnn promise: (.+)", re.DOTALL)  # in a comment behind the header
COMMENT = 6  # the code of such a comment


def nifti_sets(folder: Path) -> dict[str, dict[str, Path]]:
    """Return the files of each set in a folder by the name of their part; sets are told apart by what comes before."""
    sets: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        if (match := NAME.fullmatch(path.name)) and path.is_file():
            sets.setdefault(match["prefix"], {})[match["part"]] = path
    return {prefix: files for prefix, files in sets.items() if "point" in files}


def load_nifti(path: str | Path, *, unit: str | None = None, max_gib: float = MAX_GIB) -> Record:
    """Return the prediction in a set of NIfTI files, as :func:`intervalnn.volumes.write_volume` writes it.

    Slices are axial, from head to feet, with the front up and the right side of the body to the left.

    Args:
        path: One file of the set, such as ``point.nii.gz`` or ``case7_point.nii.gz``; the others
            (``case7_lower.nii.gz``, ...) lie beside it.
        unit: Of the point, such as ``"HU"``, where the file does not say in its description
            (``intervalnn point, HU``) or says otherwise.
        max_gib: How much each file may unpack to, in GiB, unless it is as large itself.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    match = NAME.fullmatch(path.name)
    files = nifti_sets(path.parent).get(match["prefix"], {}) if match else {}
    if not files:
        raise ValueError(
            f"{path} must be one of a set of files whose names end in the part they hold, with point.nii.gz, "
            f"lower.nii.gz and upper.nii.gz at least; parts are {', '.join(PARTS)}"
        )
    images = {part: _read(file, max_gib) for part, file in files.items()}
    point = images["point"]
    for part, image in images.items():
        if image.array.shape != point.array.shape or not np.allclose(image.affine, point.affine, rtol=1e-3, atol=1e-2):
            raise ValueError(
                f"{files[part]} must lie on the same grid as {files['point']}: resample it, or move it away"
            )
    arrays = {part: image.array for part, image in images.items()}
    spacing = tuple(float(step) for step in np.linalg.norm(point.affine[:3, 1:3], axis=0))
    return assemble(
        arrays,
        str(path.parent),
        unit=point.unit if unit is None else unit,
        spacing=spacing,
        sides="APRL" if point.placed else "",
        promise=point.promise,
    )


class _Image(NamedTuple):
    """A volume turned upright, from where it lies, whether the file said so, and its unit and promise if it did."""

    array: Array
    affine: NDArray[np.float64]
    placed: bool
    unit: str
    promise: str


def _read(path: Path, max_gib: float) -> _Image:
    nibabel()  # which says how to get it
    try:
        image = load(path, max_gib)
        stored = np.asarray(image.dataobj, dtype=np.float32)
    except NotTaken:  # which says so itself
        raise
    except Exception as error:  # whatever a damaged file does to a library
        raise ValueError(f"{path} is no NIfTI file of real numbers, or a part of one only ({error})") from error
    if stored.ndim == 4 and stored.shape[3] == 1:
        stored = stored[..., 0]
    if stored.ndim != 3:
        raise ValueError(f"{path} must hold one volume, with three axes, got shape {stored.shape}")
    axes, affine = canonical(stored.shape, LPS @ np.asarray(image.affine, dtype=np.float64))
    placed = any(int(image.header[code]) > 0 for code in ("sform_code", "qform_code"))
    return _Image(np.ascontiguousarray(upright(stored, axes)), affine, placed, *_said(image.header))


def _said(header: Any) -> tuple[str, str]:
    """Return the unit and the promise that a header tells of, empty where it does not."""
    unit = UNIT.fullmatch(_text(header["descrip"].tobytes()))
    comments = (_text(each.get_content()) for each in header.extensions if each.get_code() == COMMENT)
    promise = next(filter(None, map(PROMISE.fullmatch, comments)), None)
    return unit[1] if unit else "", promise[1] if promise else ""


def _text(stored: bytes) -> str:
    return stored.rstrip(b"\0").decode(errors="replace")
