"""Tensors: slices of volumes as a network takes them."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional as F

from intervalnn.data.readers.units import AIR, to_unit
from intervalnn.data.readers.volume import Volume

__all__ = ["slices"]


def slices(volumes: Iterable[Volume], size: int) -> Tensor:
    """Return all slices on the scale of the networks, [0, 1], as ``(slices, 1, size, size)``.

    An image that is not square is centred on air. Sizes that divide are reduced by means of
    blocks, others are interpolated after smoothing, both before values are clipped.

    Args:
        volumes: Read one after the other; only their slices of the new size are kept.
        size: Rows and columns of the result.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    parts = []
    for volume in volumes:
        images = _resized(torch.from_numpy(volume.images)[:, None], size, AIR if volume.unit == "hu" else 0.0)
        parts.append(torch.from_numpy(to_unit(images.numpy())) if volume.unit == "hu" else images.clamp(0.0, 1.0))
    if not parts:
        raise ValueError("there is no volume: read found none, and its report says why")
    return torch.cat(parts)


def _resized(images: Tensor, size: int, outside: float) -> Tensor:
    rows, columns = images.shape[-2:]
    side = max(rows, columns)
    top, left = (side - rows) // 2, (side - columns) // 2
    square = F.pad(images, (left, side - columns - left, top, side - rows - top), value=outside)
    if side == size:
        return square
    if side % size == 0:
        return F.avg_pool2d(square, side // size)
    return F.interpolate(square, (size, size), mode="bilinear", antialias=True, align_corners=False)
