"""DICOM: the axial CT series of a folder, whatever its layout."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from intervalnn.data.readers.dicom_file import Slice, header, pixels, pydicom
from intervalnn.data.readers.sources import Entry, Options
from intervalnn.data.readers.volume import Geometry, Volume, canonical, upright
from intervalnn.files.limits import check_unpacked

__all__ = ["entries"]

_SAME = 1e-3  # millimetres within which two slices lie at one place
_GAP = 1.5  # steps from which on slices are missing


def entries(paths: Sequence[Path], options: Options) -> list[Entry]:
    """Return the axial CT series among files, from their headers alone."""
    pydicom()
    series: dict[tuple[str, str], list[Slice]] = {}
    for path in paths:
        found = options.report.attempt(options.name(path), header, path, options)
        if found is not None:
            series.setdefault((found.subject, found.series), []).append(found)
    used: Counter[str] = Counter()
    result = []
    for slices in series.values():
        folder = options.name(min(s.path for s in slices).parent)
        used[folder] += 1
        name = folder if used[folder] == 1 else f"{folder} ({used[folder]})"
        result.append(_entry(name, _consistent(slices, options), options))
    return result


def _entry(name: str, slices: list[Slice], options: Options) -> Entry:
    def volumes(wanted: Collection[str]) -> Iterator[Volume]:
        images, kept = [], []
        if options.report.attempt(name, _small_enough, slices, options.max_gib) is None:
            return
        for one in slices:
            image = options.report.attempt(options.name(one.path), pixels, one, options.max_gib)
            if image is not None:
                images.append(image)
                kept.append(one)
        if kept:
            yield _volume(name, kept, np.stack(images), options)

    return Entry(name, frozenset(one.subject for one in slices), volumes)


def _small_enough(slices: list[Slice], max_gib: float) -> bool:
    unpacked = sum(math.prod(one.shape) * -(-one.bits // 8) for one in slices)
    stored = sum(one.path.stat().st_size for one in slices)
    check_unpacked(slices[0].path.parent, unpacked, max_gib, stored=stored)
    return True


def _consistent(slices: list[Slice], options: Options) -> list[Slice]:
    """Return slices head to feet, all of one size and direction, one at each place."""
    grid = Counter(one.grid for one in slices).most_common(1)[0][0]
    same = [one for one in slices if one.grid == grid]
    for one in slices:
        if one.grid != grid:
            what = "size" if one.shape != grid[0] else "spacing or direction"
            rows, columns = one.shape
            reason = f"has another {what} ({rows} x {columns}) than most of its series ({grid[0][0]} x {grid[0][1]})"
            options.report.skip(options.name(one.path), reason)
    normal = np.cross(same[0].row_step, same[0].column_step)
    down = normal / np.linalg.norm(normal) * -np.sign(normal[2])
    same.sort(key=lambda one: (round(float(one.position @ down) / _SAME), one.instance, one.path))
    kept: list[Slice] = []
    for one in same:
        if kept and (one.position - kept[-1].position) @ down <= _SAME:
            options.report.skip(options.name(one.path), "lies where another slice of its series lies")
        else:
            kept.append(one)
    return kept


def _volume(name: str, slices: list[Slice], images: NDArray[np.float32], options: Options) -> Volume:
    origins = np.stack([one.position for one in slices])
    first = slices[0]
    plain = Geometry(origins, first.row_step, first.column_step, first.thickness)
    affine = plain.affine
    if len(slices) == 1 and plain.normal[2] > 0:
        affine[:3, 0] *= -1.0  # towards the feet, as the slices of a series run
    axes, turned = canonical(images.shape, affine)
    moved = origins + (turned[:3, 3] - affine[:3, 3])
    geometry = Geometry(moved, turned[:3, 1], turned[:3, 2], first.thickness, axes)
    notes = _gaps(geometry)
    for note in notes:
        options.report.note(f"{name}: {note}")
    return Volume(
        images=upright(images, axes).copy(),  # also where an axis of length 1 runs backwards
        subject=first.subject,
        name=name,
        kind="dicom",
        unit="hu",
        index=np.array([one.instance for one in slices], np.int64),
        geometry=geometry,
        sources=tuple(one.path for one in slices),
        notes=notes,
    )


def _gaps(geometry: Geometry) -> tuple[str, ...]:
    steps = np.abs(np.diff(geometry.z))
    step = geometry.spacing[0]
    missing = np.flatnonzero(steps > _GAP * step)
    return tuple(f"slices are missing after number {i}: {steps[i]:g} mm, where the step is {step:g}" for i in missing)
