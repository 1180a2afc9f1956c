"""Predictions that the tests of the viewer look at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from intervalnn.prediction import Prediction
from intervalnn.view import save_npz

SLICES, ROWS, COLUMNS = 9, 40, 48


def prediction(shape: tuple[int, ...], seed: int = 0, scale: float = 300.0) -> tuple[Prediction, Tensor]:
    """Return a prediction with gaps of many sizes, and a target that mostly lies inside."""
    noise = torch.Generator().manual_seed(seed)
    point = scale * torch.randn(shape, generator=noise)
    below, above = (scale / 10 * torch.rand(shape, generator=noise) ** 3 for _ in range(2))
    target = point + 0.6 * scale / 10 * (torch.rand(shape, generator=noise) - 0.5)
    return Prediction(point, below, above, below + above), target


def volume(path: Path) -> Path:
    """Write a small volume in HU, with its target and input."""
    made, target = prediction((SLICES, 1, ROWS, COLUMNS))
    return save_npz(path, made, target=target, input=target + 20, unit="HU", spacing=(2.0, 0.8, 0.7))


def signals(path: Path) -> Path:
    """Write a few signals, with their targets."""
    made, target = prediction((5, 1, 200), seed=1, scale=1.0)
    return save_npz(path, made, target=target)


def shown(path: Path, i: int) -> dict[str, np.ndarray]:
    """Return by plain numpy what the page should show of a slice of a file that was written here."""
    with np.load(path) as file:
        point, below, above, target = (file[name][i, 0] for name in ("point", "below", "above", "target"))
    return {
        "point": point,
        "lower": point - below,
        "upper": point + above,
        "score": below + above,
        "direction": (above - below) / (above + below),
        "target": target,
        "error": target - point,
    }
