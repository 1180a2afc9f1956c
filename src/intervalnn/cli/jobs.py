"""Jobs: what ``inn predict`` is to do, one file of predictions after the other."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import track

from intervalnn.cli.config.every_option import Predict
from intervalnn.cli.inputs import Input, inputs_in
from intervalnn.cli.loaders import dtype_of, tried
from intervalnn.data import Volume, read
from intervalnn.data.volumes import predict_volume
from intervalnn.data.writing import write_volume
from intervalnn.network.network import IntervalNetwork
from intervalnn.prediction import Prediction, one
from intervalnn.view import save_npz

__all__ = ["Job", "array_jobs", "volume_jobs"]


@dataclass(frozen=True, slots=True)
class Job:
    """One file of predictions, or one folder for a volume.

    Attributes:
        name: What to call it among others.
        suffix: What its name ends in; empty for a folder.
        write: Predicts and writes to a path, with a progress bar or without.
    """

    name: str
    suffix: str
    write: Callable[[Path, bool], object]


# --- arrays ---


def array_jobs(net: IntervalNetwork, path: Path, batch_size: int, promise: str, max_gib: float) -> Iterator[Job]:
    """Yield a job for each file of arrays that a path leads to; the promise is written along."""
    for item in inputs_in(path, dtype_of(net.model), max_gib):
        yield Job(item.name, ".npz", partial(_write_arrays, net, item, batch_size, promise))


def _write_arrays(net: IntervalNetwork, item: Input, batch_size: int, promise: str, path: Path, progress: bool) -> None:
    x, target = item.read()
    if not len(x):
        raise ValueError(f"{item.name} holds no samples")
    tried(net.model, (x[:1].to(net.device),), item.name)
    starts: Iterable[int] = range(0, len(x), batch_size)
    if progress:
        starts = track(starts, "predicting", transient=True)
    parts = [one(net.predict(x[i : i + batch_size].to(net.device))).cpu() for i in starts]
    shown = None if x.is_complex() else x
    whole = Prediction.cat(parts)
    if broken := int((~whole.point.isfinite()).sum()):
        first = int((~whole.point.isfinite()).flatten(1).any(1).nonzero()[0])
        warnings.warn(
            f"{broken} predicted numbers of {item.name} are not finite, first in sample {first}: look at its input",
            stacklevel=2,
        )
    save_npz(path, whole, target=target, input=shown, promise=promise)


# --- volumes ---


def volume_jobs(net: IntervalNetwork, chosen: Predict, batch_size: int, promise: str, max_gib: float) -> Iterator[Job]:
    """Yield a job for each volume that a path leads to; what could not be read is said at the end."""
    assert chosen.input is not None
    options: dict[str, Any] = {} if chosen.values is None else {"values": chosen.values}
    volumes = read(chosen.input, max_gib=max_gib, **options)
    used: Counter[str] = Counter()
    for volume in volumes:
        form = chosen.format or (volume.kind if volume.kind in ("nifti", "dicom") else "npz")
        name = _name(volume)
        used[name] += 1
        name = name if used[name] == 1 else f"{name}-{used[name]}"
        write = partial(_write_volume, net, volume, form, chosen, batch_size, promise)
        yield Job(name, ".npz" if form == "npz" else "", write)
    if volumes.report.skipped or volumes.report.notes:
        warnings.warn(str(volumes.report), stacklevel=2)


def _name(volume: Volume) -> str:
    """Return the volume's name as one of a file."""
    name = volume.name
    for suffix in (".gz", ".nii", ".npy", ".npz", ".hdf5", ".h5", ".dcm"):
        name = name.removesuffix(suffix)
    return name.replace("/", "_").strip("._ ") or volume.subject


def _write_volume(
    net: IntervalNetwork,
    volume: Volume,
    form: Any,
    chosen: Predict,
    batch_size: int,
    promise: str,
    path: Path,
    progress: bool,
) -> None:
    low, high = chosen.window
    prediction = predict_volume(
        net,
        volume,
        batch_size=batch_size,
        patch=chosen.patch,
        overlap=chosen.overlap,
        window=(low, high),
        progress=progress,
    )
    if form != "npz":
        # Whoever calls knows that it may overwrite.
        write_volume(path, prediction, volume, form=form, overwrite=True, promise=promise)
        return
    spacing = volume.spacing if volume.spacing is not None and np.isfinite(volume.spacing).all() else None
    images = torch.from_numpy(volume.images)
    unit = "HU" if volume.unit == "hu" else ""
    save_npz(path, prediction, input=images, unit=unit, spacing=spacing, dims=2, promise=promise)
