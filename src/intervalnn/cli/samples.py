"""Samples: pairs of measurements and targets from a folder of arrays.

``x`` is what the model takes and ``y`` what it is to predict; ``input`` and ``target`` say the same. A folder holds

- ``x.npy`` and ``y.npy``, with the samples along the first axis; they may be larger than memory;
- or npz files with ``x`` and ``y`` in each, samples along the first axis; a single such file will do, too;
- or folders ``x`` and ``y`` with files of the same names, ``x/001.npy`` and ``y/001.npy``, one sample in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from intervalnn.data.readers.npy import Npz, load_mapped
from intervalnn.files.limits import MAX_GIB

__all__ = ["INPUT", "TARGET", "Samples", "as_tensor", "load_array", "load_arrays", "named", "samples_in"]

Array = NDArray[Any]
Column = Sequence[Array] | Array  # one array for each sample
INPUT, TARGET = ("x", "input"), ("y", "target")


@dataclass(frozen=True, slots=True, eq=False)
class Samples(Dataset[tuple[Tensor, Tensor]]):
    """Pairs of a measurement and a target, read as they are asked for.

    Attributes:
        x: The measurements, one by one.
        y: The targets.
        dtype: What floating-point numbers become.
        where: What to call them in an error.
    """

    x: Column
    y: Column
    dtype: torch.dtype
    where: str

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x, y = as_tensor(self.x[index], self.dtype, f"x of {self.where}"), self.y[index]
        return x, as_tensor(y, self.dtype, f"y of {self.where}")


class _Files(Sequence[Array]):
    """One array for each file, all of one shape."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self.shape = load_array(paths[0]).shape

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Any) -> Any:
        array = load_array(self.paths[index])
        if array.shape != self.shape:
            raise ValueError(
                f"all samples must have one shape, and {self.paths[index]} has {array.shape}, "
                f"where {self.paths[0]} has {self.shape}"
            )
        return array


def samples_in(path: Path, dtype: torch.dtype, max_gib: float = MAX_GIB) -> Samples:
    """Return the samples in a folder or an npz file; see the module for how it must look."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    if path.is_file() and path.suffix != ".npz":
        raise ValueError(f"data is a folder, an npz file or package.module:loader, got {path}")
    x, y = _from_npz([path], path, max_gib) if path.is_file() else _from_folder(path, max_gib)
    if len(x) != len(y):
        raise ValueError(f"{path} must have a target for each input, got {len(x)} of x and {len(y)} of y")
    if not len(x):
        raise ValueError(f"{path} holds no samples")
    return Samples(x, y, dtype, str(path))


def _from_folder(folder: Path, max_gib: float) -> tuple[Column, Column]:
    x, y = named(folder, INPUT, ".npy"), named(folder, TARGET, ".npy")
    if x is not None and y is not None:
        return load_array(x), load_array(y)
    x, y = named(folder, INPUT), named(folder, TARGET)
    if x is not None and y is not None:
        return _from_files(x, y)
    archives = sorted(folder.glob("*.npz"))
    if not archives:
        found = ", ".join(sorted(each.name for each in folder.iterdir())[:5]) or "nothing"
        raise ValueError(
            f"{folder} must hold x.npy and y.npy, or npz files with x and y, or folders x and y of npy files; "
            f"it has {found}"
        )
    return _from_npz(archives, folder, max_gib)


def named(folder: Path, names: Sequence[str], suffix: str = "") -> Path | None:
    """Return the file or, without a suffix, the folder that bears one of some names."""
    paths = [folder / f"{name}{suffix}" for name in names]
    return next((path for path in paths if (path.is_file() if suffix else path.is_dir())), None)


def _from_files(x: Path, y: Path) -> tuple[Column, Column]:
    inputs, targets = ({path.name: path for path in folder.glob("*.npy")} for folder in (x, y))
    alone = sorted(inputs.keys() ^ targets.keys())
    if alone:
        raise ValueError(f"{x} and {y} must have files of the same names, and {alone[0]} is in one of them only")
    if not inputs:
        raise ValueError(f"{x} holds no npy files")
    names = sorted(inputs)
    return _Files([inputs[name] for name in names]), _Files([targets[name] for name in names])


def _from_npz(paths: list[Path], where: Path, max_gib: float) -> tuple[Column, Column]:
    parts: list[tuple[Array, Array]] = []
    for path in paths:
        arrays = load_arrays(path, max_gib)
        x, y = (next((arrays[name] for name in names if name in arrays), None) for names in (INPUT, TARGET))
        if x is None or y is None:
            raise ValueError(f"{path} must have arrays x and y, or input and target; it has {', '.join(arrays)}")
        if x.ndim < 1 or y.ndim < 1 or len(x) != len(y):
            raise ValueError(
                f"x and y of {path} must have as many samples along their first axis, got {x.shape} and {y.shape}"
            )
        parts.append((x, y))
    for which, column in zip("xy", zip(*parts, strict=True), strict=True):
        for path, array in zip(paths, column, strict=True):
            if array.shape[1:] != column[0].shape[1:]:
                raise ValueError(
                    f"all samples must have one shape, and {which} of {path} has {array.shape[1:]}, "
                    f"where that of {paths[0]} has {column[0].shape[1:]}"
                )
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def load_array(path: Path) -> Array:
    """Return the array in an npy file, mapped rather than read; nothing in it is unpickled."""
    return load_mapped(path)


def load_arrays(path: Path, max_gib: float) -> dict[str, Array]:
    """Return the arrays in an npz file, by name; nothing in it is unpickled."""
    return dict(Npz(path, max_gib))


def as_tensor(array: Array, dtype: torch.dtype, what: str) -> Tensor:
    """Return an array as a model takes it.

    Floating-point numbers get the dtype of the model, and indices stay whole. Other whole numbers are refused,
    for nobody knows on what scale the model wants them.
    """
    if array.dtype.kind == "f":
        return torch.from_numpy(np.array(array, array.dtype.newbyteorder("="))).to(dtype)
    if array.dtype.kind == "c":
        return torch.from_numpy(np.array(array)).to(dtype.to_complex())
    if array.dtype in (np.int32, np.int64):
        return torch.from_numpy(np.array(array, np.int64))
    raise ValueError(f"{what} holds {array.dtype}; store it as float32, on the scale that the model takes")
