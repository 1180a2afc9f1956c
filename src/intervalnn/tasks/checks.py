"""What tasks on images refuse: wrong shapes, dtypes and settings."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["check_counts", "check_images", "check_numbers"]


def check_images(images: Tensor, height: int | None = None, width: int | None = None, what: str = "images") -> None:
    """Refuse tensors without the shape ``(batch, 1, height, width)``, empty batches, and other dtypes than floats."""
    if (
        images.ndim != 4
        or images.shape[1] != 1
        or images.shape[2] != (height or images.shape[2])
        or images.shape[3] != (width or images.shape[3])
    ):
        want = f"(batch, 1, {height or 'height'}, {width or 'width'})"
        raise ValueError(f"{what} must have shape {want}, got {tuple(images.shape)}")
    if not len(images):
        raise ValueError(f"there are no {what}: give at least one")
    if images.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"{what} must be float32 or float64, got {images.dtype}; convert them first")


def check_counts(**counts: int) -> None:
    """Refuse what is no whole number from 1."""
    for name, count in counts.items():
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"{name} must be a whole number from 1, got {count!r}")


def check_numbers(*, zero: bool = False, **numbers: float) -> None:
    """Refuse numbers that are not finite and above 0; with ``zero``, 0 is allowed too."""
    for name, number in numbers.items():
        if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
            raise ValueError(f"{name} must be finite and {'at least' if zero else 'above'} 0, got {number}")
