"""Sources: what the readers are told, and what they give back."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from intervalnn.data.readers.skipped import Report
from intervalnn.data.readers.units import Values
from intervalnn.data.readers.volume import Volume
from intervalnn.files.limits import MAX_GIB, check_limit

__all__ = ["Entry", "Options"]

_AAPM_FOLDER, _AAPM_FILE = re.compile(r"L\d{3}"), re.compile(r"(L\d{3})_")  # patients of the Low Dose CT data


@dataclass(frozen=True, slots=True)
class Options:
    """How to read files.

    Attributes:
        root: Where reading began; files are named from there.
        report: Takes what cannot be read.
        subject: Finds the subject in the path of a file.
        values: What the numbers mean, where files do not say.
        window: Hounsfield units at 0 and 1.
        key: Name of the array in a file.
        description: What a series must be described as.
        kernel: The kernel that a series must have been reconstructed with.
        max_gib: How much a volume may unpack to.
    """

    root: Path
    report: Report
    subject: re.Pattern[str] | None = None
    values: Values | None = None
    window: tuple[float, float] | None = None
    key: str | None = None
    description: str | None = None
    kernel: str | None = None
    max_gib: float = MAX_GIB

    def __post_init__(self) -> None:
        check_limit(self.max_gib)

    def name(self, path: Path) -> str:
        """Return the path from where reading began."""
        return path.relative_to(self.root).as_posix()

    def subject_of(self, path: Path) -> str | None:
        """Return the subject that the path names, if it does: by the user's pattern, else as in ``L067``."""
        if self.subject is not None:
            found = self.subject.search(self.name(path))
            return None if found is None else (found[1] if self.subject.groups else found[0])
        folders = (self.root.name, *path.relative_to(self.root).parent.parts)
        by_folder = next((folder for folder in folders if _AAPM_FOLDER.fullmatch(folder)), None)
        by_file = _AAPM_FILE.match(path.name)
        return by_folder or (by_file[1] if by_file else None)


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that volumes can be read from: a series, or a file.

    Attributes:
        name: What to call it in the report.
        subjects: Whose volumes it holds.
        volumes: Reads those of some subjects.
    """

    name: str
    subjects: frozenset[str]
    volumes: Callable[[Collection[str]], Iterator[Volume]]
