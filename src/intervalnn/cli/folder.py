"""Folder: many files that appear together, and of which those that are done survive a stop."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intervalnn.files.whole import beside, replace_folder

__all__ = ["Folder"]

RECORD = "prediction.json"  # what made the files, and the sign that the folder is ours


class Folder:
    """A folder to write to. Until it is finished it is called ``NAME.part``.

    What lies there from a run that was stopped is kept if the same made it, else dropped.

    Args:
        path: Where it appears in the end.
        record: What makes its files, as plain values; it is written along.
    """

    def __init__(self, path: Path, record: Mapping[str, Any]) -> None:
        self.path = path.resolve()
        self.part = self.path.with_name(f"{self.path.name}.part")
        text = json.dumps(record, indent=1, default=str)
        for each in (self.path, self.part):
            if each.exists() and not (each / RECORD).is_file():
                raise FileExistsError(f"{each} holds more than predictions, and is not replaced; choose another name")
        if not self.part.exists() or (self.part / RECORD).read_text(encoding="utf-8") != text:
            with beside(self.part) as place:
                new = place / "part"
                new.mkdir()
                (new / RECORD).write_text(text, encoding="utf-8")
                replace_folder(self.part, new)  # with its record in it, or a run killed in between would find none

    def has(self, name: str) -> bool:
        """Say whether a file, or a folder, was written before the run was stopped."""
        return (self.part / name).exists()

    def finish(self) -> None:
        """Let it appear under its name; one that was there before is lost only then."""
        replace_folder(self.path, self.part)
