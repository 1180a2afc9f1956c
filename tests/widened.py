"""Networks and inputs with intervals, for tests of more than one kind of gaps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import intervalnn as inn


def as_weights(net: inn.IntervalNetwork, x: Any, **options: Any) -> inn.IntervalNetwork:
    """Return a network with the same intervals, a gap below and one above each weight."""
    other = inn.IntervalNetwork(net.model, **({"layers": "all"} | options))
    with torch.no_grad():
        other(x)
        for name, w in net.weight_intervals().items():
            other.set_gaps(name, w.below, w.above)
    return other


def around(x: Tensor) -> inn.Interval:
    """Return an interval around an input, a little wider above."""
    return inn.Interval(x, 0.1 * torch.rand_like(x), 0.2 * torch.rand_like(x))
