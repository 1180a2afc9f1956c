"""Reading: values of a model, brought to a scout's width and to the positions of an output."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from intervalnn.network.scouts.taps import Fit

__all__ = ["Reader", "channels_of", "mixed"]

_CONVOLUTIONS: dict[int, Any] = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_POOLS: dict[int, Any] = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}


def channels_of(body: nn.Module, shape: Sequence[int], dims: int) -> int:
    """Return how many channels a body of the user's own puts out for an input of so many sizes."""
    with torch.no_grad():
        out = copy.deepcopy(body).cpu().float().eval()(torch.zeros(tuple(shape)))
    own = 1 if dims else len(shape) - 1
    if (
        isinstance(out, Tensor)
        and out.dim() == len(shape)
        and all(a == b for i, (a, b) in enumerate(zip(out.shape, shape, strict=True)) if i != own)
    ):
        return out.shape[own]
    got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
    wanted = ", ".join("channels" if i == own else str(size) for i, size in enumerate(shape))
    raise ValueError(f"the body of a scout must make ({wanted}) of {tuple(shape)}, got {got}")


class Reader(nn.Module):
    """One value of the model, brought to a scout's width and to the positions of an output.

    Args:
        fit: How.
        width: How many channels come out.
        generator: Draws the weights.
    """

    mean: Tensor
    size: Tensor

    def __init__(self, fit: Fit, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.fit = fit
        self.register_buffer("mean", torch.zeros(fit.channels))
        self.register_buffer("size", torch.ones(fit.channels))
        weight = torch.empty(width, fit.channels)
        self.weight = nn.Parameter(nn.init.kaiming_uniform_(weight, nonlinearity="relu", generator=generator))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, value: Tensor, point: Tensor, dims: int) -> Tensor:
        """Return the value, normalised and mixed, at the positions of ``point``."""
        weight = self.weight / self.size
        bias = self.bias - weight @ self.mean
        value, how = value.to(weight.dtype), self.fit.how
        if how == "spread":
            return functional.linear(value, weight, bias).reshape(*value.shape[:1], -1, *[1] * dims)
        if how == "mean":
            value = value.flatten(2).mean(2) if self.fit.grid else value.flatten(1, -2).mean(1)
        elif how == "down":
            value = _POOLS[dims](value, self.fit.window)
        value = mixed(value, weight.reshape(*weight.shape, *[1] * dims), bias, dims)
        # Sizes that matched in the first call may not in another.
        fits = not dims or how == "spread" or value.shape[2:] == point.shape[2:]
        return value if fits else functional.interpolate(value, size=point.shape[2:])

    def sums(self, value: Tensor) -> Tensor:
        """Return count, sum and sum of squares of a value, by channel."""
        rows = value.detach().double().movedim(1 if self.fit.grid else -1, 0).flatten(1)
        return torch.stack((torch.full_like(rows[:, 0], rows.shape[1]), rows.sum(1), rows.square().sum(1)))

    @torch.no_grad()
    def normalise(self, sums: Tensor) -> None:
        """Standardise from now on, by what :meth:`sums` found; a channel that never moves is divided by one."""
        count, total, squares = sums
        mean = total / count
        size = (squares / count - mean.square()).clamp(min=0.0).sqrt()
        self.mean.copy_(mean)
        self.size.copy_(torch.where(size > 1e-6 * mean.abs(), size, 1.0))


def mixed(x: Tensor, weight: Tensor, bias: Tensor | None, dims: int) -> Tensor:
    """Return a linear map of the channels: a convolution that keeps the size, or a linear layer."""
    if not dims:
        return functional.linear(x, weight, bias)
    return _CONVOLUTIONS[dims](x, weight, bias, padding=weight.shape[-1] // 2)  # type: ignore[no-any-return]
