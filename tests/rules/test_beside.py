"""What moves with weights and what moves with inputs, as one product of joined channels: as compiled for a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._inductor.utils import run_and_get_code

import intervalnn as inn
from counting import convolutions
from intervalnn.network import plan
from intervalnn.paper.models import UNet
from intervalnn.rules.products.gpu import beside, side_by_side, teach_compiler
from intervalnn.rules.products.split import Split


class Skip(nn.Module):
    """Signed and non-negative inputs, a join, an upsampling, a transposed and a grouped convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 12, 3, padding=1), nn.Conv2d(12, 12, 3, padding=1)
        self.third, self.up = nn.Conv2d(24, 12, 3, stride=2), nn.ConvTranspose2d(12, 10, 2, stride=2, bias=False)
        self.mixed, self.apart = nn.Conv2d(10, 10, 3, padding=1), nn.Conv2d(10, 10, 3, groups=2)
        self.last = nn.Conv1d(10, 1, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = torch.cat((x, self.second(x).relu()), 1)
        x = self.up(self.third(x).sigmoid())
        x = self.mixed(nn.functional.interpolate(x, scale_factor=2.0))
        result: Tensor = self.last(self.apart(x).flatten(2))
        return result


def with_gaps(model: nn.Module, x: Tensor, **options: Any) -> inn.IntervalNetwork:
    net = inn.IntervalNetwork(model.eval(), **({"layers": "all"} | options))
    with torch.no_grad():
        net(x)
        for gap in net.parameters():
            gap.copy_(1e-3 * torch.rand_like(gap))
    return net


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def always(value: Any) -> Any:
        return side_by_side(value) if isinstance(value, Split) else value

    monkeypatch.setattr(plan, "for_compiler", always)


@pytest.mark.rotating
@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("kind", ["weight", "symmetric", "input"])
@pytest.mark.parametrize("exact", [False, True], ids=["default", "exact"])
@pytest.mark.parametrize(
    ("make", "layers"), [(Skip, "all"), (Skip, 4), (lambda: UNet(9), 7)], ids=["skip", "4", "unet"]
)
def test_bounds_are_the_same_side_by_side(
    make: Callable[[], nn.Module], layers: str | int, exact: bool, kind: str
) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 2 if make is Skip else 1, 16, 16, dtype=torch.float64)
    net = with_gaps(make().double(), x, layers=layers, kind=kind, exact=exact)
    with torch.no_grad():
        apart = net(x)
        net.compile(backend="eager")
        joined = net(x)

    assert torch.equal(joined.point, apart.point)
    torch.testing.assert_close(joined.below, apart.below, rtol=1e-9, atol=0.0)
    torch.testing.assert_close(joined.above, apart.above, rtol=1e-9, atol=0.0)


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize(("kind", "apart", "joined"), [("weight", 4, 3), ("symmetric", 4, 3), ("input", 3, 3)])
def test_fewer_convolutions_are_called(kind: str, apart: int, joined: int) -> None:
    model = nn.Sequential(nn.Conv2d(9, 9, 3), nn.ReLU(), nn.Conv2d(9, 9, 3))
    x = torch.randn(1, 9, 8, 8)
    net = with_gaps(model, x, layers=["0", "2"], kind=kind)
    with torch.no_grad():
        before = convolutions(lambda: net(x))
        net.compile(backend="eager")
        net(x)
        after = convolutions(lambda: net(x))

    assert before - after == apart - joined


@pytest.mark.rotating
@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("kind", ["weight", "symmetric"])
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_gradients_of_inputs_come_through_what_was_joined_before(mode: Callable[[], Any], kind: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 2, 16, 16, dtype=torch.float64)
    net = with_gaps(Skip().double(), x, kind=kind).requires_grad_(False)
    other = with_gaps(Skip().double(), x, kind=kind).requires_grad_(False)
    other.model.load_state_dict(net.model.state_dict())
    other.load_state_dict(net.state_dict())
    net.compile(backend="eager")
    with mode():
        net(x)
    found = []
    for each in (net, other):
        own = x.clone().requires_grad_()
        each(own).width.sum().backward()
        found.append(own.grad)

    torch.testing.assert_close(*found)


@pytest.mark.slow
def test_the_compiler_writes_each_part_to_its_place() -> None:
    teach_compiler()

    def run(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
        return torch.conv2d(beside([a.sin() + b, a.sin() - b], -3), w)

    a, b, w = torch.randn(1, 4, 8, 8), torch.randn(1, 4, 8, 8), torch.randn(2, 8, 3, 3)
    with torch.no_grad():
        found, (code,) = run_and_get_code(torch.compile(run), a, b, w)

    torch.testing.assert_close(found, run(a, b, w))
    assert "beside.default(" not in code and code.count("# alias") == 2
