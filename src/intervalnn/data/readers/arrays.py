"""Arrays: npy and npz files, with or without a manifest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intervalnn.data.readers import npy
from intervalnn.data.readers.manifest import FILE, Manifest
from intervalnn.data.readers.skipped import Unreadable
from intervalnn.data.readers.sources import Entry, Options
from intervalnn.data.readers.units import Values, to_hu
from intervalnn.data.readers.volume import Geometry, Volume

__all__ = ["entries"]


def entries(paths: Sequence[Path], options: Options) -> list[Entry]:
    """Return one entry for each file; a file is a subject of its own, unless its path or a manifest says another."""
    table = options.root / FILE
    manifest = Manifest.load(table) if table.exists() else None
    if options.values is None and (manifest is None or manifest.values is None):
        what = "an array" if manifest is None else table
        raise ValueError(f"{what} does not say what its numbers are: give values, such as 'hu', 'hu+1024' or 'unit'")
    found = (options.report.attempt(options.name(path), _entry, path, manifest, options) for path in paths)
    return [entry for entry in found if entry is not None]


def _entry(path: Path, manifest: Manifest | None, options: Options) -> Entry:
    name = options.name(path)
    key, values = options.key, options.values
    if manifest is not None:
        if name not in manifest.volumes:
            raise Unreadable("is not in the manifest")
        subjects = manifest.subjects(name)
        key, values = key or manifest.key, values or manifest.values
    else:
        subjects = [options.subject_of(path) or name.removesuffix(path.suffix)]
    assert values is not None

    def volumes(wanted: Collection[str]) -> Iterator[Volume]:
        found = options.report.attempt(name, _read, path, name, subjects, key, values, options)
        yield from (volume for volume in found or () if volume.subject in wanted)

    return Entry(name, frozenset(subjects), volumes)


def _read(
    path: Path, name: str, subjects: list[str], key: str | None, values: Values, options: Options
) -> list[Volume]:
    stored, beside = _load(path, key, options.max_gib)
    if stored.ndim == 2:
        stored = stored[None]
    if stored.ndim != 3:
        raise Unreadable(f"must hold (slices, rows, columns) or (rows, columns), got {stored.shape}")
    images, unit = to_hu(stored, values, options.window)
    who = np.asarray(beside.get("subject_index", np.zeros(len(images), np.int64)))
    if len(who) != len(images) or (len(who) and not 0 <= who.min() <= who.max() < len(subjects)):
        raise Unreadable(f"must point each of its slices to one of {len(subjects)} subjects, with subject_index")
    z = np.asarray(beside.get("z_mm", np.full(len(images), np.nan)), np.float64)
    spacing = beside.get("spacing_mm")
    runs = _runs(who, z, spacing)
    return [
        Volume(
            images=images[run],
            subject=subjects[int(who[run.start])],
            name=name if len(runs) == 1 else f"{name} ({run.start}-{run.stop - 1})",
            kind="array",
            unit=unit,
            index=np.arange(run.start, run.stop),
            geometry=None
            if spacing is None
            else Geometry.regular(z[run], np.broadcast_to(spacing, (len(z), 2))[run.start]),
            sources=(path,),
        )
        for run in runs
    ]


def _load(path: Path, key: str | None, max_gib: float) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Return the images of a file, and what is known of them."""
    content = npy.load(path, max_gib)
    if isinstance(content, np.ndarray):
        return content, {}
    names = list(content)
    if key is None and len(names) != 1:
        raise Unreadable(f"holds several arrays: say which, key={' or '.join(repr(n) for n in names)}")
    wanted = names[0] if key is None else key
    if wanted not in names:
        raise Unreadable(f"has no array {wanted!r}, but {', '.join(names) or 'none'}")
    beside: dict[str, NDArray[Any]] = {n: content[n] for n in ("spacing_mm", "z_mm", "subject_index") if n in names}
    return content[wanted], beside


def _runs(who: NDArray[Any], z: NDArray[np.float64], spacing: NDArray[Any] | None) -> list[slice]:
    """Return the stretches of slices that are of one subject and one visit: the table never turns back."""
    new = (np.diff(who) != 0) | (np.diff(z) > 0)
    if spacing is not None and np.ndim(spacing) == 2:
        new |= (np.diff(spacing, axis=0) != 0).any(axis=1)
    starts = [0, *(np.flatnonzero(new) + 1).tolist()]
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(who)], strict=True) if b > a]
