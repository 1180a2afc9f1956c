"""Volumes: predict a whole series, slice by slice or patch by patch, and write it for a viewer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from rich.progress import track
from torch import Tensor

from intervalnn.data.readers import nifti
from intervalnn.data.readers.derived import Stored, write_series
from intervalnn.data.readers.volume import Volume
from intervalnn.data.tiling import predict_tiled
from intervalnn.files.whole import beside, replace_folder
from intervalnn.prediction import Method, Prediction

__all__ = ["check_replaceable", "predict_volume", "write_volume"]

QUANTITIES = ("lower", "point", "upper", "score", "direction")
Place = tuple[slice, ...]


def predict_volume(
    method: Method,
    volume: Volume,
    *,
    batch_size: int = 8,
    patch: tuple[int, ...] | None = None,
    overlap: float | None = None,
    window: tuple[float, float] = (-1000.0, 1000.0),
    progress: bool = True,
) -> Prediction:
    """Return the prediction for every pixel of a volume, ``(slices, rows, columns)``, in the unit of the volume.

    The method gets images on its own scale, cut to [0, 1], as ``(batch, 1, rows, columns)`` or, with patches
    in three dimensions, ``(batch, 1, slices, rows, columns)``.

    Patches give what the whole slices or volume would, up to rounding (:func:`intervalnn.tiling.predict_tiled`). This
    takes a network that looks less far than a patch is wide; any other is refused, unless an overlap is given.

    With an overlap, points, gaps and scores are weighted means where patches overlap, with less weight to
    the edges of a patch. So lower, point and upper stay in order; and where each patch's bounds contain
    the truth, so do theirs, up to rounding. A promised coverage need not carry over: calibrate what
    is blended as it will be used.

    Args:
        method: Anything with ``predict(x)`` that maps an image to one of its size.
        volume: What :func:`intervalnn.data.read` yields.
        batch_size: How many slices or patches to take at a time.
        patch: Size of the patches, ``(rows, columns)`` or, which a model of three dimensions wants, ``(slices, rows,
            columns)``; whole slices by default.
        overlap: Share of a patch that the next one covers again, to blend them.
        window: Hounsfield units at 0 and 1 of the method's scale.
        progress: Whether to show a progress bar.
    """
    low, high = window
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"window must be two numbers in ascending order, LOW and HIGH, got {window}")
    images = torch.from_numpy(volume.images)
    if volume.unit == "hu":
        images = ((images - low) / (high - low)).clamp(0.0, 1.0)
    size = tuple(images.shape[1:]) if patch is None else tuple(patch)
    _check(size, batch_size, overlap)
    if patch is None or overlap is not None:
        weight = torch.ones(size) if patch is None else _weight(size)
        parts = _blended(method, images, weight, overlap or 0.0, batch_size, progress)
    else:
        x = images[:, None] if len(size) == 2 else images[None, None]
        parts = _parts(predict_tiled(method, x, tile=size, batch_size=batch_size, progress=progress), x)
        parts = {name: part.view_as(images) for name, part in parts.items()}
    if volume.unit == "hu":
        parts = {name: values * (high - low) for name, values in parts.items()}
        parts["point"] += low
    return Prediction(**parts)


def _blended(
    method: Method, images: Tensor, weight: Tensor, overlap: float, batch_size: int, progress: bool
) -> dict[str, Tensor]:
    """Return weighted means of what is predicted for overlapping patches, which are as large as ``weight``."""
    size = tuple(weight.shape)
    padded = _padded(images, (*[1] * (3 - len(size)), *size))
    places = list(_places(padded.shape, size, overlap))
    sums: dict[str, Tensor] = {}
    total = torch.zeros(padded.shape)
    batches = [places[i : i + batch_size] for i in range(0, len(places), batch_size)]
    for batch in track(batches, "predicting", disable=not progress):
        x = torch.stack([padded[place].reshape(1, *size) for place in batch])
        for name, values in _predicted(method, x).items():
            into = sums.setdefault(name, torch.zeros(padded.shape))
            for place, value in zip(batch, values, strict=True):
                into[place] += (weight * value[0]).view_as(into[place])
        for place in batch:
            total[place] += weight.view_as(total[place])
    inside = tuple(slice(length) for length in images.shape)
    return {name: (into / total)[inside] for name, into in sums.items()}


def _check(size: tuple[int, ...], batch_size: int, overlap: float | None) -> None:
    if len(size) not in (2, 3) or min(size) < 1:
        raise ValueError(f"patch must be (rows, columns) or (slices, rows, columns), got {size}")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if overlap is not None and not 0 <= overlap < 1:
        raise ValueError(f"overlap must lie in [0, 1), got {overlap}")


def _padded(images: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return images with air behind them, if a patch is larger than they are."""
    more = [max(0, wanted - length) for wanted, length in zip(size, images.shape, strict=True)]
    return torch.nn.functional.pad(images, (0, more[2], 0, more[1], 0, more[0]))


def _places(shape: tuple[int, ...], size: tuple[int, ...], overlap: float) -> Iterator[Place]:
    """Yield where the patches lie; the last along an axis ends where the axis does."""
    whole = (*[1] * (len(shape) - len(size)), *size)
    starts = []
    for length, part in zip(shape, whole, strict=True):
        step = max(1, math.floor(part * (1 - overlap)))
        starts.append([*range(0, length - part, step), length - part])
    for corner in product(*starts):
        yield tuple(slice(start, start + part) for start, part in zip(corner, whole, strict=True))


def _weight(size: tuple[int, ...]) -> Tensor:
    """Return weights that fall from the middle of a patch to its edges, and are positive."""
    weight = torch.ones(())
    for length in size:
        i = torch.arange(length)
        weight = weight[..., None] * (torch.minimum(i, length - 1 - i) + 1.0) / length
    return weight


