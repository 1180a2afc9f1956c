"""Volumes: predict a whole series, slice by slice or patch by patch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import torch
from rich.progress import track
from torch import Tensor

from intervalnn.data.readers.volume import Volume
from intervalnn.data.tiling import predict_tiled
from intervalnn.data.writing import check_replaceable, write_volume
from intervalnn.prediction import Method, Prediction

__all__ = ["check_replaceable", "predict_volume", "write_volume"]

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
    for batch in track(batches, "predicting") if progress else batches:
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
