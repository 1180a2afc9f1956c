"""Models whose output depends on more than their weights and inputs, or that write to what they are given."""

from __future__ import annotations

import random as python_random
import time
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import intervalnn as inn
from members.checking import check_draws, check_point, linear, open_gaps, tried

COUNTED = [0]


def _counts(m: Any, x: Tensor) -> Tensor:
    m.calls += 1
    return x * m.calls


def _keeps_last(m: Any, x: Tensor) -> Tensor:
    last, m.last = getattr(m, "last", torch.zeros_like(x)), x
    return x + last


def _global(m: Any, x: Tensor) -> Tensor:
    COUNTED[0] += 1
    return x + COUNTED[0]


def _appends(m: Any, x: Tensor) -> Tensor:
    m.held.append(1.0)
    return x * len(m.held)


def _normalises_once(m: Any, x: Tensor) -> Tensor:
    if m.mean is None:
        m.mean = x.mean()
    return x - m.mean


def _caches(m: Any, x: Tensor) -> Tensor:
    if x.shape not in m.cache:
        m.cache[x.shape] = torch.linspace(0, 1, x.shape[-1])
    return x + m.cache[x.shape]


def _writes(m: Any, x: Tensor) -> Tensor:
    x += 1.0
    return x


def _reads_numbers(m: Any, x: Tensor) -> Tensor:
    return x * torch.tensor(x.detach().tolist()).mean()


def _reads_array(m: Any, x: Tensor) -> Tensor:
    return x + torch.from_numpy(x.detach().numpy().copy())


def _buffer(m: Any, x: Tensor) -> Tensor:
    m.seen.add_(1.0)
    return x * m.seen


def _assigns_buffer(m: Any, x: Tensor) -> Tensor:
    m.seen = m.seen + 1.0
    return x * m.seen


KINDS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "counter": _counts,
    "last input": _keeps_last,
    "global counter": _global,
    "growing list": _appends,
    "first batch": _normalises_once,
    "cache by shape": _caches,
    "write to the input": _writes,
    "numbers of the input": _reads_numbers,
    "array of the input": _reads_array,
    "buffer in place": _buffer,
    "buffer anew": _assigns_buffer,
    "Python's random": lambda m, x: x * python_random.random(),
    "numpy's random": lambda m, x: x * float(np.random.rand()),  # noqa: NPY002 - what models do
    "numpy's generator": lambda m, x: x * float(m.generator.random()),
    "torch's random": lambda m, x: x + torch.rand_like(x),
    "torch's generator": lambda m, x: x + torch.rand(x.shape[-1], generator=m.torch_generator),
    "random choice": lambda m, x: x + 1.0 if python_random.random() < 0.5 else x - 1.0,
    "clock": lambda m, x: x * (time.perf_counter() % 1.0),
    "shuffled": lambda m, x: x[:, torch.from_numpy(np.random.permutation(x.shape[-1]))],  # noqa: NPY002
    "nothing": lambda m, x: x,
}


class Stateful(nn.Module):
    seen: Tensor

    def __init__(self, layer: nn.Linear, kind: str, late: bool) -> None:
        super().__init__()
        self.layer, self.kind, self.late = layer, kind, late
        self.calls, self.held, self.mean, self.cache = 0, [], None, {}
        self.generator, self.torch_generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
        self.register_buffer("seen", torch.ones(1))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.late:
            x = KINDS[self.kind](self, x)
        result: Tensor = self.layer(x + y)
        return KINDS[self.kind](self, result) if self.late else result


def member(random: Random) -> str:
    """Try one: refused, or its point is what the model returns for each input."""
    kind = random.choice(list(KINDS))
    model = Stateful(linear(random), kind, random.random() < 0.5).eval()
    generator = torch.Generator().manual_seed(random.getrandbits(32))
    net, twice = inn.IntervalNetwork(model, layers="all"), random.random() < 0.3

    def own(x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            x = x.clone()
            return model(x, x if twice else y.clone())

    def attempt() -> None:
        for call in range(3):
            said = f"{kind}, call {call}{', one tensor twice' if twice else ''}"
            x, y = (torch.randn(4, 3, generator=generator) for _ in range(2))
            given = x.clone()
            with torch.no_grad():
                bounds = net(given, given if twice else y.clone())
            check_point(bounds, own(x, y), said)
            check_draws(net, bounds, lambda x=x, y=y: own(x, y), random, said, draws=2)
            open_gaps(net, random)

    return tried(attempt)
