"""Super-resolution: images of which means of small blocks are known."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from intervalnn.tasks.checks import check_counts, check_images, check_numbers

__all__ = ["SuperResolution"]


@dataclass(frozen=True)
class SuperResolution:
    """Means of the blocks of images, with noise; ``A_dagger`` interpolates them.

    Args:
        factor: Rows and columns of a block; those of an image must be a multiple.
        noise: Standard deviation of the noise.

    Example:
        >>> task, y = SuperResolution(2), torch.rand(1, 1, 8, 8)
        >>> task.A(y).shape, task.inputs(y).shape
        (torch.Size([1, 1, 4, 4]), torch.Size([1, 1, 8, 8]))
    """

    factor: int = 2
    noise: float = 0.02

    def __post_init__(self) -> None:
        check_counts(factor=self.factor)
        check_numbers(noise=self.noise, zero=True)

    def A(self, y: Tensor) -> Tensor:  # noqa: N802 - the paper's letter
        """Return the means of the blocks of images ``(batch, 1, height, width)``."""
        check_images(y)
        if any(side % self.factor for side in y.shape[2:]):
            raise ValueError(f"rows and columns must be multiples of {self.factor}, got {tuple(y.shape[2:])}")
        return functional.avg_pool2d(y, self.factor)

    def A_adjoint(self, x: Tensor) -> Tensor:  # noqa: N802
        """Return the measurements, shared out evenly over their blocks."""
        check_images(x)
        return functional.interpolate(x, scale_factor=float(self.factor)) / self.factor**2

    def A_dagger(self, x: Tensor) -> Tensor:  # noqa: N802
        """Return the measurements, interpolated between the middles of blocks."""
        check_images(x)
        return functional.interpolate(x, scale_factor=float(self.factor), mode="bilinear", align_corners=False)

    def measure(self, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return noisy means of blocks."""
        means = self.A(y)
        draws = torch.randn(means.shape, generator=generator, dtype=y.dtype, device=y.device)
        return means + self.noise * draws

    def inputs(self, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return what a network is given for images: noisy means, interpolated."""
        return self.A_dagger(self.measure(y, generator))
