"""The twin of a module, to which all happens that happens in a capture."""

from __future__ import annotations

import collections
import contextlib
import functools
import random
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.network.capture.twin import Twin

X = torch.linspace(-1.0, 2.0, 6).reshape(2, 3)


class Body(nn.Module):
    """A layer, something that the module holds, and what its forward does to it."""

    def __init__(self, held: Any, does: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.held, self.does = nn.Linear(3, 3), held, does
        self.own = torch.ones(3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        self.does(self, y)
        return y  # type: ignore[no-any-return]


class Slots:
    __slots__ = ("__hidden", "value")

    def __init__(self) -> None:
        self.value: Any = 0
        self.__hidden: Any = 0

    def hide(self, value: Any) -> None:
        self.__hidden = value

    def shown(self) -> Any:
        return self.value, self.__hidden


class Dict(dict):  # type: ignore[type-arg]
    pass


class List(list):  # type: ignore[type-arg]
    pass


Pair = collections.namedtuple("Pair", ["first", "second"])


def _default(y: Any, seen: list[Any]) -> None:
    seen.append(y)


def _kept_function() -> Any:
    def keep(y: Tensor, seen: list[Any] = []) -> list[Any]:  # noqa: B006 - what models do
        seen.append(y)
        return seen

    return keep


# What a module holds, what its forward does to it, and how to see whether that was done.
HOLDERS: dict[str, tuple[Callable[[], Any], Callable[[Any, Tensor], Any], Callable[[Any], Any]]] = {
    "a dict of its own class": (Dict, lambda m, y: m.held.update(y=y), lambda held: dict(held)),
    "a list of its own class": (List, lambda m, y: m.held.append(y), lambda held: list(held)),
    "slots": (Slots, lambda m, y: (setattr(m.held, "value", y), m.held.hide(y)), lambda held: held.shown()),
    "a pair of lists": (lambda: Pair([], {}), lambda m, y: m.held.first.append(y), lambda held: list(held.first)),
    "a deque": (lambda: collections.deque(maxlen=2), lambda m, y: m.held.append(y), lambda held: list(held)),
    "a default": (_kept_function, lambda m, y: m.held(y), lambda held: len(held.__defaults__[0])),
    "a partial": (
        lambda: functools.partial(_default, seen=[]), lambda m, y: m.held(y), lambda held: list(held.keywords["seen"]),
    ),
    "a generator of numbers": (
        lambda: random.Random(0), lambda m, y: m.held.random(), lambda held: held.getstate(),
    ),
    "a method of a generator": (
        lambda: random.Random(0).random, lambda m, y: m.held(), lambda held: held.__self__.getstate(),
    ),
    "a generator of NumPy": (
        lambda: np.random.default_rng(0), lambda m, y: m.held.random(), lambda held: str(held.bit_generator.state),
    ),
    "an array": (lambda: np.zeros(1), lambda m, y: m.held.__iadd__(1), lambda held: held.tolist()),
}  # fmt: skip


@pytest.mark.rotating
@pytest.mark.parametrize("case", HOLDERS)
def test_what_a_module_holds_is_left_as_it_was(case: str) -> None:
    make, does, look = HOLDERS[case]
    model = Body(make(), does).eval()
    before = look(model.held)

    with contextlib.suppress(ValueError):  # by which models are refused that draw random numbers
        inn.IntervalNetwork(model, layers="all")(X)

    assert look(model.held) == before


@pytest.mark.rotating
@pytest.mark.parametrize("kind", [weakref.ref, weakref.proxy])
def test_a_module_may_be_held_by_its_parts(kind: Any) -> None:
    model = Body(None, lambda m, y: None)
    model.layer.__dict__["parent"] = kind(model)

    def note(m: Any, args: Any, y: Any) -> None:
        (m.parent() if kind is weakref.ref else m.parent).held = y

    model.layer.register_forward_hook(note)
    own = model.eval()(X)
    model.held = None

    assert torch.equal(inn.IntervalNetwork(model, layers="all")(X).point, own)
    assert model.held is None


def test_modules_may_be_keys() -> None:
    model = Body({}, lambda m, y: m.held[m.layer].append(y))
    model.held[model.layer] = []

    assert inn.IntervalNetwork(model.eval(), layers="all")(X).point.shape == (2, 3)
    assert model.held[model.layer] == []


def test_tensors_that_share_memory_share_it_in_a_twin() -> None:
    model = Body(None, lambda m, y: None)
    model.held = [model.layer.weight.detach()[1], model.layer.weight, model.layer.weight.data.T]
    model.own.requires_grad_()

    twin: Any = Twin(model, with_tensors=True).module
    with torch.no_grad():
        twin.layer.weight.mul_(0.0)

    assert twin.held[1] is twin.layer.weight and isinstance(twin.layer.weight, nn.Parameter)
    assert not twin.held[0].any() and not twin.held[2].any() and model.layer.weight.all()
    assert twin.own.requires_grad and torch.equal(twin.own, model.own) and twin.own is not model.own


# --- what is kept outside of the module ---

KEPT: dict[Any, Tensor] = {}


@functools.lru_cache
def _ramp(size: int) -> Tensor:
    return torch.linspace(0, 1, size)


class Outside(nn.Module):
    """Adds a row of numbers that it keeps outside of itself, so that it need not be made again."""

    known: dict[Any, Tensor] = {}  # noqa: RUF012 - what models do

    def __init__(self, how: str) -> None:
        super().__init__()
        self.layer, self.how = nn.Linear(3, 3), how

    def forward(self, x: Tensor, given: dict[Any, Tensor] = {}) -> Tensor:  # noqa: B006 - what models do
        size = x.shape[-1]
        if self.how == "lru_cache":
            return self.layer(x) + _ramp(size)  # type: ignore[no-any-return]
        kept = {"a global": KEPT, "the class": self.known, "a default": given}[self.how]
        if size not in kept:
            kept[size] = torch.linspace(0, 1, size)
        return self.layer(x) + kept[size]  # type: ignore[no-any-return]


@pytest.mark.rotating
@pytest.mark.parametrize("how", ["lru_cache", "a global", "the class", "a default"])
def test_a_model_may_keep_tensors_outside_of_itself(how: str) -> None:
    _ramp.cache_clear()
    model = Outside(how).eval()
    net = inn.IntervalNetwork(model, layers="all")

    bounds = net(X)

    assert type(model(X)) is Tensor and torch.equal(bounds.point, model(X))
    assert torch.equal(net(X[:1]).point, model(X[:1]))
