"""Arguments that are no tensors: objects with tensors inside, arrays, values that are nearly equal, or change."""

from __future__ import annotations

import collections
import types
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import intervalnn as inn
from members.checking import Fault, check_draws, check_point, linear, need, open_gaps, tried


@dataclass
class Sample:
    values: Any
    more: dict[str, Any] = field(default_factory=dict)


class Graph:
    """Like a batch of graphs: attributes that are set from outside, and a length."""

    def __init__(self, values: Any) -> None:
        self.values, self.count = values, 1

    def __len__(self) -> int:
        return self.count


class Slotted:
    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        self.values = values


Pair = collections.namedtuple("Pair", ["first", "second"])


def drawn(random: Random, depth: int) -> Any:
    """Return an argument: plain, a tensor, an array, or something that holds others."""
    seed = random.getrandbits(32)
    if depth == 0:
        size = random.choice([1, 3, 3000])
        return random.choice(
            [
                lambda: random.random(),
                lambda: random.randrange(1000),
                lambda: random.choice(["sum", "mean"]),
                lambda: None,
                lambda: random.random() < 0.5,
                lambda: torch.randn(size, generator=torch.Generator().manual_seed(seed)),
                lambda: torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64),
                lambda: torch.randint(5, (size,), generator=torch.Generator().manual_seed(seed)),
                lambda: np.random.default_rng(seed).normal(size=size),
                lambda: np.float64(random.random()),
                lambda: complex(random.random(), 1.0),
            ]
        )()
    inside = [drawn(random, depth - 1) for _ in range(2)]
    return random.choice(
        [
            lambda: inside,
            lambda: tuple(inside),
            lambda: {"a": inside[0], "b": inside[1]},
            lambda: collections.OrderedDict(b=inside[0], a=inside[1]),
            lambda: collections.UserDict(a=inside[0], b=inside[1]),
            lambda: collections.UserList(inside),
            lambda: Sample(inside[0], {"rest": inside[1]}),
            lambda: Pair(*inside),
            lambda: types.SimpleNamespace(a=inside[0], b=inside[1]),
            lambda: Graph(inside),
            lambda: Slotted(inside),
        ]
    )()


def parts(value: Any) -> list[Any]:
    """Return all that an argument holds, in order."""
    if isinstance(value, collections.UserDict | dict):
        return [x for key in value for x in parts(value[key])]
    if isinstance(value, list | tuple | collections.UserList):
        return [x for item in value for x in parts(item)]
    if isinstance(value, Sample | types.SimpleNamespace | Graph):
        return [x for item in vars(value).values() for x in parts(item)]
    return parts(value.values) if isinstance(value, Slotted) else [value]


def total(value: Any) -> Any:
    """Return a number that depends on every last part of an argument, each by its place."""
    found: Any = 0.0
    for place, part in enumerate(parts(value), 1):
        if isinstance(part, str):
            part = len(part) * 0.1
        elif part is None:
            part = 0.25
        elif isinstance(part, complex):
            part = part.real - part.imag
        elif isinstance(part, Tensor):
            part = part.float().mean()
        elif isinstance(part, np.ndarray):
            part = float(part.mean())
        found = found + place * part
    return found


class Weighed(nn.Module):
    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, given: Any) -> Tensor:
        result: Tensor = self.layer(x) * total(given)
        return result


def changed(value: Any, random: Random) -> Any:
    """Change the least of an argument in place, where it can be; else draw another."""
    for part in parts(value):
        if isinstance(part, Tensor) and part.is_floating_point():
            part[random.randrange(part.numel())] += 0.5
            return value
        if isinstance(part, np.ndarray):
            part[random.randrange(part.size)] += 50.0
            return value
    return drawn(random, 2)


def member(random: Random) -> str:
    """Try one: several calls, of equal structure or not, each right."""
    model = Weighed(linear(random)).eval()
    net = inn.IntervalNetwork(model, layers="all")
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(random.getrandbits(32)))
    given, said, refused = drawn(random, random.randrange(3)), "", False

    def attempt() -> None:
        with torch.no_grad():
            bounds, own = net(x, given), model(x, given)
        check_point(bounds, own, said)
        check_draws(net, bounds, lambda: model(x, given), random, said, draws=2)

    for call in range(4):
        said = f"call {call} with {type(given).__name__} of {[type(part).__name__ for part in parts(given)]}"
        outcome = tried(attempt)
        need(not (refused and outcome == "bounded"), f"{said}: taken after it was refused")
        if outcome == "refused":
            return outcome
        open_gaps(net, random, 0.01)
        given = changed(given, random) if random.random() < 0.7 else drawn(random, random.randrange(3))
    return "bounded"


__all__ = ["Fault", "member"]
