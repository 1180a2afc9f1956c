"""Small interval networks to export."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import intervalnn as inn


def widened(model: nn.Module, x: Any, *, relative: float = 1e-2, layers: Any = "all") -> inn.IntervalNetwork:
    """Return a network with gaps in proportion to the weights, wider above."""
    net = inn.IntervalNetwork(model.eval(), layers=layers)
    net.predict(*(x if isinstance(x, tuple) else (x,)))
    for name, weight in net.weight_intervals().items():
        if name in net.names:
            net.set_gaps(name, relative * weight.point.abs(), 2 * relative * weight.point.abs())
    return net


def linear(*, relative: float = 1e-2) -> inn.IntervalNetwork:
    """Return two layers from three numbers to two."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    return widened(model, torch.ones(2, 3), relative=relative)


def calibrated(net: inn.IntervalNetwork, shape: tuple[int, ...], **options: Any) -> inn.IntervalNetwork:
    """Calibrate a network on noisy predictions of its own model."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(40, *shape, generator=generator)
    point = net.predict(x).point
    y = point + 0.1 * torch.randn(point.shape, generator=generator)
    inn.calibrate(net, [(x[:10], y[:10]), (x[10:], y[10:])], coverage=0.8, **options)
    return net


def signal(*shape: int, seed: int = 2) -> Tensor:
    """Return numbers to try a network on."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
