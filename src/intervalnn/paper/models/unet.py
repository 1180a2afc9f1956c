"""The U-Net of the paper's CT experiment (Sec. 5)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["UNet"]


def _two_convs(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU()
    )


class _Up(nn.Module):
    """Double the size, join the other side's features, and mix them."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 2)
        self.dropout = nn.Dropout(dropout)
        self.mix = _two_convs(2 * outputs, outputs)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        x = F.interpolate(x, scale_factor=2.0, mode="nearest")
        x = F.relu(self.conv(F.pad(x, (0, 1, 0, 1))))  # keeps the size, as "same" padding does
        mixed: Tensor = self.mix(self.dropout(torch.cat((skip, x), 1)))
        return mixed


class UNet(nn.Module):
    """A U-Net without norms or residual: 23 convolutions, 31,030,593 parameters at ``base=64``.

    "The last twelve layers" of the paper counts merges, dropouts and up-samplings; they are
    the last seven convolutions, ``layers=7``.

    Args:
        base: Channels of the first level; each of the four below it has twice as many.
        channels: Channels of the input.
        out_channels: Channels of the output.
        dropout: Probability of the dropout behind each change of size (Sec. 5).
    """

    def __init__(self, base: int = 64, *, channels: int = 1, out_channels: int = 1, dropout: float = 0.7) -> None:
        super().__init__()
        widths = [base * 2**level for level in range(5)]
        self.first = _two_convs(channels, widths[0])
        self.down = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), nn.Dropout(dropout), _two_convs(a, b)) for a, b in pairwise(widths)
        )
        self.up = nn.ModuleList(_Up(b, a, dropout) for a, b in reversed(list(pairwise(widths))))
        self.last = nn.Conv2d(base, out_channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Map images ``(batch, channels, height, width)``, with sizes that are multiples of 16."""
        features = [self.first(x)]
        for down in self.down:
            features.append(down(features[-1]))
        x = features.pop()
        for up, skip in zip(self.up, reversed(features), strict=True):
            x = up(x, skip)
        result: Tensor = self.last(x)
        return result
