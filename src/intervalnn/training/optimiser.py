"""Proportional: an optimiser for numbers that must stay positive, by steps in proportion to their size."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

__all__ = ["Proportional"]

LONGEST = 3.0  # of one step, in learning rates; Adam's own are hardly ever longer


class Proportional(torch.optim.Optimizer):
    """Adam on the logarithms: each step multiplies a parameter by a factor near one.

    Not in the paper. Few gaps of a network matter for the width. These gaps need to grow by orders of magnitude, while
    all others shrink. Steps of one size for all gaps cannot do both. Steps in proportion to a gap can, whatever the
    units of the output and the sensitivity of the layer.

    Args:
        params: Tensors, ``>= 0``; or groups of parameters. A group with ``"proportional": False`` takes Adam's own
            steps, and may have any sign.
        lr: The largest step of a logarithm, about.
        betas: How much of the means of gradient and squared gradient is kept in each step.
        start: What a zero becomes with its first gradient; one that never has any stays zero.
        least: The smallest value of one that has started, so that none is ever too small to come back.

    Example:
        >>> gap = torch.nn.Parameter(torch.zeros(2))
        >>> optimizer = Proportional([gap], lr=0.05, start=1.0)
        >>> for _ in range(300):
        ...     optimizer.zero_grad()
        ...     (gap - torch.tensor([50.0, 0.02])).abs().sum().backward()
        ...     optimizer.step()
        >>> bool(((gap / torch.tensor([50.0, 0.02])).log().abs() < 0.2).all())
        True
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        *,
        lr: float = 0.1,
        betas: tuple[float, float] = (0.9, 0.999),
        start: float = 1e-4,
        least: float = 1e-8,
    ) -> None:
        if not (lr > 0 and start >= least > 0):
            raise ValueError(f"lr and least must be positive, and start no less than least; got {lr}, {least}, {start}")
        options = {"lr": lr, "betas": betas, "start": start, "least": least, "proportional": True}
        super().__init__(params, options)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step with the gradients that the parameters have."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group)
        return loss

    def _move(self, parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if not group["proportional"]:
            parameter.sub_(group["lr"] * self._steps(parameter, grad, group["betas"]))
            return
        opened = torch.where((parameter <= 0) & (grad != 0), group["start"], parameter)
        steps = self._steps(parameter, grad * opened, group["betas"])  # along the derivative by the logarithm
        moved = (opened * torch.exp(-group["lr"] * steps)).clamp(min=group["least"])
        parameter.copy_(torch.where(opened > 0, moved, opened))

    def _steps(self, parameter: Tensor, slope: Tensor, betas: tuple[float, float]) -> Tensor:
        """Return Adam's steps along a slope, in learning rates."""
        state, (keep, keep_square) = self.state[parameter], betas
        if not state:
            state |= {"step": torch.zeros(()), "mean": torch.zeros_like(slope), "square": torch.zeros_like(slope)}
        state["step"] += 1
        step = int(state["step"])
        state["mean"].lerp_(slope, 1 - keep)
        state["square"].lerp_(slope.square(), 1 - keep_square)
        mean = state["mean"] / (1 - keep**step)
        size = (state["square"] / (1 - keep_square**step)).sqrt()
        # The square of a small value may underflow to zero.
        steps: Tensor = mean / size.clamp(min=torch.finfo(size.dtype).tiny)
        return steps.clamp(-LONGEST, LONGEST)
