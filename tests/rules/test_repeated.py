"""Convolutions of values that stand side by side several times: bounds from each of them once, so tighter ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev
from torch.nn import functional as F

import intervalnn as inn
from counting import convolutions
from intervalnn.network.lifting import rewrites
from intervalnn.rules.products.repeats import Repeats
from intervalnn.table import RULES, Rule
from widened import around

CONVOLUTIONS = (F.conv1d, F.conv2d, F.conv3d)


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("times", "window", "before", "after"),
    [
        ((2,), (3,), (1,), (1,)),
        ((4,), (2,), (0,), (3,)),
        ((2, 2), (2, 2), (0, 0), (1, 1)),
        ((2, 2), (3, 3), (1, 1), (1, 1)),
        ((8, 1), (3, 2), (2, 0), (4, 0)),
        ((2, 4), (1, 3), (0, 2), (1, 2)),
        ((2, 2, 2), (3, 1, 2), (1, 0, 0), (2, 0, 1)),
    ],
)
def test_a_transposed_convolution_of_each_value_once_is_that_of_the_repeated_ones(
    times: tuple[int, ...], window: tuple[int, ...], before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, *(4, 3, 2)[: len(times)], dtype=torch.float64)
    w = torch.randn(5, 3, *window, dtype=torch.float64)
    repeats = Repeats(times, before, after)
    zeros = [n for pair in reversed(list(zip(before, after, strict=True))) for n in pair]
    repeated = F.interpolate(x, scale_factor=[float(n) for n in times])
    want = CONVOLUTIONS[len(times) - 1](F.pad(repeated, zeros), w)

    assert repeats.fits(window)
    torch.testing.assert_close(repeats.product(x, repeats.kernel(w, w.dtype)), want)


def up(conv: nn.Module, *before: nn.Module, **upsampling: Any) -> nn.Module:
    """Return a layer, an upsampling, and a convolution of what it makes."""
    first = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[conv.weight.dim() - 3](2, conv.in_channels, 1)
    return nn.Sequential(first, nn.ReLU(), nn.Upsample(**(upsampling or {"scale_factor": 2})), *before, conv)


TAKEN: dict[str, Any] = {
    "padded behind": lambda: up(nn.Conv2d(3, 2, 2), nn.ZeroPad2d((0, 1, 0, 1))),
    "padded around": lambda: up(nn.Conv2d(3, 2, 3, padding=1)),
    "padded twice": lambda: up(nn.Conv2d(3, 2, 4, padding=(1, 0)), nn.ConstantPad2d((1, 2), 0.0)),
    "not padded": lambda: up(nn.Conv2d(3, 2, 3), scale_factor=(4, 1)),
    "signals": lambda: up(nn.Conv1d(3, 2, 3, padding=1)),
    "volumes": lambda: up(nn.Conv3d(3, 2, 3, padding=1)),
    "without bias": lambda: up(nn.Conv2d(3, 2, 3, bias=False)),
    "two in a row": lambda: nn.Sequential(
        up(nn.Conv2d(3, 2, 3, padding=1)), nn.Tanh(), nn.Upsample(scale_factor=2), nn.Conv2d(2, 1, 3, padding=1)
    ),
}


class Resized(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.aten.upsample_nearest2d.default(x, [6, 8])


LEFT: dict[str, Any] = {
    "strides": lambda: up(nn.Conv2d(3, 2, 3, stride=2)),
    "dilation": lambda: up(nn.Conv2d(3, 2, 2, dilation=2)),
    "groups": lambda: up(nn.Conv2d(2, 4, 3, padding=1, groups=2)),
    "a given size": lambda: up(nn.Conv2d(3, 2, 3), size=(7, 6)),
    "sizes alone": lambda: nn.Sequential(nn.Conv2d(2, 3, 1), Resized(), nn.Conv2d(3, 2, 3)),
    "times three": lambda: up(nn.Conv2d(3, 2, 3), scale_factor=3),
    "reflected": lambda: up(nn.Conv2d(3, 2, 3), nn.ReflectionPad2d(1)),
    "padded by ones": lambda: up(nn.Conv2d(3, 2, 3), nn.ConstantPad2d(1, 1.0)),
    "cropped": lambda: up(nn.Conv2d(3, 2, 3), nn.ZeroPad2d((-1, 1, 0, 0))),
    "padded in front": lambda: up(nn.Conv2d(3, 2, 2), nn.ZeroPad2d((1, 0, 1, 0))),
    "padded by more than the window": lambda: up(nn.Conv2d(3, 2, 2), nn.ZeroPad2d(2)),
    "padded by name": lambda: up(nn.Conv2d(3, 2, 3, padding="same")),
    "bilinear": lambda: up(nn.Conv2d(3, 2, 3), scale_factor=2, mode="bilinear"),
    "transposed": lambda: up(nn.ConvTranspose2d(3, 2, 3)),
}


def inputs(model: nn.Module) -> Tensor:
    spatial = next(model.parameters()).dim() - 2
    return torch.randn(2, 2, *(3, 4, 2)[:spatial], dtype=torch.float64)


def both(
    model: nn.Module, x: Any, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[inn.IntervalNetwork, inn.IntervalNetwork]:
    """Return a network with random gaps, and the same with every value as often as it stands there."""
    net, plain = (inn.IntervalNetwork(model, **({"layers": "all"} | options)) for _ in range(2))
    with torch.no_grad():
        net(x)
        with monkeypatch.context() as patch:
            patch.setattr(rewrites, "nearest", None)
            plain(x)
        for gap in net.parameters():
            gap.uniform_(0.0, 0.1)
        plain.load_state_dict(net.state_dict())
    return net, plain


@pytest.mark.rotating
@pytest.mark.parametrize("interval_input", [False, True], ids=["point", "interval"])
@pytest.mark.parametrize(
    ("kind", "exact"), [("weight", False), ("weight", True), ("symmetric", False), ("input", False)]
)
@pytest.mark.parametrize("name", TAKEN)
def test_bounds_contain_every_draw_and_are_tighter(
    name: str, kind: Any, exact: bool, interval_input: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = TAKEN[name]().double().eval()
    x = inputs(model)
    given = around(x) if interval_input else x
    net, plain = both(model, given, monkeypatch, kind=kind, exact=exact)

    with torch.no_grad():
        bounds, apart, weights = net(given), plain(given), net.weight_intervals()
        assert torch.equal(bounds.point, model(x))
        assert (bounds.below <= apart.below + 1e-12).all() and (bounds.above <= apart.above + 1e-12).all()
        if kind == "input":  # weights that stretch one by one do not cancel
            torch.testing.assert_close(bounds.width, apart.width)
        else:
            assert bounds.width.mean() < 0.97 * apart.width.mean()
        for draw in range(40):
            share = torch.round if draw % 2 else torch.clone
            drawn = {n: w.lower + share(torch.rand_like(w.point)) * w.width for n, w in weights.items()}
            start = given.lower + share(torch.rand_like(x)) * given.width if interval_input else x
            assert bounds.contains(functional_call(model, drawn, (start,)), atol=1e-9).all()


@pytest.mark.rotating
@pytest.mark.parametrize("name", LEFT)
def test_what_cannot_be_taken_once_has_the_bounds_that_it_had(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = LEFT[name]().double().eval()
    net, plain = both(model, inputs(model), monkeypatch)

    with torch.no_grad():
        bounds, apart = net(x := inputs(model)), plain(x)
    assert torch.equal(bounds.below, apart.below) and torch.equal(bounds.above, apart.above)


def test_a_rule_of_the_users_own_for_upsampling_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    model = up(nn.Conv2d(3, 2, 3, padding=1)).eval()
    own = Rule(lambda fn, x, *args: pytest.fail("asked"))
    monkeypatch.setitem(RULES, torch.ops.aten.upsample_nearest2d, own)

    with pytest.raises(pytest.fail.Exception, match="asked"):
        inn.IntervalNetwork(model, layers="all")(inputs(model).float())


class PaddedByItsInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(1, 2, 1), nn.Conv2d(2, 1, 3)

    def forward(self, x: Tensor) -> Tensor:
        up = F.interpolate(self.first(x), scale_factor=2.0)
        return F.conv2d(up, self.last.weight, padding=x.shape[-1] // 4)


class WeightGiven(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 2, 1)

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        return F.conv2d(F.interpolate(self.first(x), scale_factor=2.0), w, padding=2)


class SignalsAsOneImage(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv1d(1, 2, 1), nn.Conv2d(3, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.last(F.interpolate(self.first(x), scale_factor=2.0))  # three samples as three channels
        return result


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("model", "calls"),
    [
        (PaddedByItsInput, [((2, 1, 6, 8),), ((2, 1, 5, 9),), ((1, 1, 4, 13),)]),
        (WeightGiven, [((2, 1, 6, 7), (1, 2, n, n)) for n in (5, 4, 3, 2, 6)]),
        (SignalsAsOneImage, [((3, 1, 6),), ((3, 1, 4),)]),
    ],
)
def test_sizes_that_are_known_only_when_it_runs_are_left_as_they_are(model: Any, calls: Any) -> None:
    torch.manual_seed(0)
    net = inn.IntervalNetwork(model().double().eval(), layers="all")
    for shapes in calls:
        args = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
        with torch.no_grad():
            net(*args)
            for gap in net.parameters():
                gap.uniform_(0.0, 0.1)
            bounds, weights = net(*args), net.weight_intervals()
            for _ in range(20):
                drawn = {n: w.lower + torch.rand_like(w.point).round() * w.width for n, w in weights.items()}
                assert bounds.contains(functional_call(net.model, drawn, tuple(args)), atol=1e-9).all()


@pytest.mark.rotating
@pytest.mark.parametrize("kind", ["weight", "symmetric", "input"])
def test_sums_of_weights_are_rounded_no_more_coarsely_than_gaps(kind: Any) -> None:
    model = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv1d(1, 1, 2, bias=False)).bfloat16().eval()
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[[1.0, 0.0029]]]))
    x = inn.Interval(torch.ones(1, 1, 4).bfloat16(), torch.ones(1, 1, 4), torch.ones(1, 1, 4))

    bounds = inn.IntervalNetwork(model, layers="all", kind=kind, gap_dtype=torch.float32)(x)

    want = float(model[1].weight.detach().double().sum())
    assert bounds.above.flatten().tolist() == pytest.approx([want] * 7, rel=1e-6)


@pytest.mark.rotating
@pytest.mark.parametrize("name", ["padded behind", "padded around", "padded twice", "volumes"])
def test_bounds_of_inputs_are_the_best_there_are(name: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*list(TAKEN[name]().double().eval())[2:])
    x = torch.randn(1, 3, *(3, 4, 2)[: model[-1].weight.dim() - 2], dtype=torch.float64)
    given = around(x)

    bounds = inn.IntervalNetwork(model, layers=[])(given)

    matrix = jacrev(model)(x).flatten(-x.dim()).flatten(0, -2)  # it is linear
    low, high = given.below.flatten(), given.above.flatten()
    torch.testing.assert_close(bounds.above.flatten(), matrix.clamp(min=0) @ high + (-matrix).clamp(min=0) @ low)
    torch.testing.assert_close(bounds.below.flatten(), matrix.clamp(min=0) @ low + (-matrix).clamp(min=0) @ high)


@pytest.mark.rotating
@pytest.mark.parametrize(("kind", "products"), [("weight", 3), ("symmetric", 3), ("input", 2)])
def test_there_are_no_more_products_than_without(kind: Any, products: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = TAKEN["padded behind"]().double().eval()
    x = inputs(model)
    net, plain = both(model, x, monkeypatch, kind=kind)

    first = 3 if kind != "symmetric" else 2  # of a point of either sign
    assert convolutions(lambda: net(x)) == convolutions(lambda: plain(x)) == first + 1 + products


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["weight", "symmetric", "input"])
def test_compiled_recomputed_and_in_bfloat16_it_gives_the_same_bounds(kind: Any, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = TAKEN["two in a row"]().eval()
    x = inputs(model).float()
    net = inn.IntervalNetwork(model, layers="all", kind=kind, gap_dtype=dtype)
    with torch.no_grad():
        for gap in net.parameters():
            gap.uniform_(0.0, 0.01)
    close = {"rtol": 0.05, "atol": 1e-3} if dtype is torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-6}
    want = net(x).width.mean()
    slopes = torch.autograd.grad(want, list(net.parameters()))

    with net.recomputing():
        again = torch.autograd.grad(net(x).width.mean(), list(net.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(slopes, again, strict=True))
    torch._dynamo.reset()
    net.compile(backend="aot_eager")
    torch.testing.assert_close(net(x).width.mean(), want, **close)
    compiled = torch.autograd.grad(net(x).width.mean(), list(net.parameters()))
    for a, b in zip(slopes, compiled, strict=True):
        assert (a - b).abs().max() <= (0.05 if dtype is torch.bfloat16 else 1e-4) * a.abs().max()


@pytest.mark.rotating
@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["weight", "symmetric", "input"])
def test_a_compiled_step_on_a_gpu_gives_the_gradients_of_one_that_is_not(kind: Any) -> None:
    torch.manual_seed(0)
    model = up(nn.Conv2d(16, 8, 2), nn.ZeroPad2d((0, 1, 0, 1))).cuda().eval()
    x = torch.randn(2, 2, 32, 48, device="cuda")
    net = inn.IntervalNetwork(model, layers="all", kind=kind, gap_dtype=torch.bfloat16)
    net.balance(x)
    with torch.no_grad():
        for gap in net.parameters():
            gap.uniform_(0.0, 0.01)
    want = torch.autograd.grad(net(x).width.square().mean(), list(net.parameters()))
    net.compile(dynamic=False)

    got = torch.autograd.grad(net(x).width.square().mean(), list(net.parameters()))
    for near, far in zip(want, got, strict=True):
        assert (near - far).abs().max() <= 0.05 * near.abs().max()
