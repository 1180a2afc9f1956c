"""Denoising: images under white Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from intervalnn.tasks.checks import check_images, check_numbers

__all__ = ["Denoising"]


@dataclass(frozen=True)
class Denoising:
    """Images and what noise makes of them; ``A`` changes nothing.

    Args:
        noise: Standard deviation of the noise.

    Example:
        >>> x = Denoising(0.1).measure(torch.zeros(1, 1, 256, 256), torch.Generator().manual_seed(0))
        >>> round(float(x.std()), 2)
        0.1
    """

    noise: float

    def __post_init__(self) -> None:
        check_numbers(noise=self.noise, zero=True)

    def A(self, y: Tensor) -> Tensor:  # noqa: N802 - the paper's letter
        """Return the images ``(batch, 1, height, width)`` themselves."""
        check_images(y)
        return y

    def A_adjoint(self, x: Tensor) -> Tensor:  # noqa: N802
        """Return the measurements themselves."""
        return self.A(x)

    def A_dagger(self, x: Tensor) -> Tensor:  # noqa: N802
        """Return the measurements themselves."""
        return self.A(x)

    def measure(self, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return noisy images."""
        draws = torch.randn(y.shape, generator=generator, dtype=y.dtype, device=y.device)
        return self.A(y) + self.noise * draws

    def inputs(self, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return what a network is given for images: noisy ones."""
        return self.measure(y, generator)
