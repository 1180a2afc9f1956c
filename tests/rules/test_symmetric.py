"""The same gap below and above each weight: the bounds of these intervals, with three products instead of four."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import intervalnn as inn
from counting import convolutions
from intervalnn.network.gaps import Gaps
from widened import around, as_weights

MODELS: dict[str, Any] = {
    "signs": lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Conv1d(4, 4, 3), nn.Tanh(), nn.Conv1d(4, 3, 1)),
    "groups": lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Conv1d(4, 6, 3, groups=2), nn.Conv1d(6, 6, 1)),
    "transposed": lambda: nn.Sequential(nn.Conv1d(2, 3, 3), nn.ReLU(), nn.ConvTranspose1d(3, 2, 4, 2)),
    "linear": lambda: nn.Sequential(nn.Linear(9, 5), nn.ReLU(), nn.Linear(5, 5), nn.Linear(5, 2)),
    "recurrent": lambda: nn.LSTM(9, 4, batch_first=True),
}  # fmt: skip


def random_gaps(net: inn.IntervalNetwork) -> inn.IntervalNetwork:
    with torch.no_grad():
        for gap in net.parameters():
            gap.uniform_(0.0, 0.1)
    return net


def outputs(bounds: Any) -> list[inn.Interval]:
    return [bounds] if isinstance(bounds, inn.Interval) else [bounds[0], *bounds[1]]


@pytest.mark.rotating
@pytest.mark.parametrize("interval_input", [False, True], ids=["point", "interval"])
@pytest.mark.parametrize("name", MODELS)
def test_bounds_are_those_of_the_same_intervals_with_two_gaps_each(name: str, interval_input: bool) -> None:
    torch.manual_seed(0)
    model, x = MODELS[name]().double().eval(), torch.randn(2, 2, 9, dtype=torch.float64)
    given = around(x) if interval_input else x
    net = random_gaps(inn.IntervalNetwork(model, layers="all", kind="symmetric"))

    with torch.no_grad():
        got, want = outputs(net(given)), outputs(as_weights(net, given)(given))

    for ours, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(ours.below, theirs.below)
        torch.testing.assert_close(ours.above, theirs.above)


def test_a_weight_has_one_gap_and_a_bias_two() -> None:
    net = inn.IntervalNetwork(nn.Linear(2, 3), layers="all", kind="symmetric")

    assert {name: tuple(gap.shape) for name, gap in net.named_parameters()} == {
        "gaps.weight.below": (3, 2), "gaps.bias.below": (3,), "gaps.bias.above": (3,)
    }  # fmt: skip
    net.set_gaps("weight", below=0.5, above=0.5)
    net.set_gaps("bias", below=0.0, above=1.0)
    weight = net.weight_intervals()["weight"]
    assert torch.equal(weight.below, torch.full((3, 2), 0.5)) and torch.equal(weight.below, weight.above)
    with pytest.raises(ValueError, match=r"'weight' has the same gaps below and above .* got two that differ"):
        net.set_gaps("weight", below=0.5, above=torch.full((3, 2), 0.25))
    with pytest.raises(ValueError, match=r"must have shape \(3, 2\), or be a number, got \(2, 3\)"):
        net.set_gaps("weight", below=0.25, above=torch.full((2, 3), 0.25))
    assert torch.equal(net.weight_intervals()["weight"].below, weight.below)  # nothing was set by halves


def test_three_products_stand_beside_the_points_own_whatever_the_signs() -> None:
    model, x = MODELS["signs"]().eval(), torch.randn(2, 2, 9)
    net, free = (random_gaps(inn.IntervalNetwork(model, layers="all", kind=kind)) for kind in ("symmetric", "weight"))

    with torch.no_grad():
        net(x), free(x)  # captures the model

    # Of the first layer, the inputs are points.
    assert convolutions(lambda: net(x)) == 3 + 1 + 3 + 3
    assert convolutions(lambda: free(x)) == 3 + 2 + 3 + 4  # two of the second share a call


def test_rescaling_and_projecting_count_a_gap_once() -> None:
    gaps = Gaps(torch.ones(2, 2), "symmetric")
    with torch.no_grad():
        gaps.below.copy_(torch.tensor([[1.0, -1.0], [2.0, 4.0]]))
    gaps.project()
    gaps.rescale(torch.tensor(0.5))

    assert gaps.above is None and gaps.sides == (gaps.below,)
    assert torch.equal(gaps.below.detach(), torch.tensor([[2.0, 0.0], [4.0, 8.0]]))
    assert torch.equal(gaps.interval(torch.ones(2, 2)).above.detach(), torch.tensor([[1.0, 0.0], [2.0, 4.0]]))


def test_its_sensitivities_are_those_of_two_gaps() -> None:
    torch.manual_seed(0)
    model, x = MODELS["signs"]().eval(), torch.randn(2, 2, 9)

    ours, theirs = (
        inn.IntervalNetwork(model, layers="all", kind=kind).sensitivities(x) for kind in ("symmetric", "weight")
    )

    assert ours == pytest.approx(theirs, rel=1e-5)
