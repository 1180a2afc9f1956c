"""Data types and sizes of numbers: gaps far smaller or larger than what they lie around, in every precision."""

from __future__ import annotations

from random import Random

import torch
from torch import nn
from torch.func import functional_call

import intervalnn as inn
from members.checking import need, open_gaps, tried

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
ROUNDINGS = 4  # of a gap in each layer, in epsilons of its dtype
LAYERS = 5


def member(random: Random) -> str:
    """Try one: the model in one dtype, its gaps in another, at any scale; drawn and computed in float64."""
    dtype, gap_dtype = random.choice(DTYPES[:2]), random.choice([None, *DTYPES])
    scale, size = 10 ** random.uniform(-6, 4), 10 ** random.uniform(-12, 1)
    torch.manual_seed(random.getrandbits(32))
    body: list[nn.Module] = [nn.Linear(4, 6), random.choice([nn.ReLU(), nn.Tanh(), nn.GELU(), nn.LayerNorm(6)])]
    model = nn.Sequential(*body, nn.Linear(6, 3)).to(dtype).eval()
    with torch.no_grad():
        model[0].weight.mul_(scale)
    x = torch.randn(3, 4).to(dtype) * 10 ** random.uniform(-3, 3)
    said = f"{dtype} with gaps of {size:.1g} in {gap_dtype}, weights of {scale:.1g}"

    def attempt() -> None:
        net = inn.IntervalNetwork(model, layers="all", gap_dtype=gap_dtype)
        open_gaps(net, random, size * scale)
        with torch.no_grad():
            bounds = net(x)
        need(bool((bounds.below >= 0).all() and (bounds.above >= 0).all()), f"{said}: a gap is negative or NaN")
        exact = {name: weight.map(torch.Tensor.double) for name, weight in net.weight_intervals().items()}
        twin = nn.Sequential(*model).double()
        eps = torch.finfo(gap_dtype or dtype).eps
        own = functional_call(twin, {name: weight.point for name, weight in exact.items()}, (x.double(),))
        rounding = 100 * torch.finfo(dtype).eps * float(own.abs().max())
        for draw in range(6):
            shares = {name: torch.rand_like(weight.point) for name, weight in exact.items()}
            shares = {name: share.round() if draw % 2 else share for name, share in shares.items()}
            weights = {name: weight.lower + shares[name] * weight.width for name, weight in exact.items()}
            value = functional_call(twin, weights, (x.double(),)) - own
            above, below = (
                gap.double() * (1 + ROUNDINGS * LAYERS * eps) + rounding for gap in (bounds.above, bounds.below)
            )
            need(bool(((value <= above) & (-value <= below)).all()), f"{said}: a draw leaves the bounds")

    try:
        return tried(attempt)
    finally:
        model.to(dtype)


__all__ = ["member"]
