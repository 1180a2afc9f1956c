"""Models that read numbers which no interval reaches."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn

X = torch.linspace(-1, 2, 12).reshape(4, 3)
GROUPS = torch.tensor([0, 0, 1, 2])


class Body(nn.Module):
    """A layer, a buffer of each kind and a constant, and what is done with them."""

    def __init__(self, does: Callable[..., Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.does = nn.Linear(3, 3), does
        self.register_buffer("flag", torch.tensor(True))
        self.register_buffer("count", torch.tensor(2))
        self.register_buffer("mask", torch.tensor([1.0, 0.0, 2.0]))
        self.constant = torch.tensor([0.5, 0.0, 1.5])

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.does(self, *inputs)


def solved(s: Any, x: Tensor) -> Tensor:
    times = torch.linspace(0, 1, 5)
    assert bool((times[1:] > times[:-1]).all())
    for start, end in itertools.pairwise(times):
        x = x + (end - start) * s.layer(x).tanh()
        if float(end) > 0.6:
            break
    return x


def repeated(s: Any, x: Tensor) -> Tensor:
    for _ in range(int(s.count)):
        x = s.layer(x).tanh()
    return x


def written_to(s: Any, x: Tensor) -> Tensor:
    steps = torch.zeros(2)
    steps[0] += 3
    view = steps[:1]
    view.mul_(2)
    return s.layer(x) if steps.sum() == 6 else x


def pooled(s: Any, x: Tensor, groups: Tensor) -> Tensor:
    return torch.zeros(int(groups.max()) + 1, 3).index_add(0, groups, s.layer(x))


def last_of(s: Any, x: Tensor, groups: Tensor) -> Tensor:
    return s.layer(x) * (int(groups[-1]) + 1)


READ: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "a flag": (lambda s, x: s.layer(2 * x if s.flag else x), (X,)),
    "a count": (repeated, (X,)),
    "times of a solver": (solved, (X,)),
    "a constant": (lambda s, x: s.layer(x) if s.constant.sum() > 1 else x, (X,)),
    "a shape by numbers": (lambda s, x: s.layer(x)[:, s.mask.nonzero().flatten()], (X,)),
    "a mask": (lambda s, x: s.layer(x)[:, s.mask > 0], (X,)),
    "what is written to": (written_to, (X,)),
    "tolist": (lambda s, x: torch.cat([s.layer(x) * (n + 1) for n in s.mask.tolist()], 1), (X,)),
    "groups": (pooled, (X, GROUPS)),
    "the last of its rows": (last_of, (X, GROUPS)),
}


@pytest.mark.parametrize("case", READ)
def test_numbers_that_no_interval_reaches_may_be_read(case: str) -> None:
    does, inputs = READ[case]
    model = Body(does).eval()
    net = inn.IntervalNetwork(model, layers="all")
    with torch.no_grad():
        for gaps in net.parameters():
            gaps.fill_(0.01)

    bounds = net(*inputs)

    assert torch.equal(bounds.point, model(*inputs))
    assert (bounds.width > 0).all()
    for _ in range(20):
        moved = {
            name: w.lower + (w.upper - w.lower) * torch.rand(w.shape) for name, w in net.weight_intervals().items()
        }
        assert bounds.contains(torch.func.functional_call(model, moved, inputs), atol=1e-5).all()


REFUSED: dict[str, Callable[..., Tensor]] = {
    "a weight": lambda s, x: x if s.layer.weight.sum() > 0 else s.layer(x),
    "an input": lambda s, x: x if x.sum() > 0 else s.layer(x),
    "a buffer that an input was written to": lambda s, x: s.layer(x) if mixed(s, x).sum() > 0 else x,
    "a view of that": lambda s, x: s.layer(x) if mixed(s, x)[:1].sum() > 0 else x,
    "one written to by a view that is unknown": lambda s, x: s.layer(x) if strided(s, x).sum() > 0 else x,
    "a random number": lambda s, x: s.layer(x) if torch.rand(1) > 0.5 else x,
}


def strided(s: Any, x: Tensor) -> Tensor:
    own: Tensor = s.mask * 1
    part = own[: x.shape[0] - 2]
    part += x.sum()
    return own


def mixed(s: Any, x: Tensor) -> Tensor:
    own: Tensor = s.mask * 1
    own[0] = x.sum()
    return own


@pytest.mark.parametrize("case", REFUSED)
def test_other_numbers_are_refused_in_the_models_line(case: str) -> None:
    with pytest.raises(ValueError, match=r"test_settled.py:\d+ .*branches on the value"):
        inn.IntervalNetwork(Body(REFUSED[case]).eval(), layers="all")(X)


def test_what_was_read_may_change_from_call_to_call() -> None:
    model = Body(lambda s, x: repeated(s, x) if s.flag else s.layer(x) * s.constant.sum().item()).eval()
    net = inn.IntervalNetwork(model, layers="all")

    def is_right() -> bool:
        return torch.equal(net(X).point, model(X))

    assert is_right()
    model.count += 1  # type: ignore[operator]
    assert is_right()
    model.flag.fill_(False)  # type: ignore[operator]
    assert is_right()
    model.constant[0] = 7.0
    assert is_right()
    model.count -= 1  # type: ignore[operator]
    model.flag.fill_(True)  # type: ignore[operator]
    assert is_right()


def test_numbers_of_an_input_may_change_with_each_call() -> None:
    model = Body(pooled).eval()
    net = inn.IntervalNetwork(model, layers="all")

    for groups in (GROUPS, torch.tensor([0, 1, 1, 1]), torch.zeros(4, dtype=torch.long), GROUPS):
        assert torch.equal(net(X, groups).point, model(X, groups))
    more = torch.tensor([0, 3, 3, 1, 2, 2])
    assert torch.equal(net(X.repeat(2, 1)[:6], more).point, model(X.repeat(2, 1)[:6], more))


def test_a_file_that_would_hold_for_some_numbers_alone_is_not_written(tmp_path: Any) -> None:
    net = inn.IntervalNetwork(Body(pooled).eval(), layers="all")

    with pytest.raises(ValueError, match="reads numbers of input 1"):
        inn.export(net, (X, GROUPS), tmp_path / "net.pt2")


class Held(nn.Module):
    """A layer, and settings in containers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.settings: dict[str, Any] = {"scale": 2.0, "steps": [1, 2], "by": torch.ones(3)}

    def forward(self, x: Tensor) -> Tensor:
        for step in self.settings["steps"]:
            x = self.layer(x) * step
        return x * self.settings["scale"] * self.settings["by"]


def test_what_a_model_holds_in_containers_may_change() -> None:
    model = Held().eval()
    net = inn.IntervalNetwork(model, layers="all")

    def is_right() -> bool:
        return torch.equal(net(X).point, model(X))

    assert is_right()
    model.settings["scale"] = 3.0
    assert is_right()
    model.settings["steps"].append(3)
    assert is_right()
    model.settings["by"] = torch.full((3,), 0.5)
    assert is_right()
    model.settings["by"][1] = 4.0
    assert is_right()
