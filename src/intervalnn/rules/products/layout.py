"""Layout: where the outputs of a product lie, in its weight and in its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from intervalnn.table import aten

__all__ = ["CONVOLUTIONS", "Layout", "layout_of", "moving_part", "sizes"]

CONVOLUTIONS = {  # spatial dimensions, transposed
    aten.conv1d: (1, False),
    aten.conv2d: (2, False),
    aten.conv3d: (3, False),
    aten.conv_transpose1d: (1, True),
    aten.conv_transpose2d: (2, True),
    aten.conv_transpose3d: (3, True),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the outputs of a product lie, so that two weights can share one call.

    Attributes:
        weight: Dimension of the weight that counts the outputs.
        inputs: Dimension of the weight that counts the inputs.
        spatial: Dimensions behind the channels, of inputs and outputs: one to three of a convolution, else none.
        groups: Groups of a convolution.
        transposed: Whether it is a transposed convolution, whose weight has its groups elsewhere.
        window: Height and width of what an output sees, of a convolution that may be computed from these windows
            one by one; else empty.
    """

    weight: int
    inputs: int
    spatial: int = 0
    groups: int = 1
    transposed: bool = False
    window: tuple[int, ...] = ()

    @property
    def output(self) -> int:
        """Dimension that counts the outputs in the result, and the inputs in the input, from the end."""
        return -1 - self.spatial

    def stack(self, first: Tensor, second: Tensor) -> Tensor:
        """Return one weight that computes both products, group by group."""
        if self.groups == 1 or self.transposed:
            return torch.cat((first, second), self.weight)
        parts = (w.unflatten(self.weight, (self.groups, -1)) for w in (first, second))
        return torch.cat(tuple(parts), self.weight + 1).flatten(self.weight, self.weight + 1)

    def unstack(self, result: Tensor) -> tuple[Tensor, Tensor]:
        """Return the two products that a stacked weight has computed."""
        dim = self.output
        if self.groups == 1:
            half = result.size(dim) // 2  # not by chunk, whose size onnxscript must know
            return result.narrow(dim, 0, half), result.narrow(dim, half, half)
        grouped = result.unflatten(dim, (self.groups, 2, -1))
        first, second = grouped.unbind(dim - 1)
        return first.flatten(dim - 1, dim), second.flatten(dim - 1, dim)

    def per_output(self, x: Tensor) -> Tensor:
        """Return one number per output, as a bias has them, in a shape that broadcasts with the result."""
        return x.view([-1] + [1] * self.spatial)


def layout_of(fn: Any, weight: Any, rest: tuple[Any, ...]) -> Layout:
    """Return the layout of a linear layer or a convolution.

    Args:
        fn: The operation.
        weight: Its weight, of at least two dimensions.
        rest: What it takes behind weight and bias.
    """
    packet = fn.overloadpacket
    if packet is aten.linear:
        return Layout(weight=0, inputs=1)
    if packet is aten.convolution:
        transposed, groups = rest[3], rest[5]
        spatial = weight.dim() - 2
    else:
        spatial, transposed = CONVOLUTIONS[packet]
        groups = rest[3] if len(rest) > 3 else 1
    named = len(rest) > 1 and isinstance(rest[1], str)  # a padding such as "same"
    window = tuple(weight.shape[2:]) if spatial == 2 and not transposed and not named else ()
    return Layout(int(transposed), int(not transposed), spatial, groups, transposed, window)


def moving_part(x: Tensor, dim: int, moving: tuple[int, int] | None) -> Tensor:
    """Return the part of a weight, or of an input, that is about inputs with gaps.

    Args:
        x: The weight or the input.
        dim: Dimension that counts the inputs.
        moving: First, and one past the last, of those that have gaps; None if all may have.
    """
    return x if moving is None else x.narrow(dim, moving[0], moving[1] - moving[0])


def sizes(given: Any) -> list[int]:
    """Return a setting of a convolution as a list: of one number for all dimensions, or of one for each."""
    return list(given) if isinstance(given, list | tuple) else [given]