def _predicted(method: Method, x: Tensor) -> dict[str, Tensor]:
    device = getattr(method, "device", None)
    try:
        with torch.no_grad():
            prediction = method.predict(x if device is None else x.to(device))
    except Exception as error:
        if x.dim() == 4:
            error.add_note(
                "Volumes are predicted slice by slice, as (batch, 1, rows, columns); a model of three dimensions wants "
                "patches: patch=(D, H, W), on the command line --patch D,H,W."
            )
        raise
    return _parts(prediction, x)


def _parts(prediction: Prediction, x: Tensor) -> dict[str, Tensor]:
    """Return the parts of a prediction by name, once it is known to be one image for each of ``x``."""
    if not isinstance(prediction, Prediction):
        raise TypeError(f"the method must predict one image, got a {type(prediction).__name__}")
    if prediction.point.shape != x.shape:
        raise ValueError(
            f"the prediction must have shape {tuple(x.shape)}, like x, got {tuple(prediction.point.shape)}"
        )
    names = ("point", "below", "above", "score", "deviation")
    parts = {name: getattr(prediction, name) for name in names}
    return {name: part.to("cpu", torch.float32) for name, part in parts.items() if part is not None}


# --- writing ---


def write_volume(
    folder: str | Path,
    prediction: Prediction,
    volume: Volume,
    *,
    form: Literal["nifti", "dicom"] = "nifti",
    overwrite: bool = False,
    promise: str = "",
) -> dict[str, Path]:
    """Write lower, point, upper, score and direction so that they lie on the volume, and return where they are.

    As NIfTI, ``lower.nii.gz`` and so on, in float32, on the grid of the volume's file; the description in the
    header says the unit (``intervalnn lower, HU``). As DICOM, a folder and a new series for each, in whole
    numbers: of bounds that are rounded outwards, so that they still contain what they did. DICOM files name the
    patient as the files of the volume do.

    Args:
        folder: Appears once all is written.
        prediction: ``(slices, rows, columns)``, what :func:`predict_volume` returns.
        volume: What it was predicted from.
        form: ``"nifti"`` or ``"dicom"``.
        overwrite: Whether to replace a folder that this function wrote before.
        promise: What holds on new data, in words, such as ``net.calibration.promise``; it is written along.
    """
    if form not in ("nifti", "dicom"):
        raise ValueError(f"form must be 'nifti' or 'dicom', got {form!r}")
    arrays = _arrays(prediction, volume)
    names = {name: f"{name}.nii.gz" if form == "nifti" else name for name in QUANTITIES}
    folder = Path(folder).resolve()
    check_replaceable(folder, overwrite)
    with beside(folder) as place:
        temporary = place / folder.name
        temporary.mkdir()
        if form == "nifti":
            comment = f"intervalnn promise: {promise}" if promise else ""
            for name, array in arrays.items():
                unit = ", HU" if volume.unit == "hu" and name != "direction" else ""
                description = f"intervalnn {name}{unit}"
                nifti.write(temporary / names[name], array, volume, description=description, comment=comment)
        else:
            write_series(temporary, _stored(arrays, volume), volume, promise=promise)
        replace_folder(folder, temporary)
    return {name: folder / file for name, file in names.items()}


def _arrays(prediction: Prediction, volume: Volume) -> dict[str, NDArray[np.float32]]:
    shape = tuple(prediction.point.shape)
    if shape != volume.images.shape:
        raise ValueError(f"the prediction must have shape {volume.images.shape}, like the volume, got {shape}")
    arrays = {name: prediction[name].detach().cpu().float().numpy() for name in QUANTITIES}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"the {name} must be finite to be written")
    return arrays


def check_replaceable(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that is there, unless it is ours and to be replaced."""
    if not folder.exists():
        return
    if not overwrite:
        raise FileExistsError(f"{folder} is there already: take another, or overwrite=True")
    ours = {form for name in QUANTITIES for form in (name, f"{name}.nii.gz")}
    if not folder.is_dir() or not {path.name for path in folder.iterdir()} <= ours:
        raise FileExistsError(f"{folder} holds more than a prediction, and is not replaced; take another")


def _stored(arrays: dict[str, NDArray[np.float32]], volume: Volume) -> dict[str, Stored]:
    """Return whole numbers: bounds rounded outwards on one scale, so that lower <= point <= upper."""
    unit: Literal["HU", "US"] = "HU" if volume.unit == "hu" else "US"
    least, most = float(arrays["lower"].min()), float(arrays["upper"].max())
    middle = math.floor((least + most) / 2)
    slope = _slope((most - least) / 2 + 1)
    rounding = {"lower": np.floor, "point": np.rint, "upper": np.ceil}
    stored = {
        name: Stored(
            _whole(turn((arrays[name].astype(np.float64) - middle) / slope)), slope, middle, unit, f"INN {name}"
        )
        for name, turn in rounding.items()
    }
    slope = _slope(float(arrays["score"].max()))
    stored["score"] = Stored(_whole(np.ceil(arrays["score"].astype(np.float64) / slope)), slope, 0, unit, "INN score")
    stored["direction"] = Stored(_whole(arrays["direction"]), 1.0, 0, "US", "INN direction")
    return stored


def _slope(largest: float) -> float:
    """Return the least power of two, within reason, at which a value fits into 16 bits."""
    return 2.0 ** max(-14, math.ceil(math.log2(max(largest, 1e-9) / 32000)))


def _whole(numbers: NDArray[np.floating]) -> NDArray[np.int16]:
    return numbers.astype(np.int16)
