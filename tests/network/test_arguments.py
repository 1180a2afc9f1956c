"""Arguments that are no tensors: a second one that differs in anything is never taken for the first."""

from __future__ import annotations

import collections
import enum
import functools
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import intervalnn as inn

X = torch.linspace(0.5, 2.0, 12).reshape(4, 3)


class Scaled(nn.Module):
    """A layer times what is read of a second argument."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.read = nn.Linear(3, 3), read

    def forward(self, x: Tensor, given: Any) -> Tensor:
        return self.layer(x) * self.read(given)  # type: ignore[no-any-return]


# --- what looks alike, and is not ---


class Text(str):
    note = 1.0


class Number(float):
    note = 1.0


class Whole(int):
    def __repr__(self) -> str:
        return "Whole"


class Choice(enum.Enum):
    ONE, TWO = 1, 2

    def __repr__(self) -> str:
        return "Choice"


class Key:
    def __init__(self, number: float) -> None:
        self.number = number

    def __repr__(self) -> str:
        return "Key"


def _noted(value: Any, note: float) -> Any:
    value.note = note
    return value


def _pair(factor: float) -> Any:
    class Pair(collections.namedtuple("Pair", ["first", "second"])):
        def total(self) -> Any:
            return self.first * factor

    return Pair(torch.ones(1), torch.ones(1))


def _dataclass(factor: float) -> Any:
    @dataclass
    class Held:
        value: Any

        def total(self) -> Any:
            return self.value * factor

    return Held(torch.ones(1))


class Node:
    def __init__(self, value: Any, key: Key) -> None:
        self.value, self.key = value, key


@contextmanager
def _nodes() -> Iterator[None]:
    pytree.register_pytree_node(Node, lambda node: ([node.value], node.key), lambda values, key: Node(*values, key))
    try:
        yield
    finally:
        pytree._deregister_pytree_node(Node)


class LeavesOut:
    def __init__(self, number: float) -> None:
        self.number = number

    def __getstate__(self) -> dict[str, Any]:
        return {}


class Forgets(LeavesOut):
    def __setstate__(self, state: dict[str, Any]) -> None:
        self.number = 5.0


class MadeAnew(LeavesOut):
    def __reduce__(self) -> Any:
        return MadeAnew, (7.0,)


class Slotted:
    __slots__ = ("number",)

    def __init__(self, number: float) -> None:
        self.number = number

    __getstate__ = LeavesOut.__getstate__


class Parent:
    """An object whose part knows it, as the store of a graph knows the graph."""

    def __init__(self, number: float) -> None:
        self.number, self.part = number, types.SimpleNamespace(parent=weakref.ref(self))


class Settings:
    scale = 1.0


def _settings(scale: float) -> type[Settings]:
    Settings.scale = scale
    return Settings


def _number(value: Any) -> float:
    return value.number  # type: ignore[no-any-return]


# Makes an argument of a number, on which the output depends by what is read of the argument.
ALIKE: dict[str, tuple[Callable[[float], Any], Callable[[Any], Any]]] = {
    "a text with a note": (lambda n: _noted(Text("a"), n), lambda value: value.note),
    "a number with a note": (lambda n: _noted(Number(1.0), n), lambda value: value.note),
    "a number that hides": (lambda n: Whole(n), int),
    "a choice that hides": (lambda n: Choice(n), lambda value: value.value),
    "a key that hides": (lambda n: {Key(n): torch.ones(1)}, lambda value: next(iter(value)).number),
    "pairs of one name": (_pair, lambda value: value.total()),
    "dataclasses of one name": (_dataclass, lambda value: value.total()),
    "a structure that hides": (lambda n: Node(torch.ones(1), Key(n)), lambda value: value.key.number),
    "a default": (
        lambda n: collections.defaultdict(functools.partial(float, n), {"a": torch.ones(1)}), lambda value: value["b"],
    ),
    "a state that leaves out": (LeavesOut, _number),
    "a state that is forgotten": (Forgets, _number),
    "an object that is made anew": (MadeAnew, _number),
    "slots": (Slotted, _number),
    "a part that knows the whole": (Parent, lambda value: value.part.parent().number),
    "a class": (_settings, lambda value: value.scale),
    "an object of a class": (lambda n: _settings(n)(), lambda value: value.scale),
    "a table": (lambda n: pd.DataFrame({"a": [float(n)]}), lambda value: float(value["a"].iloc[0])),
    "a method": (lambda n: Key(n).__dict__.get, lambda value: value("number")),
    "an array": (lambda n: np.array([0.0, n]), lambda value: float(value[1])),
    "negative zero": (lambda n: 0.0 if n > 1 else -0.0, lambda value: np.copysign(1.0, value)),
    "a wanted gradient": (lambda n: torch.ones(3, requires_grad=n > 1), lambda value: 1.0 + value.is_leaf),
}  # fmt: skip


@pytest.mark.rotating
@pytest.mark.parametrize("case", ALIKE)
def test_arguments_that_look_alike_are_told_apart(case: str) -> None:
    make, read = ALIKE[case]
    model = Scaled(read).eval()
    net = inn.IntervalNetwork(model, layers="all")

    with _nodes():
        for number in (1, 2, 1):
            assert torch.equal(net(X, make(number)).point, model(X, make(number)))


def test_a_class_may_be_changed_between_calls() -> None:
    model, given = Scaled(lambda value: value.scale).eval(), Settings()
    net = inn.IntervalNetwork(model, layers="all")

    for scale in (1.0, 2.0):
        Settings.scale = scale
        assert torch.equal(net(X, given).point, model(X, given))


def test_an_object_that_is_the_same_shares_its_program() -> None:
    net = inn.IntervalNetwork(Scaled(_number).eval(), layers="all")

    for _ in range(2):
        net(X, LeavesOut(3.0))

    assert len(net._search.programs) == 1


# --- what is refused ---


class NeedsMore(str):
    def __new__(cls, text: str, note: float) -> NeedsMore:
        return _noted(str.__new__(cls, text), note)  # type: ignore[no-any-return]


def _endless() -> list[Any]:
    held: list[Any] = []
    held.append(held)
    return held


class TensorKey:
    def __init__(self) -> None:
        self.number = torch.ones(1)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a generator": (torch.Generator, r"type Generator.*draws other numbers in each call; pass what it draws"),
    "what takes more to be made": (lambda: NeedsMore("a", 1.0), r"NeedsMore cannot be put together again.*pass its"),
    "what holds itself": (_endless, r"holds itself, or is nested too deeply; pass its tensors"),
    "a tensor in a key": (lambda: {TensorKey(): 1.0}, r"holds tensors in its structure \(TensorKey\); pass them"),
}


@pytest.mark.rotating
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_taken_apart_is_refused_with_the_way_out(case: str) -> None:
    make, said = REFUSED[case]

    with pytest.raises(TypeError, match=said):
        inn.IntervalNetwork(Scaled(lambda value: 1.0).eval(), layers="all")(X, make())


class AsksForGradients(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) * (2.0 if x.requires_grad else 1.0)  # type: ignore[no-any-return]


def test_a_model_that_does_something_else_for_gradients_is_refused_there() -> None:
    net = inn.IntervalNetwork(AsksForGradients().eval(), layers="all")

    assert torch.equal(net(X).point, net.model(X))
    with pytest.raises(ValueError, match="its captured program returns values that are off"):
        net(X.clone().requires_grad_())


# --- where an input lies in memory ---


def test_code_that_reads_where_an_input_lies_is_right_wherever_that_is() -> None:
    model = Scaled(lambda a: a.as_strided((2,), (a.stride(0),), a.storage_offset()).sum()).eval()
    net, rows = inn.IntervalNetwork(model, layers="all"), torch.arange(30.0).view(10, 3)

    for given in (rows[:4], rows[1:5], rows.T[1:], rows[::2], rows[:, 1:], rows[3:4].expand(4, 3)):
        assert torch.equal(net(X, given).point, model(X, given))


def test_a_model_may_ask_how_an_input_is_laid_out() -> None:
    model = Scaled(lambda a: 2.0 if a.is_contiguous() else 1.0).eval()
    net, rows = inn.IntervalNetwork(model, layers="all"), torch.ones(4, 6)

    for given in (rows, rows[:, :3], rows.T, rows[:1].expand(4, 6)):
        assert torch.equal(net(X, given).point, model(X, given))
