"""Parallel-beam line integrals of images by Joseph's method, their exact adjoint, and smearing views back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["ParallelBeam", "wide_enough"]

CPU, DEVICE = 2**21, 2**26  # samples at once: what suits a CPU's caches, and what keeps an accelerator busy


class _Linear(torch.autograd.Function):
    """A linear map that keeps nothing for its gradient, which is its adjoint, and so on to any order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, apply: Callable[[Tensor], Tensor], adjoint: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.swapped = adjoint, apply
        return apply(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _linear(gradient, *ctx.swapped), None, None


def _linear(x: Tensor, apply: Callable[[Tensor], Tensor], adjoint: Callable[[Tensor], Tensor]) -> Tensor:
    y: Tensor = _Linear.apply(x, apply, adjoint)  # type: ignore[no-untyped-call]
    return y


def _transposed(linear: Callable[[Tensor], Tensor], like: Tensor, gradient: Tensor) -> Tensor:
    """Return the transpose of a linear function of tensors ``like`` this one, applied to ``gradient``."""
    with torch.inference_mode(False), torch.enable_grad():
        at = torch.zeros_like(like).requires_grad_()
        return torch.autograd.grad(linear(at), at, gradient)[0]


def _centred(count: int) -> Tensor:
    """Return the positions of pixels or bins of width 1, centred: pixel ``(count - 1) / 2`` is at 0."""
    return torch.arange(count, dtype=torch.float64) - (count - 1) / 2


def _sample(planes: Tensor, across: Tensor, along: Tensor) -> Tensor:
    """Read planes ``(k, channels, height, width)`` at positions ``(k, rows, columns)``, linearly, zero outside."""
    height, width = planes.shape[-2:]
    grid = torch.stack((across * (2 / width), (along * (2 / height)).expand_as(across)), -1)
    return F.grid_sample(planes, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


@dataclass(frozen=True, eq=False)
class ParallelBeam:
    """Rays ``s = x cos(theta) + y sin(theta)`` through images of pixel width 1.

    ``x`` points right and ``y`` up, the origin is the centre of the image, and the detector's bins,
    also of width 1, are centred on it. All maps take and give batches without channels; devices and
    dtypes follow them. Each can be differentiated, to any order, and keeps no sample points for that.

    Args:
        size: Rows and columns of the images.
        theta: The angles in radians, float64, in any order.
        detectors: How many bins a view has.
    """

    size: int
    theta: Tensor
    detectors: int

    def project(self, images: Tensor) -> Tensor:
        """Return line integrals ``(batch, angles, detectors)`` of images ``(batch, size, size)``."""
        return _linear(images, self._project, self._project_adjoint)

    def project_adjoint(self, views: Tensor) -> Tensor:
        """Return the transpose of :meth:`project` applied to views: the gradients' back-projection."""
        return _linear(views, self._project_adjoint, self._project)

    def smear(self, views: Tensor) -> Tensor:
        """Return for each pixel the sum over the angles of the views where its ray meets the detector.

        It interpolates between bins, and so makes a better filtered back-projection than the adjoint.
        """
        return _linear(views, self._smear, self._smear_adjoint)

    def _project(self, images: Tensor) -> Tensor:
        views = images.new_empty(len(images), len(self.theta), self.detectors)
        for part in self._parts(images):
            views[:, part] = self._views(images, part)
        return views

    def _project_adjoint(self, views: Tensor) -> Tensor:
        images = views.new_zeros(len(views), self.size, self.size)
        for part in self._parts(views):
            images += _transposed(partial(self._views, part=part), images, views[:, part])
        return images

    def _smear(self, views: Tensor) -> Tensor:
        images = views.new_zeros(len(views), self.size, self.size)
        for part in self._parts(views):
            images += self._image(views[:, part], part)
        return images

    def _smear_adjoint(self, images: Tensor) -> Tensor:
        views = images.new_empty(len(images), len(self.theta), self.detectors)
        for part in self._parts(images):
            views[:, part] = _transposed(partial(self._image, part=part), views[:, part], images)
        return views

    def _parts(self, batch: Tensor) -> Iterator[Tensor]:
        """Yield the angles' indices in chunks, in each of which all rays run closer to the same axis."""
        samples = max(1, len(batch)) * self.size * self.detectors
        at_once = max(1, (CPU if batch.device.type == "cpu" else DEVICE) // samples)
        upright = self.theta.cos().abs() >= self.theta.sin().abs()
        for indices in (upright.nonzero().flatten(), (~upright).nonzero().flatten()):
            if len(indices):
                yield from indices.split(at_once)

    def _views(self, images: Tensor, part: Tensor) -> Tensor:
        """Project at some angles: one sample of each ray in each row of pixels it crosses (Joseph, 1982)."""
        theta = self.theta[part][:, None, None]
        steep, other = theta.cos(), theta.sin()
        plane = images.flip(-2)  # rows in the order of y
        if steep[0].abs() < other[0].abs():
            plane, steep, other = plane.mT, other, steep
        rows = _centred(self.size)[:, None]
        across = (_centred(self.detectors) / steep).to(images) - (rows * other / steep).to(images)
        samples = _sample(plane[None], across.flatten(0, 1)[None], rows.repeat(len(part), 1).to(images))
        views = samples.view(len(images), len(part), self.size, self.detectors).sum(2)
        return views / steep.abs()[:, 0].to(images)

    def _image(self, views: Tensor, part: Tensor) -> Tensor:
        """Smear the views of some angles."""
        theta = self.theta[part][:, None, None]
        x = _centred(self.size)
        s = (x * theta.cos()).to(views) - (x[:, None] * theta.sin()).to(views)  # rows run down, y up
        return _sample(views.transpose(0, 1)[:, :, None], s, torch.zeros_like(s)).sum(0)


def wide_enough(size: int) -> int:
    """Return how many bins see all of a square image, corners included."""
    return math.ceil(math.sqrt(2) * size)
