"""Inputs: what a network is given for each image, computed once and kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from intervalnn.data.readers.npy import load_mapped
from intervalnn.files.whole import replacing
from intervalnn.tasks import ImageTask

__all__ = ["inputs"]

PART = 32  # images per file: what a stop may cost


@torch.no_grad()
def inputs(
    task: ImageTask, images: Tensor, folder: Path, *, seed: int = 0, say: Callable[[str], None] = lambda _: None
) -> Tensor:
    """Return the inputs for images, from the folder where they are there; a run that was stopped goes on.

    Files are named after the task with all its settings, the seed of its noise and the images, so nothing
    stale is ever read, and processes may share a folder.

    Args:
        task: Makes the inputs; its printed form must have all its settings, as that of a dataclass has.
        images: ``(count, 1, height, width)``; they may lie on a GPU, where the inputs are then computed.
        folder: Where to keep the files.
        seed: Seed of the noise.
        say: Is told how far it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number, part in enumerate(images.split(PART)):
        content = part.cpu().contiguous().numpy().tobytes()
        key = hashlib.sha256(f"{task!r} {seed} {number} {tuple(part.shape)}".encode() + content).hexdigest()[:24]
        path = folder / f"{key}.npy"
        known = _read(path, tuple(part.shape))
        if known is None:
            say(f"inputs: {number * PART} of {len(images)} images")
            generator = torch.Generator(part.device).manual_seed(seed * 1_000_003 + number)
            known = task.inputs(part, generator).cpu()
            _write(path, known)
        made.append(known)
    return torch.cat(made).to(images.device)


def _read(path: Path, shape: tuple[int, ...]) -> Tensor | None:
    """Return what the file holds; None where there is none, or one that is not whole."""
    try:
        values = np.array(load_mapped(path))
    except (OSError, ValueError):
        return None
    return torch.from_numpy(values) if values.shape == shape and values.dtype == np.float32 else None


def _write(path: Path, values: Tensor) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, values.numpy())
