"""Heads: on models of many kinds, they start at zero, and what they cannot follow is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from intervalnn.methods import ErrorPredictor, ProbOut, QuantileHeads
from intervalnn.methods.heads import Heads


class Then(nn.Module):
    """A model that does something after its last weight layer."""

    def __init__(self, then: Any, *layers: nn.Module) -> None:
        super().__init__()
        self.layers, self.then = nn.Sequential(*layers), then

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.then(self.layers(x), x)
        return result


def residual(y: Tensor, x: Tensor) -> Tensor:
    return x - y


def sigmoid(y: Tensor, x: Tensor) -> Tensor:
    return y.sigmoid()


def squeezed(y: Tensor, x: Tensor) -> Tensor:
    return y.squeeze(-1)


def shuffled(y: Tensor, x: Tensor) -> Tensor:
    return F.pixel_shuffle(y, 2)


class Repeated(nn.Module):
    """The same layers, several times."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.layer = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = x + self.layer(self.first(x).relu())
        return x


class Backwards(nn.Module):
    """Layers registered in another order than they run in."""

    def __init__(self) -> None:
        super().__init__()
        self.out, self.body = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.out(self.body(x).relu())
        return result


CASES: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "a layer alone": (nn.Linear(3, 2), (4, 3)),
    "mlp": (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), (4, 3)),
    "sequence": (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), (4, 5, 3)),
    "conv1d": (nn.Sequential(nn.Conv1d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv1d(4, 2, 1)), (4, 1, 6)),
    "conv2d, strides": (nn.Conv2d(2, 3, 3, stride=2, padding=1, padding_mode="circular"), (2, 2, 6, 6)),
    "conv3d": (nn.Conv3d(1, 2, 3, padding=1, dilation=1), (2, 1, 4, 4, 4)),
    "depthwise": (nn.Conv2d(4, 4, 3, padding="same", groups=4, bias=False), (2, 4, 5, 5)),
    "transposed": (nn.ConvTranspose2d(2, 1, 3, stride=2, padding=1, output_padding=1), (2, 2, 4, 4)),
    "residual of several channels": (Then(residual, nn.Conv1d(3, 3, 3, padding=1)), (2, 3, 6)),
    "sigmoid": (Then(sigmoid, nn.Conv2d(1, 1, 1)), (2, 1, 3, 3)),
    "squeezed": (Then(squeezed, nn.Linear(3, 1)), (4, 3)),
    "weight norm": (nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))), (4, 3)),
    "the same layers several times": (Repeated(), (4, 3)),
    "without a batch": (nn.Conv1d(1, 2, 1), (1, 6)),
}


@pytest.mark.parametrize("kind", ["layer", "copy"])
@pytest.mark.parametrize("name", list(CASES))
def test_heads_start_at_zero_beside_the_models_own_output(name: str, kind: Any) -> None:
    model, shape = CASES[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))

    own, offsets = Heads(model, 3, kind=kind)(None, x)

    assert torch.equal(own, model(x)) and offsets.shape == (3, *own.shape)
    assert not offsets.any()


@pytest.mark.parametrize("name", ["a layer alone", "conv2d, strides", "conv3d", "transposed", "without a batch"])
def test_a_head_with_the_weights_of_its_layer_gives_what_the_layer_gives(name: str) -> None:
    model, shape = CASES[name]
    x, heads = torch.randn(shape), Heads(model, 2)
    channels = 1 if name == "transposed" else 0
    with torch.no_grad():
        heads.layer.weight.copy_(torch.cat((model.weight, -model.weight), channels))  # type: ignore[union-attr]
        heads.layer.bias.copy_(torch.cat((model.bias, -model.bias)))  # type: ignore[union-attr]

    own, offsets = heads(None, x)

    assert torch.allclose(offsets, torch.stack((own, -own)), atol=1e-6)


@pytest.mark.parametrize("name", list(CASES))
def test_every_head_learns_something_of_its_own(name: str) -> None:
    model, shape = CASES[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    heads = Heads(model, 2)
    heads.scale.fill_(0.5)
    optimizer = torch.optim.Adam(heads.parameters(), lr=0.05)
    target = torch.stack((model(x) - 5, torch.full_like(model(x), 3.0))).detach()  # far from what a sigmoid can

    def apart() -> Tensor:
        return (heads(None, x)[1] - target).square().mean()

    before = float(apart().detach())
    for _ in range(150):
        optimizer.zero_grad()
        apart().backward()
        optimizer.step()

    assert float(apart().detach()) < 0.2 * before


def test_more_than_heads_can_follow_is_refused_and_copies_can() -> None:
    model, x = Then(shuffled, nn.Conv2d(1, 4, 1)), torch.randn(2, 1, 3, 3)

    with pytest.raises(ValueError, match=r"gives shape \(2, 4, 3, 3\), the model \(2, 1, 6, 6\): .* heads='copy'"):
        QuantileHeads(model).predict(x)
    assert QuantileHeads(model, heads="copy").predict(x).point.shape == (2, 1, 6, 6)
    assert ErrorPredictor(model, heads="copy").predict(x).point.shape == (2, 1, 6, 6)
    assert torch.equal(ProbOut(model, heads="copy").predict(x).point, model(x).detach())


def test_a_layer_that_is_not_the_last_to_run_is_refused_by_name() -> None:
    model, x = Backwards(), torch.randn(2, 4)

    with pytest.raises(ValueError, match="layer 'body' is not the last to run; pass last='out', which was"):
        QuantileHeads(model).predict(x)
    assert QuantileHeads(model, last="out").predict(x).point.shape == (2, 4)


def test_a_layer_that_does_not_run_is_refused() -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.first(x)
            return result

    with pytest.raises(ValueError, match="layer 'unused' is not the last to run; pass last='first'"):
        QuantileHeads(Unused()).predict(torch.ones(1, 2))
    assert QuantileHeads(Unused(), last="first").predict(torch.ones(1, 2)).point.shape == (1, 2)


def test_a_layer_whose_weights_are_used_without_calling_it_is_refused() -> None:
    class Bypassed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return F.linear(x, self.inner.weight)

    with pytest.raises(ValueError, match="layer 'inner' is not the last to run; pass heads='copy'"):
        QuantileHeads(Bypassed()).predict(torch.ones(1, 2))
    assert QuantileHeads(Bypassed(), heads="copy").predict(torch.ones(1, 2)).point.shape == (1, 2)


def test_models_and_names_without_a_weight_layer_are_refused() -> None:
    with pytest.raises(ValueError, match="has no linear layer or convolution to put heads beside; pass heads='copy'"):
        QuantileHeads(nn.ReLU())
    with pytest.raises(ValueError, match=r"last must be one of the model's weight layers \(0, 2\), got '1'"):
        QuantileHeads(nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)), last="1")
    with pytest.raises(ValueError, match="heads must be one of 'layer', 'copy', got 'wide'"):
        QuantileHeads(nn.Linear(1, 1), heads="wide")  # type: ignore[arg-type]


@pytest.mark.parametrize(("method", "copies"), [(QuantileHeads, 2), (ProbOut, 2), (ErrorPredictor, 2)])
def test_copies_are_as_many_as_are_needed(method: Any, copies: int) -> None:
    assert len(method(nn.Linear(1, 1), heads="copy").heads.networks) == copies


def test_hooks_are_gone_after_the_call_even_if_it_fails() -> None:
    heads = Heads(nn.Linear(2, 2), 1)

    heads(None, torch.ones(1, 2))
    with pytest.raises(RuntimeError):
        heads(None, torch.ones(1, 5))

    assert not heads.networks[0]._forward_hooks
