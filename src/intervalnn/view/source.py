"""Source: the predictions that a path leads to, read when they are wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from intervalnn.files.limits import MAX_GIB
from intervalnn.files.printable import printable
from intervalnn.view.nifti import NAME, load_nifti, nifti_sets
from intervalnn.view.npz import load_npz
from intervalnn.view.record import Record

__all__ = ["Entry", "entries"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A prediction to choose.

    Attributes:
        name: What to call it.
        load: Reads it.
    """

    name: str
    load: Callable[[], Record]


def entries(
    path: str | Path, *, unit: str | None = None, dims: int | None = None, max_gib: float = MAX_GIB
) -> list[Entry]:
    """Return the predictions that a path leads to, one at least.

    Args:
        path: An npz file, one file of a NIfTI set, or a folder of these and of folders that hold a set each.
        unit: Of the point, such as ``"HU"``, where the files do not say or say otherwise.
        dims: 2 for images, 1 for signals, where the shape does not tell.
        max_gib: How much a file may unpack to, in GiB, unless it is as large itself.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    if path.is_dir():
        found = [_of_npz(file, unit, dims, max_gib) for file in sorted(path.glob("*.npz"))]
        folders = [path, *(folder for folder in sorted(path.iterdir()) if folder.is_dir())]
        found += [entry for folder in folders for entry in _of_sets(folder, unit, max_gib)]
        if not found:
            raise ValueError(f"the folder {path} must hold npz files or NIfTI sets with a point.nii.gz; it has neither")
        return _with_own_names(found)
    if path.name.endswith((".nii", ".nii.gz")):
        return [_of_nifti(path, unit, max_gib)]
    if path.suffix == ".npz":
        return [_of_npz(path, unit, dims, max_gib)]
    raise ValueError(f"a prediction is an .npz, .nii or .nii.gz file or a folder of these, got {path}")


def _with_own_names(found: list[Entry]) -> list[Entry]:
    """Return the entries with a number behind a name that another one has already."""
    used: Counter[str] = Counter()
    for i, entry in enumerate(found):
        used[entry.name] += 1
        if used[entry.name] > 1:
            found[i] = replace(entry, name=f"{entry.name} ({used[entry.name]})")
    return found


def _of_npz(path: Path, unit: str | None, dims: int | None, max_gib: float) -> Entry:
    return Entry(printable(path.stem), partial(load_npz, path, unit=unit, dims=dims, max_gib=max_gib))


def _of_sets(folder: Path, unit: str | None, max_gib: float) -> list[Entry]:
    return [_of_nifti(files["point"], unit, max_gib) for files in nifti_sets(folder).values()]


def _of_nifti(path: Path, unit: str | None, max_gib: float) -> Entry:
    match = NAME.fullmatch(path.name)
    name = match["prefix"].strip("_-. ") if match else path.name
    return Entry(printable(name or path.resolve().parent.name), partial(load_nifti, path, unit=unit, max_gib=max_gib))
