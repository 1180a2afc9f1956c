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
    "a generator": (lambda m, x: x * m.generator.random(), "draws random numbers"),
    "a generator that rarely matters": (
        lambda m, x: x if m.generator.random() > 1e-3 else -x, "may return something else in each call.*random numbers",
    ),
    "a coin": (lambda m, x: x if random.random() < 0.5 else -x, "draws random numbers"),
    "a rare case": (lambda m, x: x if random.random() > 1e-6 else -x, "draws random numbers"),
    "a frequent case": (lambda m, x: x if random.random() < 1 - 1e-6 else -x, "draws random numbers"),
    "a rare case of NumPy's": (
        lambda m, x: x if np.random.rand() > 1e-6 else -x, "draws random numbers",  # noqa: NPY002
    ),
    "a clock": (lambda m, x: x * (time.perf_counter() % 1.0), "a clock"),
}  # fmt: skip


def _inputs() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    return torch.randn(4, 3, generator=draw), torch.randn(4, 3, generator=draw)


@pytest.mark.rotating
@pytest.mark.parametrize("case", STATEFUL)
def test_a_model_that_depends_on_more_than_its_input_is_refused_by_name(case: str) -> None:
    change, named = STATEFUL[case]

    with pytest.raises(
        ValueError, match=rf"_Model has no one output to bound.*{named}.*Pass what changes as an argument"
    ):
        inn.IntervalNetwork(_Model(change).eval(), layers="all")(*_inputs())


@pytest.mark.rotating
@pytest.mark.parametrize("x", [torch.zeros(4, 3), torch.full((4, 3), torch.nan)])
def test_what_a_model_keeps_of_its_first_input_is_seen_whatever_that_is(x: Tensor) -> None:
    with pytest.raises(ValueError, match="'first'"):
        inn.IntervalNetwork(_Model(_subtract_first).eval(), layers="all")(x, x)


class _KeepsTokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.first = nn.Embedding(9, 3), None

    def forward(self, tokens: Tensor) -> Tensor:
        self.first = self.embedding(tokens) if self.first is None else self.first
        assert self.first is not None
        return self.first


def test_what_a_model_keeps_of_whole_numbers_is_seen() -> None:
    with pytest.raises(ValueError, match="'first'"):
        inn.IntervalNetwork(_KeepsTokens().eval(), layers="all")(torch.tensor([1, 5, 2]))


def test_the_random_numbers_of_others_go_on_as_they_would() -> None:
    def draws(m: Any, x: Tensor) -> Tensor:
        random.random(), np.random.rand()  # noqa: NPY002
        return x

    net = inn.IntervalNetwork(_Model(draws).eval(), layers="all")
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    wanted = random.random(), np.random.rand()  # noqa: NPY002
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002

    net(*_inputs())

    assert (random.random(), np.random.rand()) == wanted  # noqa: NPY002


@pytest.mark.rotating
@pytest.mark.parametrize("change", [_look_up, _trace])
def test_a_model_may_keep_what_its_output_does_not_depend_on(change: Any) -> None:
    model = _Model(change).eval()
    own = model(*_inputs())
    before = model.calls, model.last, dict(model.known)

    bounds = inn.IntervalNetwork(model, layers="all")(*_inputs())

    assert torch.equal(bounds.point, own)
    assert (model.calls, model.last) == before[:2] and model.known.keys() == before[2].keys()


def test_a_second_input_that_the_model_refuses_says_nothing_against_it() -> None:
    def checked(m: Any, x: Tensor) -> Tensor:
        m.held.append(0)
        if len(m.held) > 1 and not torch.compiler.is_exporting():
            raise RuntimeError("called twice")
        return x

    assert inn.IntervalNetwork(_Model(checked).eval(), layers="all")(*_inputs()).point.shape == (4, 3)


def test_a_model_that_fails_only_when_numbers_are_seen_is_named() -> None:
    def checked(m: Any, x: Tensor) -> Tensor:
        if not torch.compiler.is_exporting():
            raise RuntimeError("a sensor is missing")
        return x

    with pytest.raises(ValueError, match=r"the model itself does not take this input.*a sensor is missing"):
        inn.IntervalNetwork(_Model(checked).eval(), layers="all")(*_inputs())


def test_random_numbers_that_nothing_depends_on_are_no_reason_to_refuse() -> None:
    def draws(m: Any, x: Tensor) -> Tensor:
        random.random()
        return x

    assert inn.IntervalNetwork(_Model(draws).eval(), layers="all")(*_inputs()).point.shape == (4, 3)


class _Writes(_Model):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x += 1.0
        own: Tensor = self.layer(x) + y
        return own


def test_an_input_that_is_written_to_and_passed_twice_is_followed() -> None:
    model, (x, _) = _Writes(_trace).eval(), _inputs()
    copy = x.clone()

    point = inn.IntervalNetwork(model, layers="all")(x, x).point

    assert torch.equal(point, model(copy, copy))


@pytest.mark.rotating
@pytest.mark.parametrize("parts", [lambda x: (x, x[:]), lambda x: x.split(2)])
def test_an_input_that_is_written_to_and_shares_its_memory_is_refused(parts: Any) -> None:
    net = inn.IntervalNetwork(_Writes(_trace).eval(), layers="all")
    x, y = parts(_inputs()[0])
    net(x.clone(), y.clone())  # whose program holds for other memory only

    with pytest.raises(ValueError, match=r"writes to an input that shares its memory.*pass x\.clone\(\)"):
        net(x, y)


def test_a_weight_that_the_model_writes_to_is_named() -> None:
    def drift(m: Any, x: Tensor) -> Tensor:
        m.layer.weight.data.mul_(1.01)
        return x * m.layer.weight.sum()

    with pytest.raises(ValueError, match=r"its forward changes 'layer\.weight', which it may read in the next call"):
        inn.IntervalNetwork(_Model(drift).eval(), layers="all")(torch.ones(2, 3), torch.ones(2, 3))


def encoder(**options: Any) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    return nn.TransformerEncoder(layer, 1, **options).eval()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_a_fast_path_that_gives_other_values_is_refused_with_the_way_out() -> None:
    x, padding = torch.randn(2, 5, 4), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])

    with pytest.raises(ValueError, match=r"puts zeros where there is padding.*enable_nested_tensor=False"):
        inn.IntervalNetwork(encoder(), layers="all")(x, src_key_padding_mask=padding)

    model = encoder(enable_nested_tensor=False)
    assert torch.allclose(
        inn.IntervalNetwork(model, layers="all")(x, None, padding).point, model(x, None, padding), atol=1e-6
    )
