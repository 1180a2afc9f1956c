"""The paper's 1D deconvolution: blurred piecewise constant signals (Sec. 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

__all__ = ["Deconvolution"]

CANDIDATES = 60  # jumps drawn, of which those too close to another are dropped
SPACING = 5  # the least distance of two jumps
LEVEL = 1 / 3  # standard deviation of the heights


def cosine_transform(size: int) -> Tensor:
    """Return the orthonormal DCT-I as a matrix, its own transpose and its own inverse."""
    k = torch.arange(size, dtype=torch.float64)
    ends = torch.ones(size, dtype=torch.float64)
    ends[0] = ends[-1] = math.sqrt(0.5)
    return math.sqrt(2 / (size - 1)) * torch.outer(ends, ends) * torch.cos(math.pi / (size - 1) * torch.outer(k, k))


@dataclass(frozen=True)
class Deconvolution:
    """Signals on a circle, piecewise constant, and their blurred measurements.

    Args:
        noise: Standard deviation of the noise that is added to measurements and targets alike,
            each its own, as in the paper's noisy runs.
        size: Length of the signals.
        samples: How many there are, split 8 : 1 : 1 into train, validation and test.
        decay: How the blur's spectrum falls: ``"power"``, ``(1 - k/size)^8``, which is the
            authors' generator; or ``"exponential"``, which is the paper's wording.
        seed: Seed of signals and noise.
    """

    noise: float = 0.0
    size: int = 512
    samples: int = 2000
    decay: Literal["power", "exponential"] = "power"
    seed: int = 0

    @property
    def operator(self) -> Tensor:
        """The blur ``A``, ``(size, size)``."""
        k = torch.arange(self.size, dtype=torch.float64) / self.size
        spectrum = (1 - k) ** 8 if self.decay == "power" else torch.exp(-8 * k)
        transform = cosine_transform(self.size)
        return (transform * spectrum) @ transform

    def A(self, y: Tensor) -> Tensor:  # noqa: N802 - the paper's letter
        """Blur signals ``(..., size)``."""
        return y @ self.operator.to(y)

    def signals(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw signals ``(count, 1, size)``."""
        rows = [self._signal(generator) for _ in range(count)]
        return torch.stack(rows)[:, None, :]

    def _signal(self, generator: torch.Generator) -> Tensor:
        drawn = torch.randint(self.size, (CANDIDATES,), generator=generator).sort().values.tolist()
        jumps = [drawn[0]]
        for jump in drawn[1:]:
            if jump - jumps[-1] >= SPACING and jumps[0] + self.size - jump >= SPACING:  # on a circle
                jumps.append(jump)
        levels = LEVEL * torch.randn(len(jumps), generator=generator)
        segment = torch.searchsorted(torch.tensor(jumps), torch.arange(self.size), right=True) - 1
        return levels[segment]  # -1, before the first jump, is the last segment

    def data(self) -> tuple[Tensor, Tensor]:
        """Return all measurements and targets, ``(samples, 1, size)`` each."""
        generator = torch.Generator().manual_seed(self.seed)
        y = self.signals(self.samples, generator)
        x = self.A(y.double()).to(y.dtype)
        if self.noise:
            x = x + self.noise * torch.randn(x.shape, generator=generator)
            y = y + self.noise * torch.randn(y.shape, generator=generator)
        return x, y

    def tensors(self) -> list[tuple[Tensor, Tensor]]:
        """Return measurements and targets of train, validation and test."""
        x, y = self.data()
        tenth = self.samples // 10
        sizes = [self.samples - 2 * tenth, tenth, tenth]
        return list(zip(x.split(sizes), y.split(sizes), strict=True))

    def splits(self, batch_size: int = 256) -> tuple[DataLoader[tuple[Tensor, ...]], ...]:
        """Return loaders for train (shuffled), validation and test."""
        generator = torch.Generator().manual_seed(self.seed)
        return tuple(
            DataLoader(TensorDataset(x, y), batch_size, shuffle=i == 0, generator=generator)
            for i, (x, y) in enumerate(self.tensors())
        )
