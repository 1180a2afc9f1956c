"""Manifest: a JSON file that says what the arrays of a folder are, whose they are, and how they are split."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intervalnn.data.readers.units import Values
from intervalnn.files.limits import check_file

__all__ = ["FILE", "Manifest"]

FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest says.

    Attributes:
        volumes: By file name; each has a ``subject``, or the ``subject_ids`` that its slices point to.
        key: Name of the array with the images.
        values: What its numbers mean, if that is understood.
    """

    volumes: Mapping[str, Mapping[str, Any]]
    key: str | None
    values: Values | None

    @staticmethod
    def load(path: str | Path) -> Manifest:
        """Read a manifest, or refuse it."""
        path = Path(path)
        check_file(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8-sig"))  # with the mark of Windows before it, or without
            volumes = {volume["file"]: volume for volume in content["volumes"]}
            listed = all(volume.get("subject") or volume.get("subject_ids") for volume in volumes.values())
            key, value = content.get("array"), str(content.get("value", "")).lower().replace(" ", "")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} must list volumes, each with a file and a subject ({error})") from error
        if not listed:
            raise ValueError(f"{path} must give each volume a subject or subject_ids")
        known: tuple[Values, ...] = ("hu+32768", "hu+1024", "hu")
        return Manifest(volumes, key, next((values for values in known if value.startswith(values)), None))

    def subjects(self, file: str) -> list[str]:
        """Return the subjects of a file: one, or those that its slices point to."""
        volume = self.volumes[file]
        return [str(volume["subject"])] if volume.get("subject") else [str(s) for s in volume["subject_ids"]]

    def splits(self, field: str) -> dict[str, str | None]:
        """Return the split of each subject, by the field of that name; None where it is null."""
        result: dict[str, str | None] = {}
        for file, volume in self.volumes.items():
            if field not in volume:
                raise ValueError(f"the manifest must give each volume the field {field!r}, and {file} has none")
            for subject in self.subjects(file):
                if result.setdefault(subject, volume[field]) != volume[field]:
                    raise ValueError(f"the manifest puts {subject} into {result[subject]} and {volume[field]}")
        return result
