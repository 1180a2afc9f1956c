"""Gaps: what is trained, and how it becomes the interval around a weight."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from intervalnn.interval import Interval, Symmetric, capped
from intervalnn.rules.products.stretched import Stretched
from intervalnn.torch_private import own_parameters

__all__ = ["Gaps", "Kind"]

Kind = Literal["weight", "symmetric", "input"]


class Gaps(nn.Module):
    """The two gaps around one parameter of the underlying model.

    What is trained is ``below`` and ``above``, one number per entry (``"weight"``, the paper).
    For ``"symmetric"`` there is no ``above``: the gap of a weight holds for both sides.
    For ``"input"`` there is one number per input channel: the share by which the channel's weights may shrink and grow
    (see :class:`intervalnn.rules.products.stretched.Stretched`). Biases always keep one number per entry and side.
    These numbers are kept in float32 at the least, because small training steps would be rounded away in fewer digits.
    ``scale`` turns them into gaps. The scale is one at first. Once the network is balanced, the scale is one over the
    parameter's sensitivity, so that a step of training moves the output by the same amount in every layer.

    Around a complex parameter, real and imaginary part have gaps of their own, side by side at the end.

    Args:
        around: The parameter.
        kind: What has a gap of its own; see :class:`intervalnn.IntervalNetwork`.
        cap: The largest gap, as a multiple of the parameter's root mean square; None for no limit.
    """

    scale: Tensor

    def __init__(self, around: Tensor, kind: Kind = "weight", cap: float | None = None) -> None:
        super().__init__()
        if kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {', '.join(map(repr, get_args(Kind)))}, got {kind!r}")
        if cap is not None and not cap > 0:
            raise ValueError(f"cap must be positive, or None for no limit, got {cap}")
        self.shape, self.dtype = around.shape, around.dtype
        around = torch.view_as_real(around) if around.is_complex() else around
        self.by_input = kind == "input" and around.dim() > 1
        self.cap = cap
        shape = list(around.shape)
        if self.by_input:
            shape = [size if dim == 1 else 1 for dim, size in enumerate(shape)]
        wide = torch.promote_types(around.dtype, torch.float32)
        self.below = nn.Parameter(around.new_zeros(shape, dtype=wide))
        for_both = kind == "symmetric" and around.dim() > 1
        self.above = None if for_both else nn.Parameter(around.new_zeros(shape, dtype=wide))
        self.register_buffer("scale", around.new_ones((), dtype=wide))

    @property
    def sides(self) -> tuple[nn.Parameter, ...]:
        """What is trained: the gaps below and above, or those that hold for both."""
        return (self.below,) if self.above is None else (self.below, self.above)

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """All that the intervals are made of, beside the point."""
        if any(True for _ in self.children()):  # someone has put a parametrisation over it
            return *self.sides, self.scale
        return *own_parameters(self).values(), self.scale  # type: ignore[arg-type]  # read at every call, so fast

    def forward(self, point: Tensor, dtype: torch.dtype | None = None, stretched: bool = False) -> Interval | Stretched:
        """Return ``point`` with the gaps around it, in the form that a program takes."""
        return self.stretched(point) if stretched else self.interval(point, dtype)

    def stretched(self, point: Tensor) -> Stretched:
        """Return ``point`` with the shares by which its inputs may shrink and grow, for gaps of every input."""
        shrink, grow = (_NonNegative.apply(gap) * self.scale for gap in self.sides)  # type: ignore[no-untyped-call]
        return Stretched(point, capped(shrink, 1.0), grow)

    def interval(self, point: Tensor, dtype: torch.dtype | None = None) -> Interval:
        """Return the interval around ``point``; a negative gap counts as none."""
        around = torch.view_as_real(point) if point.is_complex() else point
        if self.by_input:
            bounds = self.stretched(around).interval()
            sides = [bounds.below, bounds.above]
        else:
            sides = [_NonNegative.apply(gap) * self.scale for gap in self.sides]  # type: ignore[no-untyped-call]
        if self.cap is not None:
            most = self.cap * around.square().mean().sqrt()
            sides = [capped(side, most) for side in sides]
        sides = [torch.view_as_complex(s) if point.is_complex() else s.to(dtype or point.dtype) for s in sides]
        return Symmetric(point, *sides) if self.above is None else Interval(point, *sides)

    @torch.no_grad()
    def set(self, name: str, below: Tensor | float, above: Tensor | float) -> None:
        """Set the gaps on both sides.

        Args:
            name: What the parameter is called in messages.
            below: How far the interval reaches below each entry, ``>= 0``; a number for all.
            above: How far it reaches above.
        """
        if self.by_input:
            raise ValueError(f"'{name}' has one gap per input, relative to its weights; set net.gaps directly")
        given = [_as_gap(value, self.below, name) for value in (below, above)]
        if self.above is None and not bool((given[0] == given[1]).all()):
            raise ValueError(f"'{name}' has the same gaps below and above (kind='symmetric'), got two that differ")
        for gap, new in zip(self.sides, given, strict=False):  # the second of two equal ones is left over
            gap.copy_(new / self.scale if bool(self.scale > 0) else new)

    def closed(self) -> Gaps:
        """Return gaps of the same kind around zeros of the same shape, all zero."""
        other = Gaps(torch.zeros(self.shape, dtype=self.dtype, device=self.scale.device))
        other.train(self.training)
        return other

    def around_zero(self) -> Interval:
        """Return the interval around zero."""
        return self.interval(torch.zeros(self.shape, dtype=self.dtype, device=self.scale.device))

    @torch.no_grad()
    def project(self) -> None:
        """Cut what an optimiser has moved too far: negative gaps (Sec. 3), and shares that change a weight's sign."""
        for gap in self.sides:
            gap.clamp_(min=0.0)
        if self.by_input:
            self.below.copy_(torch.minimum(self.below, 1 / self.scale))

    @torch.no_grad()
    def rescale(self, scale: Tensor) -> None:
        """Change the scale to one ``> 0``, and what is trained with it, so that the gaps stay as they are."""
        for gap in self.sides:
            gap.mul_(self.scale / scale)
        self.scale.copy_(scale)


def _as_gap(value: Tensor | float, like: Tensor, name: str) -> Tensor:
    """Return what a user gives as gaps as a tensor, or say why it is none."""
    if isinstance(value, float | int):  # which torch would round to float32
        value = torch.tensor(value, dtype=torch.float64)
    new = torch.as_tensor(value, device=like.device)
    new = (torch.view_as_real(new) if new.is_complex() else new).to(like.dtype)
    if new.dim() > 0 and new.shape != like.shape:
        raise ValueError(
            f"gaps of '{name}' must have shape {tuple(like.shape)}, or be a number, got {tuple(new.shape)}"
        )
    if not bool((new >= 0).all()) or not bool(new.isfinite().all()):
        raise ValueError(f"gaps of '{name}' must be finite and not negative, got {float(new.min())} at the least")
    return new


class _NonNegative(torch.autograd.Function):
    """Cut at zero, but let a gap that an optimiser has pushed below zero come back.

    The gradient of a plain cut is zero below zero, so a negative gap would never move again. Here only the gradient
    that would push the gap further down is zero, so that the gap stays near zero.
    """

    @staticmethod
    def forward(ctx: Any, gap: Tensor) -> Tensor:
        ctx.save_for_backward(gap)
        return gap.clamp(min=0.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (gap,) = ctx.saved_tensors
        return torch.where((gap >= 0) | (grad < 0), grad, torch.zeros_like(grad))
