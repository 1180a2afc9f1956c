"""Inputs: measurements to predict from, as arrays in files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from intervalnn.cli.samples import INPUT, TARGET, as_tensor, load_array, load_arrays, named
from intervalnn.files.limits import MAX_GIB

__all__ = ["Input", "inputs_in", "is_arrays"]

ARRAYS = (".npy", ".npz")


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """What one file of predictions is made from.

    Attributes:
        name: What to call it.
        read: Returns the measurements, ``(samples, ...)``, and the targets where there are some; given a number, the
            first so many.
    """

    name: str
    read: Callable[..., tuple[Tensor, Tensor | None]]


def is_arrays(path: Path) -> bool:
    """Say whether a path leads to arrays, rather than to a volume."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    if path.is_file():
        return path.suffix in ARRAYS
    return named(path, INPUT) is not None or any(each.suffix in ARRAYS for each in path.iterdir())


def inputs_in(path: Path, dtype: torch.dtype, max_gib: float = MAX_GIB) -> list[Input]:
    """Return what a file or a folder holds.

    A file has samples along its first axis; in an npz file they are named ``x`` or ``input``, or are all there is.
    A folder has ``x.npy``; or a folder ``x`` with one sample in each npy file; or npy and npz files. Where there
    are targets, in ``y`` or ``target``, they are taken along.
    """
    if path.is_file():
        return [_of_file(path, dtype, max_gib)]
    found = _of_folder(path, dtype, max_gib)
    names = [each.name for each in found]
    if not found:
        raise ValueError(f"{path} holds no npy or npz files")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{path} has two files named {twice[0]}, whose predictions would be one; rename one of them")
    return found


def _of_folder(path: Path, dtype: torch.dtype, max_gib: float) -> list[Input]:
    whole, folder = named(path, INPUT, ".npy"), named(path, INPUT)
    if whole is not None:
        return [_of_pair(whole.stem, whole, named(path, TARGET, ".npy"), dtype)]
    if folder is not None:
        targets = named(path, TARGET)
        return [_of_sample(each, targets, dtype) for each in sorted(folder.glob("*.npy"))]
    return [_of_file(each, dtype, max_gib) for each in sorted(path.iterdir()) if each.suffix in ARRAYS]


def _of_file(path: Path, dtype: torch.dtype, max_gib: float) -> Input:
    return _of_archive(path, dtype, max_gib) if path.suffix == ".npz" else _of_pair(path.stem, path, None, dtype)


def _of_pair(name: str, x: Path, y: Path | None, dtype: torch.dtype) -> Input:
    def read(first: int | None = None) -> tuple[Tensor, Tensor | None]:
        target = None if y is None else as_tensor(load_array(y)[:first], dtype, str(y))
        return as_tensor(load_array(x)[:first], dtype, str(x)), target

    return Input(name, read)


def _of_sample(path: Path, targets: Path | None, dtype: torch.dtype) -> Input:
    y = None if targets is None else targets / path.name
    pair = _of_pair(path.stem, path, y if y is not None and y.is_file() else None, dtype)

    def read(first: int | None = None) -> tuple[Tensor, Tensor | None]:
        x, target = pair.read()
        return x[None], None if target is None else target[None]

    return Input(path.stem, read)


def _of_archive(path: Path, dtype: torch.dtype, max_gib: float) -> Input:
    def read(first: int | None = None) -> tuple[Tensor, Tensor | None]:
        arrays = load_arrays(path, max_gib)
        x = next((name for name in INPUT if name in arrays), next(iter(arrays)) if len(arrays) == 1 else None)
        if x is None:
            raise ValueError(f"{path} must have an array x or input, or just one; it has {', '.join(arrays)}")
        y = next((name for name in TARGET if name in arrays), None)
        target = None if y is None else as_tensor(arrays[y][:first], dtype, f"{y} of {path}")
        return as_tensor(arrays[x][:first], dtype, f"{x} of {path}"), target

    return Input(path.stem, read)
