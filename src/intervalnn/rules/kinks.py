"""The slope ahead of a kink: the derivative of bounds where a function bends, jumps or has several largest values.

An end of an interval only moves outward as its gap opens. So where a function bends, the one-sided derivative on the
outer side counts. Torch's own derivative at a kink has changed between versions, and is not used here: the value is
taken at the end, and the derivative a little further out.

Where several values are equal, as with the larger of two, the bounds have one slope for each gap that opens alone, and
another slope for all gaps that open together. One gradient cannot give both. The slope for all gaps together is taken,
because all gaps open when training starts, and because a sensitivity is the slope of opening all gaps of a parameter
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from intervalnn.interval import Interval

__all__ = ["ahead", "beyond", "is_trained", "norm_beyond", "slopes_ahead", "valued"]

Side = Literal["lower", "upper"]


def beyond(fn: Callable[[Tensor], Tensor], end: Tensor, side: Side) -> Tensor:
    """Return ``fn(end)`` with the derivative on the outer side of the end.

    Example:
        >>> x = torch.tensor([1.0], requires_grad=True)
        >>> cut_at_one = torch.nn.functional.hardtanh
        >>> [torch.autograd.grad(beyond(cut_at_one, x, side), x)[0].item() for side in ("lower", "upper")]
        [1.0, 0.0]
    """
    value = fn(end)
    if not is_trained(end):
        return value
    return valued(fn(valued(end, _further(end.detach(), side))), value)


def ahead(ends: Callable[..., tuple[Tensor, Tensor]], *args: Any) -> tuple[Tensor, Tensor]:
    """Return what ``ends`` makes of intervals, with the derivative where all gaps that are trained are a little wider.

    Example:
        >>> zero, gap = torch.zeros(2), torch.zeros(2, requires_grad=True)
        >>> x = Interval(zero, below=gap, above=gap)
        >>> _, upper = ahead(lambda x: (x.lower.maximum(zero), x.upper.maximum(zero)), x)
        >>> torch.autograd.grad(upper.sum(), gap)[0]
        tensor([1., 1.])
    """
    lower, upper = ends(*args)
    if not (is_trained(lower) or is_trained(upper)):
        return lower, upper
    lower_slope, upper_slope = ends(*(_opened(arg) if isinstance(arg, Interval) else arg for arg in args))
    return valued(lower_slope, lower), valued(upper_slope, upper)


def slopes_ahead(bound: Callable[..., Interval], *args: Any) -> Interval:
    """Return what ``bound`` makes of intervals, with the derivative where all gaps that are trained are a little wider.

    This is :func:`ahead` for rules that compute gaps rather than ends.
    """
    bounds = bound(*args)
    if not (is_trained(bounds.below) or is_trained(bounds.above)):
        return bounds
    wider = bound(*(_opened(arg) if isinstance(arg, Interval) else arg for arg in args))
    return Interval(bounds.point, valued(wider.below, bounds.below), valued(wider.above, bounds.above))


def norm_beyond(
    norm: Callable[[Tensor], Tensor], sizes: Tensor, dims: Any = None, moving: Sequence[bool] | None = None
) -> Tensor:
    """Return the norm of upper ends ``>= 0``, with the derivative where those at zero are a little larger.

    Args:
        norm: A norm, of which only the ratios between sizes matter for its derivative.
        sizes: What it takes.
        dims: The dimensions that it reduces; None for all.
        moving: Which of the last dimension can become larger; None for all.

    Example:
        >>> sizes = torch.zeros(4, requires_grad=True)
        >>> torch.autograd.grad(norm_beyond(torch.linalg.vector_norm, sizes), sizes)[0]
        tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    value = norm(sizes)
    if not is_trained(sizes) or sizes.numel() == 0:
        return value
    largest = sizes.detach().amax(() if dims is None else dims, keepdim=True)
    least = torch.where(largest.isfinite() & (largest > 0), largest, 1.0) * torch.finfo(sizes.dtype).eps
    wider = torch.maximum(sizes.detach(), least)
    if moving is not None:
        wider = torch.where(torch.tensor(moving, device=sizes.device), wider, sizes)
    return valued(norm(valued(sizes, wider)), value)


def is_trained(x: Tensor) -> bool:
    """Say whether a gradient of this tensor may be asked for."""
    return x.requires_grad and torch.is_grad_enabled()


def _opened(x: Interval) -> Interval:
    return Interval(x.point, _wider(x.below, x, "lower"), _wider(x.above, x, "upper"))


def _wider(gap: Tensor, x: Interval, side: Side) -> Tensor:
    """Return a slightly wider gap, whose end lies further out even after rounding."""
    if not gap.requires_grad:
        return gap
    end: Tensor = getattr(x, side).detach()
    reach = (_further(end, side) - x.point.detach()).abs().to(gap.dtype)
    return valued(gap, torch.maximum(reach, _further(gap.detach(), "upper")))


def _further(end: Tensor, side: Side) -> Tensor:
    """Return the next number but one or so; ``torch.nextafter`` has no kernel for float16."""
    info = torch.finfo(end.dtype)
    step = end.abs().clamp(max=info.max) * info.eps + info.smallest_normal
    return end - step if side == "lower" else end + step


def valued(x: Tensor, value: Tensor) -> Tensor:
    """Return one tensor's values, with the gradient of another."""
    return _Valued.apply(x, value.detach())  # type: ignore[no-any-return, no-untyped-call]


class _Valued(torch.autograd.Function):
    """One tensor's values, with the gradient of another."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, value: Tensor) -> Tensor:  # noqa: ARG004
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004
        return grad, None
