"""Images of ellipses, and their line integrals in closed form."""

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor


@dataclass(frozen=True)
class Ellipse:
    """A bump ``height * (1 - q)**smoothness`` where ``q < 1``, ``q = 1`` on the edge; centred at ``(x, y)``, tilted."""

    height: float
    a: float
    b: float
    x: float = 0.0
    y: float = 0.0
    tilt: float = 0.0
    smoothness: int = 0  # 0 is a sharp edge

    def at(self, x: Tensor, y: Tensor) -> Tensor:
        cos, sin = math.cos(self.tilt), math.sin(self.tilt)
        x, y = x - self.x, y - self.y
        q = ((x * cos + y * sin) / self.a) ** 2 + ((y * cos - x * sin) / self.b) ** 2
        return self.height * torch.where(q < 1, (1 - q).clamp(min=0) ** self.smoothness, 0.0)

    def integrals(self, theta: Tensor, s: Tensor) -> Tensor:
        """Line integrals along ``s = x cos(theta) + y sin(theta)``."""
        k = self.smoothness
        reach = torch.hypot(self.a * torch.cos(theta - self.tilt), self.b * torch.sin(theta - self.tilt))
        u = (s - self.x * torch.cos(theta) - self.y * torch.sin(theta)) / reach
        beta = math.gamma(0.5) * math.gamma(k + 1) / math.gamma(k + 1.5)
        return self.height * beta * self.a * self.b / reach * (1 - u**2).clamp(min=0) ** (k + 0.5)


def phantom(size: int, smoothness: int) -> tuple[Ellipse, ...]:
    half = size / 2
    return (
        Ellipse(1.0, 0.8 * half, 0.6 * half, 0.02 * half, -0.03 * half, 0.3, smoothness),
        Ellipse(-0.4, 0.25 * half, 0.4 * half, -0.35 * half, 0.1 * half, -0.2, smoothness),
        Ellipse(0.7, 0.2 * half, 0.15 * half, 0.3 * half, 0.2 * half, 0.9, smoothness),
        Ellipse(0.5, 0.3 * half, 0.2 * half, 0.1 * half, -0.3 * half, -0.5, smoothness),
    )


@cache
def image(ellipses: tuple[Ellipse, ...], size: int, finer: int = 1) -> Tensor:
    """Return ``(1, 1, size, size)``, each pixel the mean of ``finer`` by ``finer`` points."""
    x = (torch.arange(size * finer, dtype=torch.float64) + 0.5) / finer - size / 2
    values = sum(ellipse.at(x, -x[:, None]) for ellipse in ellipses)
    return torch.nn.functional.avg_pool2d(values[None, None], finer)


def sinogram(ellipses: tuple[Ellipse, ...], theta: Tensor, detectors: int, finer: int = 1) -> Tensor:
    """Return ``(1, 1, angles, detectors)``, each bin the mean of ``finer`` points."""
    s = (torch.arange(detectors * finer, dtype=torch.float64) + 0.5) / finer - detectors / 2
    values = sum(ellipse.integrals(theta[:, None], s) for ellipse in ellipses)
    return torch.nn.functional.avg_pool1d(values[None], finer)[None]
