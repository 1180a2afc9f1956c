"""Gaps of every input channel: as tight as the exact form of the same intervals, at half the products."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

import intervalnn as inn
from counting import convolutions
from intervalnn.network.gaps import Gaps
from intervalnn.rules.products import gpu, layers
from widened import around, as_weights


class Skip(nn.Module):
    """Convolutions of joined values; the first of them of inputs of either sign."""

    def __init__(self, dim: int = 1) -> None:
        super().__init__()
        self.dim = dim
        self.first, self.last = nn.Conv1d(2, 2, 3, padding=1), nn.Conv1d(6 if dim == 1 else 2, 3, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        return self.last(torch.cat((x, h, torch.relu(h)), self.dim))


class Reused(nn.Module):
    """A weight that two layers take, and one that more than layers take."""

    def __init__(self) -> None:
        super().__init__()
        self.twice, self.more, self.by_itself = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = self.twice(torch.relu(self.twice(x)))
        return self.more(h) * self.more.weight.square().sum() + self.by_itself(self.by_itself.weight).sum()


MODELS: dict[str, Any] = {
    "joined channels": lambda: Skip(),
    "joined samples": lambda: Skip(0),
    "joined places": lambda: Skip(2),
    "groups": lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Conv1d(4, 6, 3, groups=2), nn.Conv1d(6, 6, 1)),
    "depthwise": lambda: nn.Sequential(nn.Conv1d(2, 4, 1), nn.Conv1d(4, 4, 3, groups=4), nn.Tanh(), nn.Conv1d(4, 1, 1)),
    "transposed": lambda: nn.Sequential(nn.Conv1d(2, 3, 3), nn.ReLU(), nn.ConvTranspose1d(3, 2, 4, 2)),
    "linear": lambda: nn.Sequential(nn.Linear(9, 5), nn.ReLU(), nn.Linear(5, 5), nn.Linear(5, 2)),
    "reused": lambda: nn.Sequential(nn.Linear(9, 4), Reused()),
}


def stretched(model: nn.Module, x: Any, rel: float, **options: Any) -> inn.IntervalNetwork:
    """Return a network with random shares up to ``rel``, one in five zero."""
    net = inn.IntervalNetwork(model, kind="input", **({"layers": "all"} | options))
    with torch.no_grad():
        net(x)
    set_shares(net, rel)
    return net


@torch.no_grad()
def set_shares(net: inn.IntervalNetwork, rel: float) -> None:
    for gaps in (module for module in net.modules() if isinstance(module, Gaps)):
        for gap in (gaps.below, gaps.above):
            gap.copy_(rel * torch.rand_like(gap) * (torch.rand_like(gap) > 0.2))


@pytest.mark.rotating
@pytest.mark.parametrize("interval_input", [False, True], ids=["point", "interval"])
@pytest.mark.parametrize("name", MODELS)
def test_bounds_contain_every_draw(name: str, interval_input: bool) -> None:
    torch.manual_seed(1)
    model, x = MODELS[name]().double().eval(), torch.randn(2, 2, 9, dtype=torch.float64)
    given = around(x) if interval_input else x
    net = stretched(model, given, 0.0)

    for rel in (1e-3, 0.3, 2.0):
        set_shares(net, rel)
        with torch.no_grad():
            bounds, weights = net(given), net.weight_intervals()
            for draw in range(50):
                drawn = {n: w.lower + _share(w.point, draw) * w.width for n, w in weights.items()}
                inputs = given.lower + _share(x, draw) * given.width if isinstance(given, inn.Interval) else x
                assert bounds.contains(functional_call(model, drawn, (inputs,)), atol=1e-9).all()


def _share(like: Tensor, draw: int) -> Tensor:
    share = torch.rand_like(like)
    return share.round() if draw % 2 else share


@pytest.mark.rotating
@pytest.mark.parametrize("name", ["joined channels", "joined samples", "groups", "depthwise", "linear"])
def test_bounds_are_those_of_the_exact_form_of_the_same_intervals(name: str) -> None:
    torch.manual_seed(2)
    model, x = MODELS[name]().double().eval(), torch.randn(2, 2, 9, dtype=torch.float64)
    net = stretched(model, x, 0.1)

    with torch.no_grad():
        bounds, exact = net(x), as_weights(net, x, exact=True)(x)
        loose = as_weights(net, x)(x)

    # Where a weight does not change its sign, the exact form is the best there is for one layer.
    torch.testing.assert_close(bounds.width, exact.width, rtol=1e-6, atol=1e-12)
    assert (bounds.width <= loose.width * (1 + 1e-9)).all()


def test_two_products_stand_beside_the_points_own_where_gaps_of_every_weight_take_four() -> None:
    model, x = Skip().eval(), torch.randn(2, 2, 9)
    net = stretched(model, x, 0.1)
    free = as_weights(net, x)

    assert convolutions(lambda: net(x)) == 2 * 3
    assert convolutions(lambda: free(x)) > 2 * 3


# A layer, and how many convolutions are left where tensor cores take eight channels at once.
FEW: dict[str, tuple[Any, int]] = {
    "one channel": (lambda: nn.Conv2d(1, 3, 3, padding=1), 1),
    "one channel, with strides": (lambda: nn.Conv2d(1, 3, 3, stride=(2, 1), padding=(2, 0), dilation=(1, 2)), 1),
    "one channel, padded by name": (lambda: nn.Conv2d(1, 3, 3, padding="same"), 2),
    "large windows": (lambda: nn.Conv2d(1, 3, 7, padding=3), 2),
    "windows of one": (lambda: nn.Conv2d(4, 3, 1), 1),
    "four channels": (lambda: nn.Conv2d(4, 3, 3, padding=1), 2),
    "five channels": (lambda: nn.Conv2d(5, 3, 3, padding=1), 3),
    "groups": (lambda: nn.Conv2d(2, 4, 3, groups=2), 3),
    "transposed": (lambda: nn.ConvTranspose2d(1, 3, 3), 2),
}


@pytest.mark.rotating
@pytest.mark.parametrize("kind", ["input", "weight", "symmetric"])
@pytest.mark.parametrize("batched", [True, False], ids=["batch", "one"])
@pytest.mark.parametrize("name", FEW)
def test_few_channels_take_one_product_where_tensor_cores_take_eight(
    name: str, kind: Any, batched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    make, left = FEW[name]
    model = make().double().eval()
    x = torch.randn(2, model.in_channels, 6, 5, dtype=torch.float64)
    x = x if batched else x[0]
    net = inn.IntervalNetwork(model, layers="all", kind=kind)
    net.balance(x)
    with torch.no_grad():
        for gap in net.parameters():
            gap.uniform_(0.0, 0.1)
        apart, count = net(x), convolutions(lambda: net(x))
        monkeypatch.setattr(layers, "laid_out", gpu.packed)  # as on a GPU
        net = copy.deepcopy(net)
        packed, fewer = net(x), convolutions(lambda: net(x))

    if kind == "symmetric":  # of points, one product stands beside the point's own
        assert (count, fewer) == (2, 1 if left == 1 else 2)
    elif not (kind == "input" and name == "transposed"):  # which then has a gap for each weight
        assert (count, fewer) == (3, left)
    torch.testing.assert_close(packed.below, apart.below)
    torch.testing.assert_close(packed.above, apart.above)


def test_a_share_never_changes_the_sign_of_a_weight_and_comes_back() -> None:
    net = inn.IntervalNetwork(nn.Linear(2, 3), layers="all", kind="input")
    gaps = net.gaps.get_submodule("weight")
    assert isinstance(gaps, Gaps)
    with torch.no_grad():
        gaps.scale.fill_(2.0)
        gaps.below.fill_(5.0)
        gaps.above.fill_(5.0)

    w = net.weight_intervals()["weight"]
    assert (w.lower * w.point.sign()).min() >= -10 * w.point.abs().max() and (w.lower * w.upper >= 0).all()
    net.project()

    assert torch.equal(gaps.below, torch.full_like(gaps.below, 0.5))  # a share of one, at this scale
    assert torch.equal(gaps.above, torch.full_like(gaps.above, 5.0))


def test_a_cap_holds_for_every_weight() -> None:
    torch.manual_seed(0)
    model, x = Skip().eval(), torch.randn(2, 2, 9)
    net = stretched(model, x, 3.0, cap=0.1)

    with torch.no_grad():
        weights = net.weight_intervals()
    for name in ("first.weight", "last.weight"):
        limit = 0.1 * weights[name].point.square().mean().sqrt()
        assert float(weights[name].above.max()) <= float(limit) * (1 + 1e-6)
    capped = as_weights(net, x)
    torch.testing.assert_close(net(x).width, capped(x).width)


@pytest.mark.rotating
@pytest.mark.parametrize("kind", ["input", "symmetric"])
def test_fitted_saved_loaded_compiled_and_in_bfloat16_it_gives_the_same_bounds(kind: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(64, 2, 9)
    model = Skip().eval()
    with torch.no_grad():
        y = model(x) + 0.1 * torch.randn(64, 3, 7)
    net = inn.IntervalNetwork(model, layers="all", kind=kind)
    inn.fit(net, [(x, y)], coverage=0.9, epochs=150, progress=False)

    prediction = net.predict(x)
    inside = float(((y >= prediction.lower) & (y <= prediction.upper)).float().mean())
    assert abs(inside - 0.9) < 0.03
    net.save(tmp_path / "net.safetensors")
    torch.testing.assert_close(inn.load(tmp_path / "net.safetensors", model).predict(x).width, prediction.width)
    net.compile(backend="aot_eager")
    torch.testing.assert_close(net.predict(x).width, prediction.width)
    half = inn.load(tmp_path / "net.safetensors", model)
    half.form = type(half.form)(gap_dtype=torch.bfloat16)
    rough = half.predict(x)
    assert torch.equal(rough.point, prediction.point)
    torch.testing.assert_close(rough.width.float(), prediction.width, rtol=0.05, atol=1e-3)
