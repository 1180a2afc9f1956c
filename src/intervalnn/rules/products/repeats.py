"""Repeats: convolutions of values that stand side by side several times, taken once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, Symmetric
from intervalnn.rules.products.layout import CONVOLUTIONS, Layout, sizes

__all__ = ["Repeats", "repeats_before"]


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often values stand side by side before a convolution, and how many zeros around them.

    A convolution of repeated values is a transposed one of each value once, whose kernel adds up the weights that meet
    the same value. So there are fewer products, and bounds are tighter where these weights cancel.

    Attributes:
        times: How often each value stands there, along each spatial dimension.
        before: Zeros in front of them.
        after: Zeros behind them.
    """

    times: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def more(self) -> list[int]:
        """How much larger the result is than that of zeros alike on both ends."""
        return [after - before for before, after in zip(self.before, self.after, strict=True)]

    def fits(self, window: tuple[int, ...]) -> bool:
        """Say whether torch has that transposed convolution."""
        each = zip(self.more, self.times, self.before, window, strict=True)
        return all(0 <= more < times and before < size for more, times, before, size in each)

    def kernel(self, w: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the weight of the transposed convolution, rounded no more coarsely than ``dtype``."""
        wide = w.to(torch.promote_types(torch.promote_types(w.dtype, dtype), torch.float32))
        wide = wide.transpose(0, 1)
        for dim, times in enumerate(self.times, start=2):
            size = w.size(dim)
            ends = [(max(last - times, 0), min(last, size)) for last in range(size + times - 1, 0, -1)]
            wide = torch.stack([wide.narrow(dim, start, stop - start).sum(dim) for start, stop in ends], dim)
        return wide

    def weight(self, w: Interval | Tensor, dtype: torch.dtype) -> Interval | Tensor:
        """Return the kernel of a weight, whose gaps are the sums of those of what it adds up."""
        if not isinstance(w, Interval):
            return self.kernel(w, dtype)
        point, below = self.kernel(w.point, dtype), self.kernel(w.below, dtype).to(dtype)
        if isinstance(w, Symmetric):
            return Symmetric(point, below)
        return Interval(point, below, self.kernel(w.above, dtype).to(dtype))

    @staticmethod
    def layout(layer: Layout) -> Layout:
        """Return the layout of the transposed convolution."""
        return Layout(weight=1, inputs=0, spatial=layer.spatial, transposed=True)

    def product(self, x: Tensor, kernel: Tensor) -> Tensor:
        """Return the convolution of the repeated values, from each of them once."""
        each = zip(kernel.shape[2:], self.times, self.before, strict=True)
        padding = [size - times - before for size, times, before in each]
        ones = [1] * len(padding)
        return torch.convolution(x, kernel, None, self.times, padding, ones, True, self.more, 1)


def repeats_before(
    fn: Any, weight: Tensor, rest: tuple[Any, ...], times: list[int], zeros: list[int]
) -> tuple[tuple[int, ...], ...] | None:
    """Return what :class:`Repeats` takes, for a convolution of repeated values; None where it cannot take them once.

    Args:
        fn: The operation.
        weight: Its weight.
        rest: What it takes behind weight and bias.
        times: How often each value stands side by side, along each spatial dimension.
        zeros: Zeros around these, as ``torch.nn.functional.pad`` takes them.
    """
    spatial, transposed = CONVOLUTIONS.get(fn.overloadpacket, (0, False))
    settings: list[Any] = [*rest, *(1, 0, 1, 1)[len(rest) :]]
    if transposed or len(times) != spatial or len(zeros) > 2 * spatial or settings[3] != 1:
        return None
    steps, own, dilation = ([*size] if len(size) > 1 else [*size] * spatial for size in map(sizes, settings[:3]))
    window = tuple(weight.shape[2:])
    if {*steps, *dilation} != {1} or not all(type(size) is int for size in (*own, *window)):  # known before it runs
        return None
    zeros = zeros + [0] * (2 * spatial - len(zeros))  # from the last dimension on
    before = tuple(zeros[-2 - 2 * i] + own[i] for i in range(spatial))
    after = tuple(zeros[-1 - 2 * i] + own[i] for i in range(spatial))
    return (tuple(times), before, after) if Repeats(tuple(times), before, after).fits(window) else None
