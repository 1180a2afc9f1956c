"""What has bounds in some cases only, in a forward or as an argument: it is bounded, or refused with help."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

import intervalnn as inn
from members.checking import INTERNAL, Fault, check_draws, check_point, linear, need, open_gaps

LINE = re.compile(rf"{re.escape(Path(__file__).name)}:\d+")


def _square(x: Tensor) -> Tensor:
    return x.mT @ x + torch.eye(x.shape[-1])


def _sketch(s: Any, x: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return s(x) + torch.rand(x.shape, generator=generator)


def _gradient(s: Any, x: Tensor) -> Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad(s(x).square().sum(), x)[0]


def _branches(s: Any, x: Tensor) -> Tensor:
    y = s(x)
    return y if y.mean() > 0 else -y


def _loops(s: Any, x: Tensor) -> Tensor:
    total = s(x)
    for row in s(x).tolist():
        total = total + row[0]
    return total


def _writes_data(s: Any, x: Tensor) -> Tensor:
    s.layer.weight.data = s.layer.weight.data * 1.0
    return s(x)


FORWARDS: dict[str, Callable[[Any, Tensor], Any]] = {
    "complex exp": lambda s, x: torch.exp(torch.complex(s(x), x)).real,
    "complex tanh": lambda s, x: torch.tanh(torch.complex(s(x), x)).abs(),
    "complex sqrt": lambda s, x: torch.sqrt(torch.complex(s(x) + 9, x)).imag,
    "complex sign": lambda s, x: torch.sgn(torch.complex(s(x) + 9, x)).real,
    "complex variance": lambda s, x: torch.complex(s(x), x).var(0),
    "complex power": lambda s, x: (torch.complex(s(x) + 9, x) ** 3).real,
    "complex quotient": lambda s, x: (torch.complex(s(x), x) / torch.complex(x.abs() + 2, s(x))).real,
    "complex angle": lambda s, x: torch.angle(torch.complex(s(x) + 9, x)),
    "solve": lambda s, x: torch.linalg.solve(_square(s(x)), x.mT),
    "inverse": lambda s, x: torch.linalg.inv(_square(s(x))),
    "cholesky": lambda s, x: torch.linalg.cholesky(_square(s(x))),
    "singular values": lambda s, x: torch.linalg.svdvals(s(x)),
    "eigenvectors": lambda s, x: torch.linalg.eigh(_square(s(x)))[1],
    "factors": lambda s, x: torch.linalg.qr(s(x))[0],
    "determinant": lambda s, x: torch.linalg.det(_square(s(x))),
    "pseudo-inverse": lambda s, x: torch.linalg.pinv(s(x)),
    "a generator": _sketch,
    "noise": lambda s, x: s(x) + torch.randn_like(x),
    "noise in place": lambda s, x: s(x) + torch.empty_like(x).random_(),
    "a drawn mask": lambda s, x: s(x) * torch.bernoulli(torch.full_like(x, 0.5)),
    "data": lambda s, x: x @ s.layer.weight.data.T,
    "data written": _writes_data,
    "a gradient": _gradient,
    "a number of a weight": lambda s, x: s(x) * float(s.scale),
    "an item": lambda s, x: s(x) * s.layer.weight[0, 0].item(),
    "a branch": _branches,
    "a list": _loops,
    "numpy": lambda s, x: torch.from_numpy(s(x).detach().numpy() * 2.0),
    "values that are few": lambda s, x: torch.unique(s(x)),
    "places": lambda s, x: s(x)[s(x) > 0],
    "a draw by weights": lambda s, x: torch.multinomial(s(x).softmax(-1), 1),
}


class Body(nn.Module):
    def __init__(self, random: Random, does: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        self.before, self.layer = linear(random), linear(random)
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.after = random.choice([nn.Identity(), nn.ReLU(), nn.Tanh()])
        self.does = does

    def layers(self, x: Tensor) -> Tensor:
        return self.layer(self.before(x))

    def forward(self, x: Tensor) -> Any:
        return self.after(self.does(_Layers(self), x))


class _Layers:
    """A body inside its own forward, where calling it calls its layers."""

    def __init__(self, body: Body) -> None:
        self.layer, self.scale, self.layers = body.layer, body.scale, body.layers

    def __call__(self, x: Tensor) -> Tensor:
        return self.layers(x)


def _plain(random: Random) -> nn.Module:
    return nn.Sequential(linear(random), nn.ReLU(), linear(random)).eval()


X = torch.linspace(-1.0, 2.0, 12).reshape(4, 3)
MODELS: dict[str, Callable[[nn.Module], Any]] = {
    "a traced module": lambda model: torch.jit.trace(model, X),
    "a scripted module": torch.jit.script,
    "an exported program": lambda model: torch.export.export(model, (X,)),
    "a function": lambda model: model.forward,
    "its weights": lambda model: model.state_dict(),
}


def _reshaped(net: inn.IntervalNetwork) -> Any:
    net(X)
    net.model[2].weight = nn.Parameter(torch.randn(5, 3))
    return net(X)


USES: dict[str, Callable[[inn.IntervalNetwork], Any]] = {
    "vmap": lambda net: torch.func.vmap(net)(X),
    "jacrev": lambda net: torch.func.jacrev(lambda x: net(x).upper)(X),
    "another shape": _reshaped,
    "too few columns": lambda net: net(X[:, :2]),
    "whole numbers": lambda net: net(X.long()),
    "no tensor": lambda net: net(X.tolist()),
    "another model": lambda net: net.load_state_dict({"0.weight": torch.zeros(1)}),
}


def member(random: Random) -> str:
    """Try one: its bounds hold, or its refusal names the line, the model or the argument, and says what to do."""
    kind = random.choice(["forward", "forward", "forward", "model", "use"])
    if kind == "forward":
        name = random.choice(list(FORWARDS))
        return _told(name, lambda: _forward(random, name), needs_line=True)
    if kind == "model":
        name = random.choice(list(MODELS))
        return _told(name, lambda: inn.IntervalNetwork(MODELS[name](_plain(random)), layers="all")(X))
    name = random.choice(list(USES))
    return _told(name, lambda: USES[name](inn.IntervalNetwork(_plain(random), layers="all")))


def _forward(random: Random, name: str) -> None:
    model = Body(random, FORWARDS[name]).eval()
    net = inn.IntervalNetwork(model, layers="all")
    with torch.no_grad():
        net(X)
        open_gaps(net, random, 0.01)
        bounds = net(X)
        check_point(bounds, model(X), name)
        check_draws(net, bounds, lambda: model(X), random, name)


def _told(name: str, attempt: Callable[[], Any], *, needs_line: bool = False) -> str:
    try:
        attempt()
    except Fault:
        raise
    except Exception as error:
        said = str(error)
        helps = len(said) >= 60 and not INTERNAL.search(said) and not said.startswith("None")
        need(helps, f"{name}: the refusal does not help: {type(error).__name__}: {said[:200]}")
        need(not needs_line or bool(LINE.search(said)), f"{name}: the refusal names no line: {said[:200]}")
        return "refused"
    return "bounded"


__all__ = ["member"]
