"""What a model holds beside its weights may change between calls: the program is then another one."""

from __future__ import annotations

import enum
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn

Forward = Callable[[Any, Tensor], Tensor]
X = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [0.0, 1.0, 1.0], [2.0, -2.0, 0.5]])


class Holding(nn.Module):
    """A layer, and something beside it that its forward reads."""

    def __init__(self, held: Any, forward: Forward) -> None:
        super().__init__()
        self.layer, self.made = nn.Linear(3, 3), forward
        self.held = held

    def forward(self, x: Tensor) -> Tensor:
        return self.made(self, self.layer(x))


class Sort(enum.Enum):
    TWO = 2.0
    THREE = 3.0


def times(of: Callable[[Any], float]) -> Forward:
    return lambda model, y: y * of(model.held)


CHANGES: dict[str, tuple[Any, Any, Forward]] = {
    "a number and a flag": (1, True, lambda model, y: y[model.held]),
    "a whole number and another": (2, 2.0, times(lambda held: 2 if isinstance(held, float) else 3)),
    "the sign of zero": (0.0, -0.0, times(lambda held: math.copysign(1, held))),
    "the sign of zero in a list": ([0.0], [-0.0], times(lambda held: math.copysign(1, held[0]))),
    "a flag in a list": ([1], [True], times(lambda held: 3 if held[0] is True else 2)),
    "a list and a tuple": ([1], (1,), times(lambda held: 2 if isinstance(held, list) else 3)),
    "values behind odd keys": ({(1, 2): 2.0}, {(1, 2): 5.0}, times(lambda held: held[1, 2])),
    "nothing and a range": (None, range(5), times(lambda held: 1 if held is None else len(held))),
    "ranges": (range(4), range(5), times(len)),
    "numbers of NumPy": (np.float64(2), np.float64(3), times(float)),
    "members of an enumeration": (Sort.TWO, Sort.THREE, times(lambda held: held.value)),
    "slices": (slice(0, 1), slice(0, 2), lambda model, y: y[:, model.held]),
    "frozen sets": (frozenset([1]), frozenset([1, 2]), times(len)),
    "functions with arguments": (
        functools.partial(torch.mul, other=2), functools.partial(torch.mul, other=3), lambda model, y: model.held(y)
    ),
    "objects": (types.SimpleNamespace(a=1), types.SimpleNamespace(a=2), times(lambda held: held.a)),
    "long lists": ([2.0] * 2000, [3.0] * 2000, times(lambda held: held[0])),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_another_value_leads_to_another_program(name: str) -> None:
    before, after, forward = CHANGES[name]
    model = Holding(before, forward).eval()
    net = inn.IntervalNetwork(model, layers="all")
    assert torch.equal(net(X).point, model(X))

    model.held = after
    assert torch.equal(net(X).point, model(X))
    model.held = before
    assert torch.equal(net(X).point, model(X))


READ: dict[str, Forward] = {
    "item": times(lambda held: held.item()),
    "float": times(float),
    "tolist": times(lambda held: held.tolist()),
    "a function of mathematics": times(math.sqrt),
    "a test": times(lambda held: math.isnan(held.item())),
    "text": times(lambda held: float(f"{held:.3f}")),
    "text of a number": times(lambda held: float(f"{held.item():.2f}")),
    "a size": lambda model, y: y[:, : int(model.held)],
}


@pytest.mark.parametrize("name", READ)
def test_a_tensor_that_the_model_holds_may_be_read_and_change(name: str) -> None:
    model = Holding(torch.tensor(2.0), READ[name]).eval()
    net = inn.IntervalNetwork(model, layers="all")
    assert torch.equal(net(X).point, model(X))

    for change in (lambda held: held.fill_(3.0), lambda held: held.data.fill_(1.0), lambda held: held.numpy().fill(2)):
        change(model.held)
        assert torch.equal(net(X).point, model(X))


def test_the_kind_of_a_number_that_was_read_may_be_asked_for() -> None:
    class Asking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)
            self.register_buffer("count", torch.tensor(3))

        def forward(self, x: Tensor) -> Tensor:
            made: Tensor = self.layer(x) * (2 if isinstance(self.count.item(), int) else 3)
            return made

    model = Asking().eval()
    assert torch.equal(inn.IntervalNetwork(model, layers="all")(X).point, model(X))


def test_the_sign_of_a_zero_that_was_read_is_kept_in_mind() -> None:
    class Signed(nn.Module):
        zero: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)
            self.register_buffer("zero", torch.tensor(0.0))

        def forward(self, x: Tensor) -> Tensor:
            made: Tensor = self.layer(x) * math.copysign(1, self.zero.item())
            return made

    model = Signed().eval()
    net = inn.IntervalNetwork(model, layers="all")
    assert torch.equal(net(X).point, model(X))
    model.zero.fill_(-0.0)
    assert torch.equal(net(X).point, model(X))


def test_names_count_too() -> None:
    model = Holding(2.0, lambda model, y: y * (model.held if hasattr(model, "held") else 9.0)).eval()
    net = inn.IntervalNetwork(model, layers="all")
    net(X)
    del model.held
    model.other = 2.0

    assert torch.equal(net(X).point, model(X))


def test_a_buffer_may_come_and_go() -> None:
    class Shifted(nn.Module):
        shift: Tensor | None

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)
            self.register_buffer("shift", None)

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.layer(x)
            return y if self.shift is None else y + self.shift

    model = Shifted().eval()
    net = inn.IntervalNetwork(model, layers="all")
    for shift in (None, torch.ones(2), None):
        model.shift = shift
        assert torch.equal(net(X).point, model(X))


def test_what_an_interval_was_written_to_by_many_at_once_is_not_read() -> None:
    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            total = torch.zeros(1)
            torch._foreach_add_([total], [x.mean()[None]])
            made: Tensor = self.layer(x)
            return made * 2 if total.item() > 0 else made

    with pytest.raises(ValueError, match="branches on the value of a tensor"):
        inn.IntervalNetwork(Written().eval(), layers="all")(-X)


class Sharing(nn.Module):
    """A buffer in the memory of a bias."""

    first: Tensor

    def __init__(self, read: bool) -> None:
        super().__init__()
        self.layer, self.read = nn.Linear(3, 3), read
        self.register_buffer("first", self.layer.bias.data)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.layer(x) * (self.first[0].item() if self.read else self.first[0])
        return made


def test_a_buffer_in_the_memory_of_a_parameter_has_its_gaps() -> None:
    model = Sharing(read=False).eval()
    net = inn.IntervalNetwork(model, layers="all")
    net.set_gaps("layer.bias", 0.5, 0.5)
    bounds = net(X)
    with torch.no_grad():
        model.layer.bias[0] += 0.5

    assert bool(((model(X) >= bounds.lower - 1e-5) & (model(X) <= bounds.upper + 1e-5)).all())


def test_a_buffer_in_the_memory_of_a_parameter_is_not_read() -> None:
    with pytest.raises(inn.MissingRuleError, match="reads a number back into Python"):
        inn.IntervalNetwork(Sharing(read=True).eval(), layers="all")(X)
