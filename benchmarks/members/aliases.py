"""A parameter that ``forward`` reaches by another path than its registered name."""

from __future__ import annotations

import collections
import functools
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

import intervalnn as inn
from members.checking import check_draws, check_point, linear, need, open_gaps, tried

REGISTRY: dict[int, Any] = {}


class Slots:
    __slots__ = ("kept",)

    def __init__(self, kept: Any) -> None:
        self.kept = kept


@dataclass
class Held:
    kept: Any


Holder = tuple[Any, Callable[[Any], Any]]


def _method(value: Any) -> Holder:
    return types.MethodType(lambda self: self.kept, Held(value)), lambda m: m()


def _registered(value: Any) -> Holder:
    place = len(REGISTRY)
    REGISTRY[place] = value
    return place, REGISTRY.__getitem__


# What keeps a value, and how it is got back.
HOLDERS: dict[str, Callable[[Any], Holder]] = {
    "list": lambda value: ([0, value], lambda held: held[1]),
    "tuple": lambda value: ((value,), lambda held: held[0]),
    "dict": lambda value: ({"w": value}, lambda held: held["w"]),
    "ordered dict": lambda value: (collections.OrderedDict(w=value), lambda held: held["w"]),
    "deque": lambda value: (collections.deque([value]), lambda held: held[0]),
    "user dict": lambda value: (collections.UserDict(w=value), lambda held: held["w"]),
    "namespace": lambda value: (types.SimpleNamespace(w=value), lambda held: held.w),
    "dataclass": lambda value: (Held(value), lambda held: held.kept),
    "slots": lambda value: (Slots(value), lambda held: held.kept),
    "closure": lambda value: (lambda: value, lambda held: held()),
    "default": lambda value: (lambda kept=value: kept, lambda held: held()),
    "partial": lambda value: (functools.partial(lambda kept: kept, value), lambda held: held()),
    "method": _method,
    "registry": _registered,
    "property": lambda value: (type("P", (), {"kept": property(lambda self: value)})(), lambda held: held.kept),
    "iterator": lambda value: ([value], lambda held: next(iter(held))),
}

# What of the parameter is kept: itself, the same memory by another tensor, or a part of it.
LEAVES: dict[str, tuple[Callable[[nn.Linear], Any], Callable[[Any], Tensor]]] = {
    "parameter": (lambda layer: layer.weight, lambda w: w),
    "data": (lambda layer: layer.weight.data, lambda w: w),
    "detached": (lambda layer: layer.weight.detach(), lambda w: w),
    "another parameter": (lambda layer: nn.Parameter(layer.weight.data), lambda w: w),
    "flat view": (lambda layer: layer.weight.data.view(-1), lambda w: w.view(3, 3)),
    "transposed view": (lambda layer: layer.weight.data.t(), lambda w: w.t()),
    "rows": (lambda layer: list(layer.weight.data), torch.stack),
    "first rows": (lambda layer: layer.weight.data[:2], lambda w: torch.cat((w, w[:1]))),
    "copy": (lambda layer: layer.weight.data.clone(), lambda w: w),
    "parameters": (lambda layer: list(layer.parameters()), lambda held: held[0]),
    "named parameters": (lambda layer: dict(layer.named_parameters()), lambda held: held["weight"]),
    "state dict": (lambda layer: layer.state_dict(), lambda held: held["weight"]),
    "module": (lambda layer: layer, lambda layer: layer.weight),
    "weak reference": (weakref.ref, lambda layer: layer().weight),
}


class Reaching(nn.Module):
    def __init__(self, layer: nn.Linear, leaf: str, holders: list[str], functional: bool) -> None:
        super().__init__()
        self.layer, self.before, self.functional = layer, nn.Linear(3, 3), functional
        keep, self.read = LEAVES[leaf]
        held, self.steps = keep(layer), []
        for name in holders:
            held, back = HOLDERS[name](held)
            self.steps.append(back)
        object.__setattr__(self, "held", held)

    def weight(self) -> Tensor:
        held = self.held
        for back in reversed(self.steps):
            held = back(held)
        return self.read(held)

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x).relu()
        if self.functional:
            result: Tensor = functional_call(self.layer, {"weight": self.weight()}, (x,))
            return result
        return F.linear(x, self.weight(), self.layer.bias)


def member(random: Random) -> str:
    """Try one."""
    layer, leaf = linear(random), random.choice(list(LEAVES))
    holders = random.choices(list(HOLDERS), k=random.randrange(3))
    model = Reaching(layer, leaf, holders, random.random() < 0.3).eval()
    said = f"{leaf} in {' in '.join(holders) or 'an attribute'}"
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(random.getrandbits(32)))

    def attempt() -> None:
        net = inn.IntervalNetwork(model, random.choice([["layer"], ["layer.weight"], "all"]))
        with torch.no_grad():
            net(x)
            open_gaps(net, random)
            bounds, own = net(x), model(x)
        check_point(bounds, own, said)
        check_draws(net, bounds, lambda: model(x), random, said)
        if leaf != "copy":
            net.set_gaps("layer.bias", 0.0, 0.0) if "layer.bias" in net.names else None
            moves = bool(model.before(x).relu().any())  # else the weight is multiplied by zeros
            need(not moves or bool((net(x).width > 0).any()), f"{said}: the gaps of the weight open nothing")

    return tried(attempt)
