"""Weights, buffers and gaps that change between calls, in every way that torch counts or does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

import intervalnn as inn
from members.checking import check_draws, check_point, need, open_gaps


def _model(random: Random) -> nn.Module:
    torch.manual_seed(random.getrandbits(32))
    convolutional = nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Conv1d(4, 2, 3))
    dense = nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 3))
    return random.choice([convolutional, dense]).eval()


def _any(net: inn.IntervalNetwork, random: Random) -> Tensor:
    return random.choice([p for p in net.model.parameters() if p.dim() > 0])


def _gap(net: inn.IntervalNetwork, random: Random) -> Tensor:
    return random.choice(list(net.parameters()))


def _under_numpy(net: inn.IntervalNetwork, random: Random) -> None:
    array = _any(net, random).detach().numpy()
    array *= 1.5


def _replaced(net: inn.IntervalNetwork, random: Random) -> None:
    tensor = _any(net, random)
    tensor.data = tensor.data * 1.25


def _gap_replaced(net: inn.IntervalNetwork, random: Random) -> None:
    gap = _gap(net, random)
    gap.data = gap.data * 1.5


def _swapped_and_back(net: inn.IntervalNetwork, random: Random) -> None:
    tensor = _any(net, random)
    kept, tensor.data = tensor.data, tensor.data * 3
    x = torch.zeros(1, 2, 8) if isinstance(net.model[0], nn.Conv1d) else torch.zeros(1, 8)
    net(x)
    tensor.data = kept


def _step(net: inn.IntervalNetwork, random: Random) -> None:
    optimiser = torch.optim.SGD(net.model.parameters(), lr=0.1)
    for parameter in net.model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimiser.step()


def _buffers(net: inn.IntervalNetwork, random: Random) -> None:
    for buffer in net.model.buffers():
        if buffer.is_floating_point():
            buffer.data.mul_(1.5).add_(0.1)


CHANGES: dict[str, Callable[[inn.IntervalNetwork, Random], Any]] = {
    "nothing": lambda net, random: None,
    "data in place": lambda net, random: _any(net, random).data.mul_(1.5),
    "one entry of data": lambda net, random: _any(net, random).data.view(-1)[:1].add_(1.0),
    "data replaced": _replaced,
    "data swapped and back": _swapped_and_back,
    "through numpy": _under_numpy,
    "in place": lambda net, random: _any(net, random).detach().mul_(0.5),
    "in inference mode": lambda net, random: _any(net, random).detach().add_(0.3),
    "a step": _step,
    "state": lambda net, random: net.model.load_state_dict({k: v * 0.9 for k, v in net.model.state_dict().items()}),
    "buffers": _buffers,
    "a gap's data": lambda net, random: _gap(net, random).data.mul_(3.0),
    "a gap's data replaced": _gap_replaced,
    "a gap through numpy": lambda net, random: _gap(net, random).detach().numpy().__imul__(2.0),
    "a gap in place": lambda net, random: _gap(net, random).detach().add_(0.05),
}


def member(random: Random) -> str:
    """Try one: after each change the bounds are those of a network made anew, and hold."""
    net = inn.IntervalNetwork(_model(random), layers="all")
    generator = torch.Generator().manual_seed(random.getrandbits(32))
    done = []
    for _ in range(5):
        batch = random.choice([1, 2, 3])
        x = torch.randn(batch, *((2, 8) if isinstance(net.model[0], nn.Conv1d) else (8,)), generator=generator)
        with torch.inference_mode(random.random() < 0.2), torch.no_grad():
            bounds = net(x)
        fresh = inn.IntervalNetwork(copy.deepcopy(net.model), layers="all")
        fresh.load_state_dict(net.state_dict())
        with torch.no_grad():
            wanted = fresh(x)
            said = f"after {', '.join(done) or 'nothing'}"
            check_point(bounds, net.model(x), said)
            for side in ("below", "above"):
                found, right = getattr(bounds, side), getattr(wanted, side)
                need(torch.allclose(found, right, rtol=1e-4, atol=1e-6), f"{said}: the gaps {side} are old")
            check_draws(net, bounds, lambda x=x: net.model(x), random, said, draws=2)
        if not done:
            open_gaps(net, random)
        done.append(random.choice(list(CHANGES)))
        with torch.inference_mode(done[-1] == "in inference mode"), torch.no_grad():
            CHANGES[done[-1]](net, random)
    return "bounded"
