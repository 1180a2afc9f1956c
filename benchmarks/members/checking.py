"""What every member is checked by: the model's own output, and draws of weights from inside their intervals."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

import intervalnn as inn

BOUNDED, REFUSED = "bounded", "refused"
# What of an error's text comes out of torch's inside, and helps no one who wrote a model.
INTERNAL = re.compile(r"TOKEN|FakeTensor|proxy_tensor|torch\._dynamo\.exc|Unsupported\(|0x[0-9a-f]{6,}")


class Fault(Exception):
    """A member that is silently wrong, or whose refusal does not help."""


def tried(attempt: Callable[[], None]) -> str:
    """Run a member, and say whether it was bounded or refused by a clear error."""
    try:
        attempt()
    except (inn.MissingRuleError, ValueError, TypeError) as error:
        text = str(error)
        if len(text) < 40 or INTERNAL.search(text):
            raise Fault(f"the refusal does not help: {type(error).__name__}: {text[:200]}") from error
        return REFUSED
    return BOUNDED


def need(holds: bool, said: str) -> None:
    """Raise a fault unless something holds."""
    if not holds:
        raise Fault(said)


@torch.no_grad()
def open_gaps(net: inn.IntervalNetwork, random: Random, size: float = 0.1) -> None:
    """Give every weight gaps of its own, of about ``size``."""
    generator = torch.Generator().manual_seed(random.getrandbits(32))
    for gap in net.parameters():
        gap.copy_(size * torch.rand(gap.shape, generator=generator, dtype=gap.dtype))


def flat(value: Any) -> list[Any]:
    """Return the tensors or intervals of an output, in order."""
    leaves = pytree.tree_leaves(value, is_leaf=lambda x: isinstance(x, inn.Interval))
    return [leaf for leaf in leaves if isinstance(leaf, Tensor | inn.Interval)]


def check_point(bounds: Any, own: Any, said: str, rounding: float = 1e-5) -> None:
    """Raise a fault unless the point of the bounds is the model's own output, up to rounding."""
    for bound, value in zip(flat(bounds), flat(own), strict=True):
        point = bound.point if isinstance(bound, inn.Interval) else bound
        need(point.shape == value.shape, f"{said}: the point has shape {tuple(point.shape)}, not {tuple(value.shape)}")
        size = float(value.abs().max()) if value.numel() else 0.0
        off = float((point.double() - value.double()).abs().max()) if value.numel() else 0.0
        need(off <= rounding * (1 + size), f"{said}: the point is off by {off:.3g}")


@torch.no_grad()
def check_draws(
    net: inn.IntervalNetwork, bounds: Any, own: Callable[[], Any], random: Random, said: str, draws: int = 6
) -> None:
    """Raise a fault if the model leaves the bounds for weights inside their intervals.

    The weights are written into the model in place, so that every way by which it reaches them moves with them.
    """
    weights = {
        name: weight.map(Tensor.clone) for name, weight in net.weight_intervals().items()
    }  # lest they move along
    generator = torch.Generator().manual_seed(random.getrandbits(32))
    kept = {name: weight.point for name, weight in weights.items()}
    try:
        for draw in range(draws):
            for name, weight in weights.items():
                share = torch.rand(weight.point.shape, generator=generator, dtype=weight.point.dtype)
                share = share.round() if draw % 2 else share
                net.model.get_parameter(name).data.copy_(weight.lower + share * weight.width)
            for bound, value in zip(flat(bounds), flat(own()), strict=True):
                if isinstance(bound, inn.Interval):
                    atol = 1e-4 * (1 + float(value.abs().max())) if value.dtype != torch.float64 else 1e-9
                    need(bool(bound.contains(value, atol=atol).all()), f"{said}: a draw of weights leaves the bounds")
    finally:
        for name, point in kept.items():
            net.model.get_parameter(name).data.copy_(point)


def linear(random: Random, inputs: int = 3, outputs: int = 3) -> nn.Linear:
    """Return a linear layer with weights of a seed."""
    torch.manual_seed(random.getrandbits(32))
    return nn.Linear(inputs, outputs)
