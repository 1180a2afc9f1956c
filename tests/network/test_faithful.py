"""A captured program is the model's own: what a model keeps or draws from call to call is refused by name."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn

CALLS = [0]


class _Model(nn.Module):
    """A linear layer, and what is done to its output."""

    seen: Tensor

    def __init__(self, change: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.change = nn.Linear(3, 3), change
        self.calls, self.held, self.last, self.first = 0, [], None, None
        self.known: dict[Any, Tensor] = {}
        self.generator = np.random.default_rng(0)
        self.register_buffer("seen", torch.ones(1))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        changed: Tensor = self.change(self, self.layer(x + y))
        return changed


def _count(m: Any, x: Tensor) -> Tensor:
    m.calls += 1
    return x * m.calls


def _count_for_all(m: Any, x: Tensor) -> Tensor:
    CALLS[0] += 1
    return x + CALLS[0]


def _append(m: Any, x: Tensor) -> Tensor:
    m.held.append(1)
    return x * len(m.held)


def _add_last(m: Any, x: Tensor) -> Tensor:
    last, m.last = m.last, x
    return x if last is None else x + last


def _subtract_first(m: Any, x: Tensor) -> Tensor:
    m.first = x.mean() if m.first is None else m.first
    return x - m.first


def _replace_buffer(m: Any, x: Tensor) -> Tensor:
    m.seen = m.seen + 1.0
    return x * m.seen


def _look_up(m: Any, x: Tensor) -> Tensor:
    return x + m.known.setdefault(x.shape, torch.linspace(0, 1, 3))


def _trace(m: Any, x: Tensor) -> Tensor:
    m.last = x
    m.calls += 1
    return x


STATEFUL = {
    "a counter": (_count, "'calls'"),
    "a counter of all models": (_count_for_all, "may keep something"),
    "a list": (_append, "'held'"),
    "the last call": (_add_last, "'last'"),
    "the first call": (_subtract_first, "'first'"),
    "a buffer": (_replace_buffer, "'seen'"),
    "Python's numbers": (lambda m, x: x * random.random(), "draws random numbers"),
    "NumPy's numbers": (lambda m, x: x * float(np.random.rand()), "draws random numbers"),  # noqa: NPY002
    "a generator": (lambda m, x: x * m.generator.random(), "may keep something"),
    "a coin": (lambda m, x: x if random.random() < 0.5 else -x, "draws random numbers"),
    "a clock": (lambda m, x: x * (time.perf_counter() % 1.0), "a clock"),
}


def _inputs() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    return torch.randn(4, 3, generator=draw), torch.randn(4, 3, generator=draw)


@pytest.mark.parametrize("case", STATEFUL)
def test_a_model_that_depends_on_more_than_its_input_is_refused_by_name(case: str) -> None:
    change, named = STATEFUL[case]

    with pytest.raises(
        ValueError, match=rf"_Model has no one output to bound.*{named}.*Pass what changes as an argument"
    ):
        inn.IntervalNetwork(_Model(change).eval())(*_inputs())


@pytest.mark.parametrize("change", [_look_up, _trace])
def test_a_model_may_keep_what_its_output_does_not_depend_on(change: Any) -> None:
    model = _Model(change).eval()
    own = model(*_inputs())
    before = model.calls, model.last, dict(model.known)

    bounds = inn.IntervalNetwork(model)(*_inputs())

    assert torch.equal(bounds.point, own)
    assert (model.calls, model.last) == before[:2] and model.known.keys() == before[2].keys()


def test_a_second_input_that_the_model_refuses_says_nothing_against_it() -> None:
    def checked(m: Any, x: Tensor) -> Tensor:
        m.held.append(0)
        if len(m.held) > 1 and not torch.compiler.is_exporting():
            raise RuntimeError("called twice")
        return x

    assert inn.IntervalNetwork(_Model(checked).eval())(*_inputs()).point.shape == (4, 3)


def test_a_model_that_fails_only_when_numbers_are_seen_is_named() -> None:
    def checked(m: Any, x: Tensor) -> Tensor:
        if not torch.compiler.is_exporting():
            raise RuntimeError("a sensor is missing")
        return x

    with pytest.raises(ValueError, match=r"the model itself does not take this input.*a sensor is missing"):
        inn.IntervalNetwork(_Model(checked).eval())(*_inputs())


def test_random_numbers_that_nothing_depends_on_are_no_reason_to_refuse() -> None:
    def draws(m: Any, x: Tensor) -> Tensor:
        random.random()
        return x

    assert inn.IntervalNetwork(_Model(draws).eval())(*_inputs()).point.shape == (4, 3)


class _Writes(_Model):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x += 1.0
        own: Tensor = self.layer(x) + y
        return own


def test_an_input_that_is_written_to_and_passed_twice_is_followed() -> None:
    model, (x, _) = _Writes(_trace).eval(), _inputs()
    copy = x.clone()

    point = inn.IntervalNetwork(model)(x, x).point

    assert torch.equal(point, model(copy, copy))


@pytest.mark.parametrize("parts", [lambda x: (x, x[:]), lambda x: x.split(2)])
def test_an_input_that_is_written_to_and_shares_its_memory_is_refused(parts: Any) -> None:
    net = inn.IntervalNetwork(_Writes(_trace).eval())
    x, y = parts(_inputs()[0])
    net(x.clone(), y.clone())  # whose program holds for other memory only

    with pytest.raises(ValueError, match=r"writes to an input that shares its memory.*pass x\.clone\(\)"):
        net(x, y)
