"""What is computed otherwise over intervals, and what is left as it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.capture import capture
from intervalnn.network.search import planned
from intervalnn.rules.products.factors import Repeated


def test_a_count_by_itself_is_bounded_as_a_product_of_whole_numbers() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scores = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            count = (self.scores(x) > 0).long() + 1
            return (count * count).to(x.dtype)

    torch.manual_seed(0)
    model, x = Counts().eval(), torch.ones(1, 3)
    net = inn.IntervalNetwork(model, layers=["scores"])
    net.set_gaps("scores.bias", 10.0, 10.0)  # so that every answer may be either

    bounds = net(x)

    assert torch.equal(bounds.point, model(x))
    assert bool((bounds.lower == 1).all()) and bool((bounds.upper == 4).all())


def test_the_captured_program_stays_as_it_is() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.Upsample(scale_factor=2), nn.Conv2d(2, 1, 3, padding=1)).eval()
    net, x = inn.IntervalNetwork(model, layers="all", kind="input"), torch.ones(1, 1, 4, 4)
    program = capture(model, Call.of((x,), {}))
    before = str(program.graph)

    plan = planned(program, net)

    called = {node.target for node in plan.lifted.run.graph.nodes}
    assert Repeated in called and plan.lifted.stretched  # it was rewritten
    assert str(program.graph) == before
