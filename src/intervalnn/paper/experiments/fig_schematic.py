"""Figure "INN Schematic Overview" (Sec. 2), drawn from a network that was really trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn.evaluation.report.schematic import network
from intervalnn.evaluation.report.style import save
from intervalnn.interval import Interval
from intervalnn.network.network import IntervalNetwork
from intervalnn.training import losses
from intervalnn.training.loop import fit

__all__ = ["draw"]

EPOCHS, FIT_EPOCHS = 600, 150


def draw(folder: Path) -> list[Path]:
    """Train a tiny network, give it bounds, and draw every value and every weight as the interval that it is."""
    torch.manual_seed(3)
    x = torch.rand(512, 2) * 2 - 1
    y = (x[:, :1] * x[:, 1:]).abs() + 0.05 * torch.randn(512, 1)
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    fit(model, [(x, y)], loss=losses.mse, epochs=EPOCHS, lr=1e-2, progress=False)
    net = IntervalNetwork(model.eval(), layers="all")
    fit(net, [(x, y)], coverage=0.9, epochs=FIT_EPOCHS, progress=False)
    values, weights = _through(model, net, x[:1])
    return save(network(values, weights), folder / "figures" / "schematic")


@torch.no_grad()
def _through(model: nn.Sequential, net: IntervalNetwork, x: Tensor) -> tuple[list[Any], list[Any]]:
    """Return the intervals of all values, layer by layer, and of all weights between them."""
    intervals = net.weight_intervals()
    values: list[Any] = [_ends(Interval.of(x[0]))]
    weights = []
    for last in (1, 3, 5):  # behind each linear layer and its activation
        part = IntervalNetwork(model[: last + 1], layers="all") if last < 5 else net
        if part is not net:
            part(x)
            for name in part.names:
                part.set_gaps(name, intervals[name].below, intervals[name].above)
        values.append(_ends(part(x)[0]))
        matrix = intervals[f"{last - 1}.weight"]
        weights.append([_ends(matrix[row]) for row in range(len(matrix.point))])
    return values, weights


def _ends(x: Interval) -> list[tuple[float, float, float]]:
    return list(zip(x.lower.tolist(), x.point.tolist(), x.upper.tolist(), strict=True))
