"""ImageTask: what all inverse problems on images can do, so that one experiment runs any of them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from intervalnn.tasks.checks import check_counts, check_images

__all__ = ["ImageTask", "datasets"]


@runtime_checkable
class ImageTask(Protocol):
    """Measurements ``x = A y + noise`` of images ``y``, ``(batch, 1, height, width)``, and a first guess at ``y``."""

    def A(self, y: Tensor) -> Tensor:  # noqa: N802 - the paper's letter
        """Return measurements without noise."""

    def A_adjoint(self, x: Tensor) -> Tensor:  # noqa: N802
        """Return the adjoint of ``A``, applied to measurements."""

    def A_dagger(self, x: Tensor) -> Tensor:  # noqa: N802
        """Return a simple reconstruction of the images."""

    def measure(self, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return measurements with the noise of the task."""

    def inputs(self, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return what a network is given: the simple reconstruction of a measurement, real and as large as ``y``."""


@torch.no_grad()
def datasets(task: ImageTask, *images: Tensor, batch_size: int = 8, seed: int = 0) -> tuple[TensorDataset, ...]:
    """Return for each set of images, say train, validation and test, a dataset of what the network is given and images.

    Each set has noise of its own, which its place among the sets, ``seed`` and ``batch_size`` determine.

    Args:
        task: The inverse problem.
        images: Sets of images, ``(count, 1, height, width)`` each.
        batch_size: How many are measured at a time.
        seed: Seed of the noise.

    Example:
        >>> from intervalnn.tasks import Denoising
        >>> train, test = datasets(Denoising(0.1), torch.rand(6, 1, 8, 8), torch.rand(2, 1, 8, 8))
        >>> len(train), len(test), [part.shape for part in test[0]]
        (6, 2, [torch.Size([1, 8, 8]), torch.Size([1, 8, 8])])
    """
    check_counts(batch_size=batch_size)
    seeds = torch.randint(2**62, (len(images),), generator=torch.Generator().manual_seed(seed)).tolist()
    made = []
    for own, y in zip(seeds, images, strict=True):
        check_images(y)
        generator = torch.Generator(y.device).manual_seed(own)
        made.append(TensorDataset(torch.cat([task.inputs(part, generator) for part in y.split(batch_size)]), y))
    return tuple(made)
