"""Random networks over all kinds of layers, each from a seed: what the search for violations attacks."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CHANNELS = 8  # of every value inside, so that any layer can follow any other
SIZE = 8  # rows and columns of images, length of sequences


class Residual(nn.Module):
    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Concatenated(nn.Module):
    """Join what a layer makes of its input with the input, and mix both."""

    def __init__(self, body: nn.Module, mix: nn.Module, dim: int) -> None:
        super().__init__()
        self.body, self.mix, self.dim = body, mix, dim

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(torch.cat((x, self.body(x)), self.dim))


class Gated(nn.Module):
    def __init__(self, body: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        self.body, self.gate = body, gate

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) * torch.sigmoid(self.gate(x))


class SqueezeExcite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(CHANNELS, 2, 1), nn.Conv2d(2, CHANNELS, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.up(F.relu(self.down(x.mean((2, 3), keepdim=True)))))


class Attention(nn.Module):
    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.qkv, self.out, self.causal = nn.Linear(CHANNELS, 3 * CHANNELS), nn.Linear(CHANNELS, CHANNELS), causal

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, CHANNELS // 2)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class Apply(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def _spectral(x: Tensor) -> Tensor:
    return torch.fft.irfft(torch.fft.rfft(x, dim=1), n=SIZE, dim=1)


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    name.lower(): getattr(nn, name)
    for name in (
        "ReLU", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Softplus", "Softsign",
        "Hardswish", "Hardtanh", "Hardsigmoid", "LogSigmoid", "Tanhshrink", "Softshrink", "ReLU6", "PReLU",
    )
} | {
    "abs": lambda: Apply(torch.abs),
    "square": lambda: Apply(lambda x: 0.3 * x.square()),
    "sin": lambda: Apply(torch.sin),
    "exp": lambda: Apply(lambda x: torch.exp(0.3 * x)),
    "sqrt": lambda: Apply(lambda x: torch.sqrt(1 + x.square())),
    "divide": lambda: Apply(lambda x: x / (1 + x.abs())),
    "softmax": lambda: nn.Softmax(1),
    "log_softmax": lambda: nn.LogSoftmax(1),
    "clamp": lambda: Apply(lambda x: x.clamp(-0.5, 0.7)),
    "maximum": lambda: Apply(lambda x: torch.maximum(x, x.flip(1))),
    "product": lambda: Apply(lambda x: x * x.roll(1, 1)),
}  # fmt: skip

IMAGE: dict[str, Callable[[], nn.Module]] = {
    "conv": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
    "conv 1x1": lambda: nn.Conv2d(CHANNELS, CHANNELS, 1),
    "grouped conv": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=4),
    "dilated conv": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=2, dilation=2, padding_mode="circular"),
    "transposed conv": lambda: nn.Sequential(
        nn.Conv2d(CHANNELS, CHANNELS, 2, stride=2), nn.ConvTranspose2d(CHANNELS, CHANNELS, 2, stride=2)
    ),
    "batch norm": lambda: nn.BatchNorm2d(CHANNELS),
    "group norm": lambda: nn.GroupNorm(2, CHANNELS),
    "instance norm": lambda: nn.InstanceNorm2d(CHANNELS, affine=True),
    "max pool": lambda: nn.MaxPool2d(3, stride=1, padding=1),
    "average pool": lambda: nn.AvgPool2d(3, stride=1, padding=1),
    "upsampled conv": lambda: nn.Sequential(
        nn.Upsample(scale_factor=2), nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.MaxPool2d(2)
    ),
    "up and down": lambda: nn.Sequential(nn.Upsample(scale_factor=2), nn.MaxPool2d(2)),
    "bilinear up": lambda: nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.AvgPool2d(2)),
    "pixel shuffle": lambda: nn.Sequential(nn.Conv2d(CHANNELS, 4 * CHANNELS, 1), nn.PixelShuffle(2), nn.AvgPool2d(2)),
    "squeeze and excite": SqueezeExcite,
    "channel mean": lambda: Apply(lambda x: x - x.mean(1, keepdim=True)),
    "normalize": lambda: Apply(lambda x: F.normalize(x, dim=1)),
}
SEQUENCE: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(CHANNELS, CHANNELS),
    "layer norm": lambda: nn.LayerNorm(CHANNELS),
    "rms norm": lambda: nn.RMSNorm(CHANNELS),
    "attention": lambda: Attention(causal=False),
    "causal attention": lambda: Attention(causal=True),
    "glu": lambda: nn.Sequential(nn.Linear(CHANNELS, 2 * CHANNELS), nn.GLU()),
    "mixing": lambda: Apply(lambda x: (x.transpose(1, 2) @ x) / SIZE @ torch.eye(CHANNELS, SIZE).to(x)),
    "fourier": lambda: Apply(_spectral),
    "cumulative sum": lambda: Apply(lambda x: 0.3 * x.cumsum(1)),
    "sort": lambda: Apply(lambda x: x.sort(1).values),
    "standardise": lambda: Apply(lambda x: (x - x.mean(1, keepdim=True)) / (1 + x.var(1, keepdim=True)).sqrt()),
}


@dataclass(frozen=True)
class Architecture:
    """A random network.

    Attributes:
        model: The network, in eval mode, float64.
        x: An input.
        layers: Kinds of the layers between the first and the last.
    """

    model: nn.Module
    x: Tensor
    layers: tuple[str, ...]


def architecture(seed: int, depth: int) -> Architecture:
    """Return the network of a seed: a weight layer, ``depth`` layers of any kind, and a weight layer."""
    rng = random.Random(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        image = rng.random() < 0.5
        kinds = (IMAGE if image else SEQUENCE) | ACTIVATIONS
        names = rng.choices(list(kinds), k=depth)
        weight = IMAGE["conv"] if image else SEQUENCE["linear"]
        layers = [weight()]
        for name in names:
            layer = kinds[name]()
            how = rng.random()
            if depth > 1 and how < 0.2:
                layer = Residual(layer)
            elif depth > 1 and how < 0.3:
                mix = nn.Conv2d(2 * CHANNELS, CHANNELS, 1) if image else nn.Linear(2 * CHANNELS, CHANNELS)
                layer = Concatenated(layer, mix, 1 if image else 2)
            elif depth > 1 and how < 0.4:
                layer = Gated(layer, weight())
            layers.append(layer)
        layers.append(weight())
        model = nn.Sequential(*layers).double().eval()
        for buffer in model.buffers():
            if buffer.is_floating_point():
                buffer.add_(0.5 * torch.rand_like(buffer))  # statistics of norms
        shape = (2, CHANNELS, SIZE, SIZE) if image else (2, SIZE, CHANNELS)
        x = rng.choice((0.3, 1.0, 3.0)) * torch.randn(shape, dtype=torch.float64)
    return Architecture(model, x, tuple(names))
