"""Magnetic resonance imaging with one coil: columns of the Fourier transform, the rest left out to save time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from intervalnn.tasks.checks import check_counts, check_images, check_numbers

__all__ = ["MRI"]


@dataclass(frozen=True)
class MRI:
    """Images and some columns of their centred, orthonormal Fourier transform; all others are zero.

    The columns around frequency zero are all measured. As many more are measured as make the
    acceleration, the nearest whole number of columns to ``width / acceleration`` in all. A network is
    given the magnitude of the zero-filled reconstruction, which is what a scanner shows.

    Args:
        width: Columns of the images; they may have any number of rows.
        acceleration: How many times fewer columns are measured than there are.
        center: Share of the columns that is measured around frequency zero.
        spacing: Whether the other columns are drawn at random, or evenly spaced from a random start.
        noise: Standard deviation of the complex noise on each measured number, half its variance in the
            real and half in the imaginary part.
        seed: Seed of the columns.

    Example:
        >>> task = MRI(128, acceleration=4)
        >>> int(task.mask.sum()), task.inputs(torch.rand(2, 1, 128, 128)).shape
        (32, torch.Size([2, 1, 128, 128]))
    """

    width: int
    acceleration: float = 4.0
    center: float = 0.08
    spacing: Literal["random", "equispaced"] = "random"
    noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_counts(width=self.width)
        check_numbers(acceleration=self.acceleration, center=self.center)
        check_numbers(noise=self.noise, zero=True)
        if self.spacing not in ("random", "equispaced"):
            raise ValueError(f"spacing must be 'random' or 'equispaced', got {self.spacing!r}")
        inner, total = self._counts
        if not 1 <= inner <= total <= self.width:
            raise ValueError(
                f"of {self.width} columns, at least 1 and at most {total} can be measured around frequency zero at "
                f"acceleration {self.acceleration}; center={self.center} asks for {inner}: change one of them"
            )

    @property
    def _counts(self) -> tuple[int, int]:
        """How many columns are measured around frequency zero, and in all."""
        return round(self.width * self.center), round(self.width / self.acceleration)

    @cached_property
    def mask(self) -> Tensor:
        """Which columns are measured, as booleans ``(width,)``; frequency zero is at ``width // 2``."""
        generator = torch.Generator().manual_seed(self.seed)
        inner, total = self._counts
        mask = torch.zeros(self.width, dtype=torch.bool)
        first = self.width // 2 - inner // 2
        mask[first : first + inner] = True
        outer = (~mask).nonzero().flatten()
        if self.spacing == "random":
            chosen = torch.randperm(len(outer), generator=generator)[: total - inner]
        else:
            start = float(torch.rand((), generator=generator))
            chosen = ((torch.arange(total - inner) + start) * (len(outer) / max(1, total - inner))).long()
        mask[outer[chosen]] = True
        return mask

    def A(self, y: Tensor) -> Tensor:  # noqa: N802 - the paper's letter
        """Return the measured columns of images ``(batch, 1, height, width)``, complex, as large as they."""
        self._check(y)
        return _centred(torch.fft.fft2, y) * self.mask.to(y.device)

    def A_adjoint(self, x: Tensor) -> Tensor:  # noqa: N802
        """Return the adjoint of ``A`` over complex images, applied to measurements: complex images."""
        self._check(x)
        return _centred(torch.fft.ifft2, x * self.mask.to(x.device))

    def A_dagger(self, x: Tensor) -> Tensor:  # noqa: N802
        """Return the zero-filled reconstruction, complex images: the adjoint, since the transform is orthonormal."""
        return self.A_adjoint(x)

    def measure(self, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return the measured columns with noise."""
        x = self.A(y)
        if not self.noise:
            return x
        draws = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        return x + self.noise * draws * self.mask.to(x.device)

    def inputs(self, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return what a network is given for images: the magnitude of the zero-filled reconstruction."""
        return self.A_dagger(self.measure(y, generator)).abs()

    def _check(self, images: Tensor) -> None:
        check_images(images.real if images.is_complex() else images, width=self.width)


def _centred(transform: Callable[..., Tensor], images: Tensor) -> Tensor:
    """Apply a Fourier transform whose zero is in the middle, in space and in frequency; it keeps lengths."""
    middle_first = torch.fft.ifftshift(images, dim=(-2, -1))
    transformed: Tensor = torch.fft.fftshift(transform(middle_first, norm="ortho"), dim=(-2, -1))
    return transformed
