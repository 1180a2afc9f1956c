"""Canvas: slices through a body, in Hounsfield units, that shapes are painted on."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["Canvas", "rounded"]

FIELD = 40.0  # width of an image in centimetres
AIR, MARROW, BONE = -1000.0, 220.0, 750.0


class Canvas:
    """Slices ``hu``, ``(slices, size, size)``, at first air, and where their pixels are in the body, in centimetres.

    ``x`` points to the patient's left, which is right in the image; ``y`` to the front, which is up; ``z`` to the
    head. The body is shifted and turned a little, and its space bent, so that nothing drawn is quite regular.
    A shape is its distance: how far each pixel is outside it, negative inside. All random draws are in
    centimetres, so that a patient is the same at every size.

    Args:
        size: Rows and columns.
        heights: The ``z`` of each slice.
        generator: Source of all that is random.
    """

    def __init__(self, size: int, heights: Tensor, generator: torch.Generator) -> None:
        self.generator = generator
        self.shape = (len(heights), size, size)
        self.pixel = FIELD / size
        self._height = heights - heights.min()
        self.hu = torch.full(self.shape, AIR)
        across = (torch.arange(size) + 0.5) * self.pixel - FIELD / 2
        turn = self.between(-0.06, 0.06)
        self.flat_x = (across - self.between(-0.8, 0.8)).expand(self.shape)  # before space is bent
        self.flat_y = (-across[:, None] - self.between(-0.3, 1.2)).expand(self.shape)
        x = self.flat_x * math.cos(turn) + self.flat_y * math.sin(turn)
        y = self.flat_y * math.cos(turn) - self.flat_x * math.sin(turn)
        self.x = x + self._bend()
        self.y = y + self._bend()
        self.z = heights[:, None, None].expand(self.shape)

    def _bend(self) -> Tensor:
        return 0.3 * self.noise(15.0) + 0.35 * self.noise(6.0) + 0.1 * self.noise(2.0)

    def between(self, low: float, high: float) -> float:
        """Draw a number."""
        return low + (high - low) * float(torch.rand((), generator=self.generator))

    def noise(self, cell: float) -> Tensor:
        """Draw a field of numbers around 0 that varies over ``cell`` centimetres, and half as fast along ``z``."""
        position = self._height / (2 * cell)
        below = position.long()
        nodes = math.ceil(FIELD / cell) + 2
        coarse = torch.randn(int(below.max()) + 2, 1, nodes, nodes, generator=self.generator)
        planes = F.interpolate(coarse, self.shape[1:], mode="bicubic", align_corners=True)[:, 0]
        return torch.lerp(planes[below], planes[below + 1], (position - below)[:, None, None])

    def cover(self, distance: Tensor) -> Tensor:
        """Return the share of each pixel that a shape covers."""
        return (0.5 - distance / self.pixel).clamp(0.0, 1.0)

    def paint(self, distance: Tensor, hu: Tensor | float) -> None:
        """Paint a shape over what is there."""
        self.blend(self.cover(distance), hu)

    def blend(self, share: Tensor, hu: Tensor | float) -> None:
        """Replace a share of what is there."""
        self.hu = self.hu + share * (hu - self.hu)

    def bone(self, distance: Tensor) -> None:
        """Paint a bone: a hard shell around its marrow."""
        self.paint(distance, BONE)
        self.paint(distance + 0.22, MARROW)

    def ellipsoid(
        self, center: tuple[float, float, float], radii: tuple[float, float, float], tilt: float = 0.0
    ) -> Tensor:
        """Return the distance from an ellipsoid, tilted in the plane; one of height ``inf`` is a rod."""
        x, y = self.x - center[0], self.y - center[1]
        cos, sin = math.cos(tilt), math.sin(tilt)
        u, v, w = (x * cos + y * sin) / radii[0], (y * cos - x * sin) / radii[1], (self.z - center[2]) / radii[2]
        slope = 2 * torch.hypot(u / radii[0], v / radii[1])
        return (u**2 + v**2 + w**2 - 1) / (slope + 0.05)

    def oval(self, y: Tensor | float, width: float, height: Tensor | float, power: float) -> Tensor:
        """Return the distance from an oval around ``(0, y)``, the more of a rectangle the higher the power."""
        x, y = self.x, self.y - y
        level = ((x / width).abs() ** power + (y / height).abs() ** power + 1e-9) ** (1 / power)
        return torch.hypot(x, y) * (1 - 1 / level)

    def rod(self, x: Tensor | float, y: Tensor | float, radius: Tensor | float) -> Tensor:
        """Return the distance from a rod along ``z``."""
        return torch.hypot(self.x - x, self.y - y) - radius


def rounded(first: Tensor, second: Tensor, radius: float = 0.4) -> Tensor:
    """Return the distance from where two shapes overlap, with corners of some radius."""
    first, second = first + radius, second + radius
    outside = torch.hypot(first.clamp(min=0.0), second.clamp(min=0.0))
    return outside + torch.maximum(first, second).clamp(max=0.0) - radius
