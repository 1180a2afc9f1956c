"""Sparse activations of entmax, and splines of pykan."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from zoo import real

from outside.case import network, of


class Activated(nn.Module):
    """A classifier whose last activation is sparse."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.first, self.last, self.name = nn.Linear(3, 6), nn.Linear(6, 4), name

    def forward(self, x: Tensor) -> Any:
        return getattr(of("entmax"), self.name)(self.last(torch.relu(self.first(x))), dim=-1)


ENTMAX = [
    network("sparsemax", lambda: Activated("sparsemax"), real(2, 3), rel=1e-3),
    network("1.5-entmax", lambda: Activated("entmax15"), real(2, 3), rel=1e-3),
    network("sparsemax by bisection", lambda: Activated("sparsemax_bisect"), real(2, 3), rel=1e-3),
]


def _kan() -> nn.Module:
    made: nn.Module = of("kan").KAN(width=[2, 3, 1], grid=3, k=3, seed=0, auto_save=False, save_act=False)
    return made


PYKAN = [network("KAN, cubic splines", _kan, lambda: ((torch.rand(4, 2) * 1.6 - 0.8,), {}), rel=1e-4)]
