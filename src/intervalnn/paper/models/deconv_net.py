"""The network of the paper's 1D deconvolution experiment (Sec. 4)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

__all__ = ["DeconvNet"]

CHANNELS = (16, 32, 64, 128, 256, 256, 256, 64, 32)  # Sec. 4; the last layer has one
DROPOUT = {4: 0.2, 5: 0.5, 6: 0.5}  # behind the fifth, sixth and seventh convolution


class DeconvNet(nn.Module):
    """Ten convolutions that keep the size of the signal, with three dropouts in the middle.

    Args:
        channels: Channels of all convolutions but the last.
        kernel: Size of their kernels; the last has size one.
    """

    def __init__(self, channels: Sequence[int] = CHANNELS, *, kernel: int = 5) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inputs = 1
        for i, outputs in enumerate(channels):
            layers += [nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2), nn.ReLU()]
            if i in DROPOUT:
                layers.append(nn.Dropout(DROPOUT[i]))
            inputs = outputs
        self.layers = nn.Sequential(*layers, nn.Conv1d(inputs, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Map signals ``(batch, 1, length)``."""
        result: Tensor = self.layers(x)
        return result
