"""A tiny network whose sensitivities and bounds are known in closed form, to see whether this torch gives them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from intervalnn.network.network import IntervalNetwork
from intervalnn.training.loop import fit

__all__ = ["deviations"]

# For the input 1 the hidden values are 1, -1 and 0. The first lies where the cut at one bends and can only fall, the
# second where ReLU is flat, and the third where it bends and can only rise. So of the two sides of each gap of the
# hidden layer, one of the first and one of the third move the output; and its own gaps open it on both sides.
SENSITIVITIES = {"hidden.weight": 2.0, "hidden.bias": 2.0, "output.weight": 2.0, "output.bias": 2.0}

# Half of the targets lie one above the point and half one below. For gaps g on both sides, the paper's loss (Eq. 2) is
# (1 - g)^2 + beta * 2 g, which is least for g = 1 - beta.
BETA, REACH = 0.25, 0.75
STEPS, ENOUGH = 100, 0.01  # so many steps come within 0.002


class Tiny(nn.Module):
    """Two layers of small whole numbers, with ReLU and a cut at one between them."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.output = nn.Linear(1, 3), nn.Linear(3, 1)
        with torch.no_grad():
            self.hidden.weight.copy_(torch.tensor([[1.0], [-1.0], [1.0]]))
            self.hidden.bias.copy_(torch.tensor([0.0, 0.0, -1.0]))
            self.output.weight.fill_(1.0)
            self.output.bias.fill_(0.0)

    def forward(self, x: Tensor) -> Tensor:
        """Return one value for each input."""
        values: Tensor = self.output(torch.relu(self.hidden(x)).clamp(max=1.0))
        return values


def deviations(device: str) -> list[str]:
    """Return what comes out otherwise than it is known to, on a device."""
    net = IntervalNetwork(Tiny().to(device).eval(), layers="all")
    x = torch.ones(2, 1, device=device)
    found = net.sensitivities(x)
    wrong = [
        f"the sensitivity of {name} is {found[name]:.4g}, not {known:g}"
        for name, known in SENSITIVITIES.items()
        if not abs(found[name] - known) < 1e-3
    ]
    targets = torch.tensor([[2.0], [0.0]], device=device)
    fit(net, [(x, targets)], beta=BETA, epochs=STEPS, progress=False)
    bounds = net.predict(x)
    return wrong + [
        f"fitted bounds reach {float(gaps.mean()):.4g} {side} the point, not {REACH:g}"
        for side, gaps in (("below", bounds.below), ("above", bounds.above))
        if not bool(((gaps - REACH).abs() < ENOUGH).all())
    ]
