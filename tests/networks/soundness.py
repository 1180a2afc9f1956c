"""Draw weights inside the intervals of a network, and see whether the model's outputs stay inside the bounds."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from zoo import Case

import intervalnn as inn


def leaves(structure: Any) -> list[Any]:
    """Return the tensors and intervals of a structure, in order."""
    flat = pytree.tree_leaves(structure, is_leaf=lambda x: isinstance(x, inn.Interval))
    return [leaf for leaf in flat if isinstance(leaf, Tensor | inn.Interval)]


def precision(case: Case) -> tuple[torch.dtype, float]:
    """Return the finest data type in which a network runs, and a tolerance for its rounding."""
    args, kwargs = case.call(torch.float64)
    try:
        case.build(torch.float64)(*args, **kwargs)
    except Exception:  # a part that computes in float32, whatever it is given
        return torch.float32, 1e-4
    return torch.float64, 1e-9


def set_random_gaps(net: inn.IntervalNetwork, *, rel: float, seed: int = 2) -> None:
    """Give every interval layer gaps: asymmetric, about ``rel`` times the weights, one in five zero."""
    generator = torch.Generator().manual_seed(seed)
    weights = net.weight_intervals()
    for name in net.names:
        point = weights[name].point
        point = torch.view_as_real(point) if point.is_complex() else point
        scale = rel * (point.abs() + point.abs().mean())
        below, above = (
            scale * torch.rand(point.shape, generator=generator, dtype=point.dtype)
            * (torch.rand(point.shape, generator=generator) > 0.2)
            for _ in range(2)
        )  # fmt: skip
        net.set_gaps(name, below, above)


def draw(intervals: dict[str, inn.Interval], generator: torch.Generator, *, corner: bool) -> dict[str, Tensor]:
    """Return weights inside their intervals: all at their ends, or anywhere."""
    drawn = {}
    for name, w in intervals.items():
        lower, upper = (torch.view_as_real(end) if end.is_complex() else end for end in (w.lower, w.upper))
        share = torch.rand(lower.shape, generator=generator, dtype=lower.dtype)
        value = lower + (share.round() if corner else share) * (upper - lower)
        drawn[name] = torch.view_as_complex(value) if w.point.is_complex() else value
    return drawn


def misses(
    net: inn.IntervalNetwork,
    twin: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    draws: int,
    rtol: float,
    seed: int = 3,
) -> tuple[int, float]:
    """Count components outside the bounds over all draws, and say how much of a gap was reached at most.

    Args:
        net: The network, with gaps.
        twin: A second copy of its model, which takes the drawn weights; so that the first is only read.
        args: Arguments of the call.
        kwargs: Those by name.
        draws: How many draws; every other one takes all weights at their ends.
        rtol: Tolerance for rounding, relative to the largest output.
        seed: Seed of the draws.
    """
    generator = torch.Generator().manual_seed(seed)
    count, used = 0, 0.0
    with torch.no_grad():
        bounds = leaves(net(*args, **kwargs))
        weights = net.weight_intervals()
        intervals = {name: weights[name].detach() for name, _ in twin.named_parameters()}
        for k in range(draws):
            for name, value in draw(intervals, generator, corner=k % 2 == 0).items():
                twin.get_parameter(name).copy_(value)
            outputs = leaves(twin(*args, **kwargs))
            for bound, output in zip(bounds, outputs, strict=True):
                if isinstance(bound, inn.Interval):
                    outside, reached = _compare(bound, output, rtol)
                    count, used = count + outside, max(used, reached)
    return count, used


def _compare(bound: inn.Interval, output: Tensor, rtol: float) -> tuple[int, float]:
    finite = output[output.isfinite()].abs()
    atol = rtol * float(finite.max() if finite.numel() else 1.0)
    outside = int((~bound.contains(output, atol=atol)).sum())
    if output.is_complex() or not bool((bound.width > atol).any()):
        return outside, 0.0
    wide = (bound.width > atol) & bound.width.isfinite()
    share = (output - bound.point).abs() / torch.where(wide, torch.maximum(bound.above, bound.below), torch.inf)
    return outside, float(share.nan_to_num().max())


def fingerprint(model: nn.Module) -> dict[str, Any]:
    """Return all that a user could notice of a model: numbers, flags, hooks, attributes and code."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_state_dict_hooks")
    return {
        "bytes": {
            k: v.detach().numpy().tobytes() if isinstance(v, Tensor) else repr(v) for k, v in model.state_dict().items()
        },
        "versions": {k: (id(v), v._version, v.requires_grad) for k, v in model.named_parameters()},
        "modules": [
            (
                name,
                type(m),
                type(m).forward.__code__,
                m.training,
                sorted(m.__dict__),
                [dict(getattr(m, h)) for h in hooks],
            )
            for name, m in model.named_modules()
        ],
    }
