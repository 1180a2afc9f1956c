"""Volume: the slices of one subject, and where they lie in the patient."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Axes", "Geometry", "Kind", "Unit", "Volume", "canonical", "restored", "restored_affine", "upright"]

Kind = Literal["dicom", "nifti", "hdf5", "array", "image"]
Unit = Literal["hu", "unit"]
Axes = tuple[int, int, int]

_CANONICAL = np.array([[0, 0, -1], [0, 1, 0], [1, 0, 0]])  # slices to the feet, rows to the back, columns to the left
_UNEVEN = 0.1  # share of the step by which two steps may differ and still count as one


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """Where the pixels of a volume lie: millimetres to the patient's left, back and head, as in DICOM.

    Attributes:
        origins: Centre of the first pixel of each slice, ``(slices, 3)``; NaN where nobody knows.
        row_step: From a row to the next, ``(3,)``.
        column_step: From a column to the next, ``(3,)``.
        thickness: Distance to the next slice if there is but one; NaN where nobody knows.
        axes: How the source stored the axes, for :func:`restored`.
    """

    origins: NDArray[np.float64]
    row_step: NDArray[np.float64]
    column_step: NDArray[np.float64]
    thickness: float = float("nan")
    axes: Axes = (1, 2, 3)

    @staticmethod
    def regular(z: ArrayLike, spacing: ArrayLike, *, thickness: float = float("nan")) -> Geometry:
        """Return the geometry of upright slices.

        Args:
            z: Position of each slice, in millimetres towards the head; NaN where nobody knows.
            spacing: Between rows and between columns, in millimetres.
            thickness: Distance to the next slice, for a single one.
        """
        heights = np.asarray(z, np.float64)
        row, column = (float(step) for step in np.asarray(spacing, np.float64))
        origins = np.stack([np.zeros_like(heights), np.zeros_like(heights), heights], axis=1)
        return Geometry(origins, np.array([0.0, row, 0.0]), np.array([column, 0.0, 0.0]), thickness)

    @property
    def normal(self) -> NDArray[np.float64]:
        """Unit vector across the slices, towards the feet."""
        across = np.cross(self.row_step, self.column_step)
        return np.asarray(across / np.linalg.norm(across))

    @property
    def z(self) -> NDArray[np.float64]:
        """Position of each slice along the normal, in millimetres towards the head."""
        return np.asarray(self.origins @ -self.normal)

    @property
    def spacing(self) -> tuple[float, float, float]:
        """Millimetres between slices (the median, if they vary), rows and columns."""
        step = float(np.median(np.abs(np.diff(self.z)))) if len(self.origins) > 1 else self.thickness
        return step, float(np.linalg.norm(self.row_step)), float(np.linalg.norm(self.column_step))

    @property
    def even(self) -> bool:
        """Whether all slices lie one step apart."""
        steps = np.abs(np.diff(self.z))
        return len(steps) < 2 or bool(steps.max() - steps.min() <= _UNEVEN * np.median(steps))

    @property
    def affine(self) -> NDArray[np.float64]:
        """From ``(slice, row, column, 1)`` to millimetres, ``(4, 4)``.

        With uneven slices it is right at both ends only; a single one of unknown thickness gets 1 mm.
        """
        count = len(self.origins)
        alone = self.normal * (1.0 if np.isnan(self.thickness) else self.thickness)
        step = (self.origins[-1] - self.origins[0]) / (count - 1) if count > 1 else alone
        affine = np.eye(4)
        affine[:3] = np.stack([step, self.row_step, self.column_step, self.origins[0]], axis=1)
        return affine


@dataclass(frozen=True, slots=True, eq=False)
class Volume:
    """Slices of one subject, head to feet, rows from front to back, columns from the patient's right to left.

    Attributes:
        images: ``(slices, rows, columns)``, float32.
        subject: Who it is; the same in every file of one subject.
        name: What to call it: the path of its file or folder, from where reading began.
        kind: What it was read from.
        unit: ``"hu"``, or ``"unit"`` for values in [0, 1] whose window is not known.
        index: Number of each slice in its source, ``(slices,)``.
        geometry: Where the pixels lie, if the source says so.
        sources: The files it was read from; for DICOM one for each slice.
        notes: What is worth knowing, such as missing slices.
    """

    images: NDArray[np.float32]
    subject: str
    name: str
    kind: Kind
    unit: Unit
    index: NDArray[np.int64]
    geometry: Geometry | None = None
    sources: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.images.ndim != 3 or self.images.dtype != np.float32:
            raise ValueError(
                f"images must be (slices, rows, columns) in float32, got {self.images.shape} in {self.images.dtype}"
            )
        lengths = [len(self.images), len(self.index)] + ([] if self.geometry is None else [len(self.geometry.origins)])
        if len(set(lengths)) != 1:
            raise ValueError(f"images, index and geometry must have as many slices each, got {lengths}")

    @property
    def spacing(self) -> tuple[float, float, float] | None:
        """Millimetres between slices, rows and columns, if known."""
        return None if self.geometry is None else self.geometry.spacing

    @property
    def z(self) -> NDArray[np.float64] | None:
        """Position of each slice in millimetres towards the head, if known."""
        return None if self.geometry is None else self.geometry.z

    def positioned(self) -> Geometry:
        """Return the geometry, if it says where each slice lies."""
        if self.geometry is None or not np.isfinite(self.geometry.origins).all():
            raise ValueError(
                "the volume does not say where its slices lie: give it a geometry, "
                "with dataclasses.replace(volume, geometry=Geometry.regular(z, spacing))"
            )
        return self.geometry

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        count, rows, columns = self.images.shape
        return f"Volume(subject={self.subject!r}, {count} slices of {rows} x {columns}, unit={self.unit!r})"


def canonical(shape: tuple[int, ...], affine: NDArray[np.float64]) -> tuple[Axes, NDArray[np.float64]]:
    """Return how to turn an array upright, and the affine map it has then.

    Args:
        shape: Of the array as stored.
        affine: From its indices to millimetres to the left, the back and the head, ``(4, 4)``.

    Returns:
        For each stored axis the upright one (1 slices, 2 rows, 3 columns), negative where it runs
        the other way; and the map from upright indices.
    """
    steps = affine[:3, :3]
    cosines = (_CANONICAL @ steps / np.linalg.norm(steps, axis=0)).T  # (stored, upright)
    order = max(permutations(range(3)), key=lambda p: sum(abs(cosines[i, p[i]]) for i in range(3)))
    signs = [1 if cosines[i, order[i]] >= 0 else -1 for i in range(3)]
    upright = affine.copy()
    for stored, (axis, sign) in enumerate(zip(order, signs, strict=True)):
        upright[:3, axis] = sign * affine[:3, stored]
        if sign < 0:
            upright[:3, 3] += (shape[stored] - 1) * affine[:3, stored]
    first, second, third = (sign * (axis + 1) for axis, sign in zip(order, signs, strict=True))
    return (first, second, third), upright


def upright(array: NDArray[Any], axes: Axes) -> NDArray[Any]:
    """Return a stored array as slices, rows, columns."""
    flipped = array[tuple(slice(None, None, 1 if axis > 0 else -1) for axis in axes)]
    return flipped.transpose([[abs(axis) for axis in axes].index(wanted) for wanted in (1, 2, 3)])


def restored(array: NDArray[Any], axes: Axes) -> NDArray[Any]:
    """Return slices, rows, columns as their source stored them."""
    stored = array.transpose([abs(axis) - 1 for axis in axes])
    return stored[tuple(slice(None, None, 1 if axis > 0 else -1) for axis in axes)]


def restored_affine(shape: tuple[int, ...], affine: NDArray[np.float64], axes: Axes) -> NDArray[np.float64]:
    """Return the affine map of :func:`restored`, for an upright array of that shape."""
    stored = affine.copy()
    for i, axis in enumerate(axes):
        step = affine[:3, abs(axis) - 1]
        stored[:3, i] = step if axis > 0 else -step
        if axis < 0:
            stored[:3, 3] += (shape[abs(axis) - 1] - 1) * step
    return stored
