"""Npz: a prediction and what belongs to it as one file that plain numpy reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from intervalnn.data.readers.npy import Npz
from intervalnn.files.arrays_written import write_npz
from intervalnn.files.limits import MAX_GIB
from intervalnn.prediction import Prediction
from intervalnn.view.record import Array, Record, assemble

__all__ = ["load_npz", "save_npz"]

ARRAYS = ("point", "below", "above", "lower", "upper", "score", "direction", "target", "input", "deviation")
FACTS = ("unit", "spacing", "dims", "promise")
ROUNDING = 1e-5  # how far a score that is the width may be off it, as a share: calibration scales both by themselves


def save_npz(
    path: str | Path,
    prediction: Prediction,
    *,
    target: Tensor | None = None,
    input: Tensor | None = None,
    unit: str = "",
    spacing: Sequence[float] | None = None,
    dims: int | None = None,
    promise: str = "",
) -> Path:
    """Write a prediction as one npz file, whole or not at all, and return its path.

    The point and the gaps are stored as they are, so that small widths keep their digits; a score that is
    the width, up to rounding, is left out. Nothing is pickled.

    Args:
        path: Where to; ``.npz`` is put at the end if it is not there, missing folders are made.
        prediction: Of shape ``(batch, *signal)``.
        target: The truth, of the same shape.
        input: What the network was given, of any shape.
        unit: Of the point, such as ``"HU"``.
        spacing: Between slices (if there), rows and columns, in mm.
        dims: 2 for images, 1 for signals; by default told by the shape (see :func:`load_npz`).
        promise: What holds on new data, in words, such as ``net.calibration.promise``; the viewer shows it.
    """
    path = Path(path)
    path = path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz")
    parts = {"point": prediction.point, "below": prediction.below, "above": prediction.above}
    width = prediction.width.to(prediction.score.dtype)
    is_width = torch.allclose(prediction.score, width, rtol=ROUNDING, atol=0.0, equal_nan=True)
    score = None if is_width else prediction.score
    extra = {"score": score, "deviation": prediction.deviation, "target": target, "input": input}
    arrays: dict[str, Any] = {name: _array(part) for name, part in (parts | extra).items() if part is not None}
    arrays |= {"unit": np.array(unit)} if unit else {}
    arrays |= {"spacing": np.array(spacing, dtype=np.float64)} if spacing is not None else {}
    arrays |= {"dims": np.array(dims)} if dims is not None else {}
    arrays |= {"promise": np.array(promise)} if promise else {}
    _record(arrays, str(path))  # so that no file is written that could not be read
    write_npz(path, arrays)
    return path


def load_npz(path: str | Path, *, unit: str | None = None, dims: int | None = None, max_gib: float = MAX_GIB) -> Record:
    """Return the prediction in an npz file; nothing in it is unpickled.

    The file must have ``point``, and ``below`` and ``above`` or ``lower`` and ``upper``. It may have ``score``,
    ``direction``, ``deviation``, ``target``, ``input``, ``unit``, ``spacing``, ``dims`` and ``promise``. Without
    ``dims``, arrays of one or two axes or of shape ``(batch, 1, length)`` are signals, all others are images.

    Args:
        path: The file.
        unit: What to take instead of the unit in the file.
        dims: What to take instead of the dims in the file.
        max_gib: How much the file may unpack to, in GiB, unless it is as large itself.
    """
    path = Path(path)
    file = Npz(path, max_gib)
    arrays: dict[str, Any] = {name: file[name] for name in file if name in (*ARRAYS, *FACTS)}
    if "point" not in arrays:
        raise ValueError(
            f"{path} must have an array named point, with its bounds; it has {', '.join(file) or 'nothing'}"
        )
    if dims is not None:
        arrays["dims"] = np.array(dims)
    record = _record(arrays, str(path))
    return record if unit is None else replace(record, unit=unit)


def _record(arrays: dict[str, Any], where: str) -> Record:
    numbers = {name: _real(name, arrays[name], where) for name in ARRAYS if name in arrays}
    point = numbers["point"]
    few = point.ndim <= 2 or (point.ndim == 3 and point.shape[1] == 1)
    dims = int(_fact("dims", arrays, where, "iu", "a whole number", 1 if few else 2))
    spacing = None
    if "spacing" in arrays:
        if arrays["spacing"].ndim != 1 or arrays["spacing"].dtype.kind not in "fiu":
            raise ValueError(f"the spacing of {where} must be a list of numbers, got {_kind(arrays['spacing'])}")
        spacing = tuple(float(s) for s in arrays["spacing"])[-dims:]
    unit, promise = (str(_fact(name, arrays, where, "U", "a text", "")) for name in ("unit", "promise"))
    return assemble(numbers, where, unit=unit, spacing=spacing, dims=dims, promise=promise)


def _fact(name: str, arrays: dict[str, Any], where: str, kinds: str, what: str, default: Any) -> Any:
    """Return a fact that an array without axes holds, if it is of one of some kinds."""
    array = arrays.get(name, np.array(default))
    if array.ndim or array.dtype.kind not in kinds:
        raise ValueError(f"{name} of {where} must be {what}, got {_kind(array)}")
    return array[()]


def _kind(array: Any) -> str:
    return f"{array.dtype} of shape {array.shape}"


def _real(name: str, array: Any, where: str) -> Array:
    """Return real numbers of at least single precision."""
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} of {where} must hold real numbers, got {array.dtype}; store a part or the magnitude")
    wide: Array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)
    return wide


def _array(tensor: Tensor) -> Any:
    tensor = tensor.detach().cpu()
    return (tensor if tensor.dtype == torch.float64 or tensor.is_complex() else tensor.float()).numpy()
