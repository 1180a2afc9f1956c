"""Report: what reading left out, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, ParamSpec, TypeVar

from intervalnn.files.limits import NotTaken

__all__ = ["Errors", "Report", "Skipped", "Unreadable"]

Errors = Literal["skip", "refuse"]
P = ParamSpec("P")
T = TypeVar("T")


class Unreadable(Exception):  # noqa: N818 - never leaves the package
    """Why a file cannot be read, in words that quote nothing personal."""


class Refused(ValueError):  # noqa: N818 - to users, a ValueError
    """A file was to be refused, and here it is."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was not read.

    Attributes:
        path: From where reading began.
        reason: Why, as the rest of a sentence that starts with the path.
    """

    path: str
    reason: str


class Report:
    """What was skipped and what is worth knowing; it grows while volumes are read.

    Args:
        errors: Whether to skip a file that cannot be read, or to refuse it with a :class:`ValueError`.
    """

    def __init__(self, errors: Errors = "skip") -> None:
        if errors not in ("skip", "refuse"):
            raise ValueError(f"errors must be 'skip' or 'refuse', got {errors!r}")
        self.errors = errors
        self._skipped: dict[Skipped, None] = {}  # once each, however often the volumes are read
        self._notes: dict[str, None] = {}

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The files that were not read."""
        return tuple(self._skipped)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing about volumes that were read, such as missing slices."""
        return tuple(self._notes)

    def skip(self, path: str, reason: str) -> None:
        """Add a file that cannot be read, or refuse it."""
        self._skipped[Skipped(path, reason)] = None
        if self.errors == "refuse":
            raise Refused(f"{path} {reason}; take it out, or read with errors='skip'")

    def note(self, text: str) -> None:
        """Add what is worth knowing."""
        self._notes[text] = None

    def attempt(self, path: str, reader: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return what a reader returns; where it fails, skip or refuse the file and return None.

        Of an error that is not ours the type alone is named.
        """
        try:
            return reader(*args, **kwargs)
        except Unreadable as error:
            reason = str(error)
        except NotTaken as error:
            reason = error.reason
        except (Refused, MemoryError, ImportError):
            raise
        except Exception as error:  # whatever a damaged file does to a library
            reason = f"could not be read, so it may be damaged or cut short ({type(error).__name__})"
        self.skip(path, reason)  # down here, so that no message of a library hangs on to the refusal
        return None

    def __str__(self) -> str:
        reasons: dict[str, list[str]] = {}
        for skipped in self.skipped:
            reasons.setdefault(skipped.reason, []).append(skipped.path)
        lines = [f"{len(self.skipped)} files skipped, {len(self.notes)} notes"]
        for reason, paths in reasons.items():
            others = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
            lines.append(f"  {paths[0]}{others} {reason}")
        return "\n".join(lines + [f"  {note}" for note in self.notes])

    def __repr__(self) -> str:
        return f"Report({len(self.skipped)} files skipped, {len(self.notes)} notes)"
