"""Reading: one front door to whatever a folder holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

from intervalnn.data.readers import arrays, dicom, images, lodopab, nifti
from intervalnn.data.readers.skipped import Errors, Report
from intervalnn.data.readers.sources import Entry, Options
from intervalnn.data.readers.units import Values
from intervalnn.data.readers.volume import Kind, Volume
from intervalnn.files.limits import MAX_GIB, check_file

__all__ = ["Volumes", "read"]

_READERS: dict[Kind, Callable[[Sequence[Path], Options], list[Entry]]] = {
    "dicom": dicom.entries,
    "nifti": nifti.entries,
    "hdf5": lodopab.entries,
    "array": arrays.entries,
    "image": images.entries,
}
_SUFFIXES: dict[str, Kind] = {
    **dict.fromkeys((".dcm", ".ima", ".dicom"), "dicom"),
    **dict.fromkeys((".nii", ".nii.gz"), "nifti"),
    **dict.fromkeys((".hdf5", ".h5"), "hdf5"),
    **dict.fromkeys((".npy", ".npz"), "array"),
    **dict.fromkeys((".png", ".tif", ".tiff"), "image"),
}
_TAKES: dict[str, tuple[Kind, ...]] = {  # which options mean something for which kind
    "values": ("nifti", "array", "image"),
    "window": ("nifti", "array", "image"),
    "key": ("array",),
    "description": ("dicom",),
    "kernel": ("dicom",),
}


class Volumes(Iterable[Volume]):
    """Volumes that are read one by one as they are iterated over, as often as wanted; it raises if there is none.

    Attributes:
        report: What was skipped and why; complete once all volumes were read.
        subjects: Whose volumes there are, without reading them.
    """

    def __init__(self, entries: Sequence[Entry], report: Report, subjects: Iterable[str]) -> None:
        self._entries = tuple(entries)
        self.report = report
        self.subjects = tuple(sorted(set(subjects)))

    def __iter__(self) -> Iterator[Volume]:
        wanted, found = frozenset(self.subjects), False
        for entry in self._entries:
            if entry.subjects & wanted:
                for volume in entry.volumes(wanted):
                    found = True
                    yield volume
        if not found:
            raise ValueError(f"there is no volume that could be read: {self.report}")

    def only(self, subjects: Iterable[str]) -> Volumes:
        """Return the volumes of some subjects."""
        wanted = set(subjects)
        unknown = sorted(wanted - set(self.subjects))
        if unknown:
            raise ValueError(f"there is no subject {unknown}")
        return Volumes(self._entries, self.report, wanted)

    def __repr__(self) -> str:
        return f"Volumes({len(self.subjects)} subjects, {self.report!r})"


def read(
    source: str | Path,
    *,
    kind: Kind | None = None,
    errors: Errors = "skip",
    files: str = "*",
    subject: str | None = None,
    values: Values | None = None,
    window: tuple[float, float] | None = None,
    key: str | None = None,
    description: str | None = None,
    kernel: str | None = None,
    max_gib: float = MAX_GIB,
) -> Volumes:
    """Return the CT volumes of a folder or a file, to be read one by one.

    A subject is what the path says, if ``subject`` matches there or a folder is named as in ``L067``.
    Else it is, for DICOM, the PatientID where a folder bears it too, otherwise a short hash of it (a
    pseudonym: who has the numbers can find it again); for arrays what a manifest says; for images
    the folder; else each file is one. Of a DICOM file nothing but what the images need is looked at, and
    no name, date or other text of it is ever shown; but files are named by their path.

    Args:
        source: A folder, searched to its depths, or a file.
        kind: ``"dicom"``, ``"nifti"``, ``"hdf5"`` (LoDoPaB-CT), ``"array"`` (npy, npz) or ``"image"`` (PNG,
            TIFF); guessed where there is but one.
        errors: Whether to skip what cannot be read, or to refuse it with a ``ValueError``. Where nothing is left, going
            through the volumes raises one.
        files: Which files to read: a pattern as in ``"*/full_3mm/*"`` for paths from ``source`` on.
        subject: A regular expression that finds the subject in such a path: its first group, or all of it.
        values: What the numbers of a file are, where it does not say (see :func:`intervalnn.data.readers.units.to_hu`).
        window: Hounsfield units at 0 and 1, for ``values="unit"``.
        key: Name of the array in an npz file.
        description: Read the DICOM series with this SeriesDescription; a pattern, in any case.
        kernel: Read the DICOM series with this ConvolutionKernel; a pattern, in any case.
        max_gib: How much a volume may unpack to, in GiB, unless its files are as large themselves.
    """
    source = Path(source)
    if not source.exists():
        raise FileNotFoundError(f"there is no file or folder {source}")
    if not source.is_dir():
        check_file(source)
    root = source.resolve() if source.is_dir() else source.resolve().parent
    found = _found(root, files) if source.is_dir() else [source.resolve()]
    kind, paths = _of_one_kind(found, kind, source)
    given: dict[str, Any] = {
        "values": values,
        "window": window,
        "key": key,
        "description": description,
        "kernel": kernel,
    }
    for option, value in given.items():
        if value is not None and kind not in _TAKES[option]:
            raise ValueError(f"{option} is for {' or '.join(_TAKES[option])}, and these files are of kind {kind!r}")
    report = Report(errors)
    options = Options(root, report, None if subject is None else re.compile(subject), **given, max_gib=max_gib)
    entries = _READERS[kind](paths, options)
    return Volumes(entries, report, (s for entry in entries for s in entry.subjects))


def _found(root: Path, files: str) -> list[Path]:
    """Return the files of a folder in a lasting order, without hidden ones."""
    found = []
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        hidden = any(part.startswith(".") or part == "__MACOSX" for part in relative.parts)
        if not hidden and path.is_file() and fnmatchcase(relative.as_posix(), files):
            found.append(path)
    return found


def _of_one_kind(found: list[Path], kind: Kind | None, source: Path) -> tuple[Kind, list[Path]]:
    if kind is not None and kind not in _READERS:
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, got {kind!r}")
    if kind is not None and len(found) == 1 and source.is_file():
        return kind, found
    kinds = {path: _kind(path) for path in found}
    counts = Counter(k for k in kinds.values() if k is not None and kind in (None, k))
    if not counts:
        raise ValueError(f"{source} holds no file of kind {kind or ', '.join(get_args(Kind))}")
    if len(counts) > 1:
        several = ", ".join(f"{count} of kind {k!r}" for k, count in counts.items())
        raise ValueError(f"{source} holds {several}: say which, with kind")
    (only,) = counts
    return only, [path for path, k in kinds.items() if k == only]


def _kind(path: Path) -> Kind | None:
    name = path.name.lower()
    by_name = next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), None)
    if by_name is not None or name == "dicomdir":
        return by_name
    return "dicom" if _looks_like_dicom(path) else None


def _looks_like_dicom(path: Path) -> bool:
    """Say whether a file whose name tells nothing starts as DICOM does, with or without its preamble."""
    try:
        with path.open("rb") as file:
            start = file.read(132)
    except OSError:
        return False
    return start[128:] == b"DICM" or (start[:2] in (b"\x02\x00", b"\x08\x00") and start[3:4] == b"\x00")
