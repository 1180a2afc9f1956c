"""Networks of every kind, small, with example inputs: what the library must bound without a single edit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from intervalnn import models

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A network and how to call it.

    Attributes:
        name: What it is.
        model: Builds it, in eval mode, with weights that depend on torch's seed alone.
        inputs: Makes the arguments of one call.
        resized: Makes others, of other sizes, that must not need a new capture.
        bitwise: Whether the point is the model's own output bit for bit; else to rounding.
        rel: Size of the gaps relative to the weights.
        slow: Whether it takes more than about a second.
    """

    name: str
    model: Callable[[], nn.Module]
    inputs: Callable[[], Inputs]
    resized: Callable[[], Inputs] | None = None
    bitwise: bool = True
    rel: float = 1e-3
    slow: bool = False

    def __str__(self) -> str:
        return self.name

    def build(self, dtype: torch.dtype = torch.float32, seed: int = 0) -> nn.Module:
        """Return the model, with norm statistics and biases away from their initial values."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = self.model().eval()
            for parameter in model.parameters():
                if not parameter.any():
                    nn.init.uniform_(parameter, -0.1, 0.1)
            for buffer in model.buffers():
                if buffer.is_floating_point() and buffer.dim() == 1 and (buffer == 1).all():
                    buffer.copy_(0.5 + torch.rand_like(buffer))  # running variances
        return model._apply(lambda t: t.to(_like(t, dtype)))

    def call(self, dtype: torch.dtype = torch.float32, *, resized: bool = False, seed: int = 1) -> Inputs:
        """Return arguments for one call."""
        make = self.resized if resized else self.inputs
        assert make is not None
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            made = make()

        def convert(x: Any) -> Any:
            return x.to(_like(x, dtype)) if isinstance(x, Tensor) else x

        converted: Inputs = pytree.tree_map(convert, made)
        return converted


def _like(x: Tensor, dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that takes the place of that of ``x``."""
    if x.is_complex():
        return dtype.to_complex()
    return dtype if x.is_floating_point() else x.dtype


def real(*shape: int) -> Callable[[], Inputs]:
    """One tensor of normal numbers."""
    return lambda: ((torch.randn(*shape),), {})


def ids(*shape: int) -> Callable[[], Inputs]:
    """One tensor of token numbers."""
    return lambda: ((torch.randint(0, 11, shape),), {})


# --- plain and convolutional ---


def mlp(activation: type[nn.Module]) -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), activation(), nn.Linear(8, 8), activation(), nn.Linear(8, 3))


def activations() -> nn.Module:
    kinds = [
        nn.Tanh(), nn.ELU(), nn.CELU(), nn.SELU(), nn.Softplus(), nn.LeakyReLU(0.2), nn.RReLU(), nn.PReLU(),
        nn.Hardswish(), nn.Hardtanh(), nn.Hardsigmoid(), nn.Mish(), nn.ReLU6(), nn.LogSigmoid(), nn.Softsign(),
        nn.Tanhshrink(), nn.Sigmoid(), nn.Softshrink(0.1), nn.Hardshrink(0.1), nn.Softmin(-1), nn.LogSoftmax(-1),
    ]  # fmt: skip
    return nn.Sequential(*(module for kind in kinds for module in (nn.Linear(4, 4), kind)))


class TransposedUNet(nn.Module):
    """Max-pool down, transposed convolution up, concatenation, batch norm, in-place ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = self.block(1, 4), self.block(4, 8)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.last = nn.Sequential(self.block(8, 4), nn.Conv2d(4, 1, 1))

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True), nn.Dropout(0.5)
        )

    def forward(self, x: Tensor) -> Tensor:
        a = self.first(x)
        b = self.second(F.max_pool2d(a, 2))
        return self.last(torch.cat((a, self.up(b)), 1))


class BilinearUNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
        self.down = nn.Sequential(nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.GroupNorm(4, 8), nn.SiLU())
        self.last = nn.Conv2d(12, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.first(x)
        b = F.interpolate(self.down(a), scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.last(torch.cat((a, b), 1))


class ResidualBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        h = self.bn1(self.conv1(x)).relu_()
        h = self.bn2(self.conv2(h))
        h += x
        return h.relu_()


def resnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 7, stride=2, padding=3), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1), ResidualBlock(4), ResidualBlock(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(4, 3),
    )  # fmt: skip


class DenseNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(2 + 2 * i), nn.ReLU(), nn.Conv2d(2 + 2 * i, 2, 3, padding=1)) for i in range(3)
        )
        self.head = nn.Sequential(nn.BatchNorm2d(8), nn.AvgPool2d(2), nn.Conv2d(8, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        return self.head(torch.cat(features, 1))


def net_3d() -> nn.Module:
    return nn.Sequential(
        nn.Conv3d(1, 3, 3, padding=1), nn.InstanceNorm3d(3, affine=True), nn.LeakyReLU(0.1), nn.MaxPool3d(2),
        nn.Conv3d(3, 4, 3, padding=1), nn.ReLU(), nn.Upsample(scale_factor=2, mode="trilinear"), nn.Conv3d(4, 1, 1),
    )  # fmt: skip


def odd_convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(4, 8, 3, padding=2, dilation=2), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, groups=4), nn.Tanh(),
        nn.Conv2d(8, 8, 3, padding="same", groups=8, padding_mode="reflect"), nn.ReLU(),
        nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1, groups=2), nn.ELU(),
        nn.Conv2d(6, 2, (1, 3), padding=(0, 1), padding_mode="circular"), nn.PReLU(2), nn.Conv2d(2, 1, 1),
    )  # fmt: skip


class WaveNet(nn.Module):
    """Gated dilated convolutions along one axis, with skips and causal padding."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 4, 1)
        self.filters = nn.ModuleList(nn.Conv1d(4, 8, 2, dilation=2**i) for i in range(3))
        self.mixers = nn.ModuleList(nn.Conv1d(4, 4, 1) for _ in range(3))
        self.last = nn.Conv1d(4, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        h, skips = self.first(x), torch.zeros(())
        for i, (conv, mix) in enumerate(zip(self.filters, self.mixers, strict=True)):
            value, gate = conv(F.pad(h, (2**i, 0))).chunk(2, 1)
            out = mix(torch.tanh(value) * torch.sigmoid(gate))
            h, skips = h + out, skips.to(out) + out
        return self.last(F.relu(skips))


class SpectralNet(nn.Module):
    """A Fourier neural operator: a product in frequency with complex weights, beside a convolution."""

    def __init__(self, *, complex_weight: bool = True) -> None:
        super().__init__()
        self.lift, self.local, self.head = nn.Conv1d(1, 4, 1), nn.Conv1d(4, 4, 1), nn.Conv1d(4, 1, 1)
        scale, self.modes = 0.2, 5
        weight = scale * torch.randn(4, 4, self.modes, 2)
        self.complex_weight = complex_weight
        self.weight = nn.Parameter(torch.view_as_complex(weight) if complex_weight else weight)

    def forward(self, x: Tensor) -> Tensor:
        h = self.lift(x)
        weight = self.weight if self.complex_weight else torch.view_as_complex(self.weight)
        spectrum = torch.fft.rfft(h, dim=-1)
        low = torch.einsum("bik,iok->bok", spectrum[..., : self.modes], weight.to(spectrum.dtype))
        full = torch.zeros_like(spectrum)
        full[..., : self.modes] = low
        h = F.gelu(torch.fft.irfft(full, n=h.shape[-1], dim=-1) + self.local(h))
        return self.head(h)


class Gated(nn.Module):
    """Halves of one layer that do not lie side by side in memory, each through a function of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.out = nn.Linear(5, 34), nn.Linear(17, 3)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.wide(x).chunk(2, -1)
        return self.out(F.silu(a) * torch.tanh(b) + F.gelu(a[:, ::2]).sum() + torch.sin(b).exp())


class SuperResolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.Conv2d(6, 4, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(self.body(x), 2) + F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=True)


class DnCNN(nn.Module):
    """A denoiser that predicts the noise."""

    def __init__(self) -> None:
        super().__init__()
        self.noise = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(6, 6, 3, padding=1, bias=False),
            nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.Conv2d(6, 1, 3, padding=1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return x - self.noise(x)


class SqueezeExcitation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.squeeze = nn.Sequential(nn.Linear(8, 2), nn.ReLU(), nn.Linear(2, 8), nn.Sigmoid())
        self.head = nn.Conv2d(8, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = F.silu(self.conv(x))
        gate = self.squeeze(h.mean((2, 3)))
        return self.head(h * gate[:, :, None, None])


class ConvNeXtBlock(nn.Module):
    def __init__(self, channels: int = 6) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.wide, self.narrow = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(0.1 * torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        h = self.gamma * self.narrow(F.gelu(self.wide(h)))
        return x + h.permute(0, 3, 1, 2)


class Functional(nn.Module):
    """Weights held by hand and given to functional calls."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.3 * torch.randn(4, 2, 3, 3))
        self.bias = nn.Parameter(0.1 * torch.randn(4))
        self.scale = nn.Parameter(torch.tensor(0.7))
        self.table = nn.ParameterList([nn.Parameter(torch.randn(4, 1, 1)), nn.Parameter(torch.randn(4))])
        self.register_buffer("mean", torch.randn(4, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        h = F.leaky_relu(F.conv2d(x, self.weight, self.bias, padding=1) - self.mean, 0.1)
        h = self.scale * h.clamp(max=2.0) * self.table[0]
        return F.linear(h.permute(0, 2, 3, 1), torch.diag(self.table[1])).abs().sqrt() / (1 + self.scale**2)


# --- sequences and attention ---


def encoder(**options: Any) -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


class Attention(nn.Module):
    """Attention by hand, in three spellings."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        if self.kind == "sdpa":
            h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif self.kind == "einsum":
            scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
            h = torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v)
        else:
            scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
            mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            h = F.softmax(scores.masked_fill(mask, -torch.inf), dim=-1) @ v
        return self.out(h.transpose(1, 2).reshape(batch, length, width))


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module], **options: Any) -> None:
        super().__init__()
        self.cell = kind(3, 4, batch_first=True, **options)
        self.head = nn.LazyLinear(2)
        self.head(self.cell(torch.randn(1, 2, 3))[0])

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0])


class LanguageModel(nn.Module):
    """Tokens, a learned position, one layer, and a head tied to the embedding."""

    def __init__(self, *, tied: bool = True) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 8, padding_idx=0)
        self.position = nn.Parameter(0.1 * torch.randn(16, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.head = nn.Linear(8, 11, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        h = self.tokens(ids) + self.position[: ids.shape[1]]
        return self.head(self.layer(h)).log_softmax(-1)


class Mixer(nn.Module):
    def __init__(self, tokens: int = 4, width: int = 6) -> None:
        super().__init__()
        self.patch = nn.Conv2d(1, width, 4, stride=4)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.over_tokens = nn.Sequential(nn.Linear(tokens, 8), nn.GELU(), nn.Linear(8, tokens))
        self.over_channels = nn.Sequential(nn.Linear(width, 8), nn.GELU(), nn.Linear(8, width))

    def forward(self, x: Tensor) -> Tensor:
        h = self.patch(x).flatten(2).mT
        h = h + self.over_tokens(self.norm1(h).mT).mT
        return (h + self.over_channels(self.norm2(h))).mean(1)


class VisionTransformer(nn.Module):
    def __init__(self, tokens: int = 4) -> None:
        super().__init__()
        self.patch = nn.Conv2d(1, 8, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.position = nn.Parameter(0.02 * torch.randn(1, tokens + 1, 8))
        self.layers = encoder(norm_first=True, activation="gelu", dropout=0.1)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat((self.token.expand(x.shape[0], -1, -1), h), 1) + self.position
        return self.head(self.layers(h)[:, 0])


# --- weights that are computed ---


def weight_norms() -> nn.Module:
    return nn.Sequential(
        parametrizations.weight_norm(nn.Conv1d(2, 4, 3)), nn.ReLU(), parametrizations.weight_norm(nn.Conv1d(4, 1, 3))
    )


def old_weight_norms() -> nn.Module:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 6)), nn.Tanh(), nn.utils.weight_norm(nn.Linear(6, 2)))


def spectral_norms() -> nn.Module:
    return nn.Sequential(
        parametrizations.spectral_norm(nn.Linear(4, 6)), nn.ReLU(), parametrizations.spectral_norm(nn.Linear(6, 2))
    )


class Tied(nn.Module):
    """An autoencoder whose decoder is the transpose of its encoder, and one layer that runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.mix = nn.Linear(6, 4), nn.Linear(4, 4)
        self.again = self.mix
        self.decode = nn.Linear(4, 6)
        self.decode.weight = nn.Parameter(torch.randn(6, 4))

    def forward(self, x: Tensor) -> Tensor:
        h = self.again(F.relu(self.mix(F.relu(self.encode(x)))))
        return F.linear(h, self.encode.weight.t(), self.decode.bias) + self.decode(h)


# --- what goes in and what comes out ---


class SeveralInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 5), nn.Linear(3, 5)

    def forward(self, x: Tensor, others: list[Tensor], *, mask: Tensor | None = None, gain: float = 1.0) -> Tensor:
        h = self.a(x) + gain * sum(self.b(other) for other in others)
        return h if mask is None else torch.where(mask, h, 0.5 * h)


@dataclass
class Answer:
    value: Tensor
    extra: dict[str, Any] = field(default_factory=dict)


torch.export.register_dataclass(Answer, serialized_type_name="tests.networks.zoo.Answer")


class Nested(nn.Module):
    """Returns a structure: tuple, list, dict, a dataclass, an integer tensor, a number and None."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Any:
        h = self.a(x)
        y = self.b(F.relu(h))
        index = torch.arange(x.shape[-1])
        return {"hidden": [h, (y, y.sum(-1))], "answer": Answer(y, {"index": index}), "input": x, "n": 3, "none": None}


# --- writes in place, and aliases (BOUNDS.md 2.1) ---


class Discarded(nn.Module):
    """An in-place call whose result is thrown away."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.a(x)
        F.relu(h, inplace=True)
        return self.b(h)


class UsedAgain(Discarded):
    """An in-place module whose input is used again."""

    def __init__(self) -> None:
        super().__init__()
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        h = self.a(x)
        y = self.act(h)
        return self.b(h + y)


class ThroughView(Discarded):
    """A write through a view."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.a(x)
        v = h[:, :4]
        v.mul_(-1)
        return self.b(h)


class ItemAssigned(Discarded):
    """A part set to zero, another to a computed value."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.a(x)
        h[:, :4] = 0
        h[:, 5] = h[:, 6] * 2
        h[:, [7, 4]] += 1.0
        return self.b(h)


class IntoBuffer(Discarded):
    """A sum written into a tensor that was made before."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.a(x)
        buffer = torch.empty_like(h)
        torch.add(h, h, out=buffer)
        return self.b(buffer)


class _Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.tanh(F.softplus(x))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * torch.sigmoid(x)


class OwnFunction(Discarded):
    """A custom ``autograd.Function``."""

    def forward(self, x: Tensor) -> Tensor:
        return self.b(_Swish.apply(self.a(x)))


ZOO = [
    Case("MLP, ReLU", lambda: mlp(nn.ReLU), real(6, 5), real(9, 5)),
    Case("MLP, GELU", lambda: mlp(nn.GELU), real(6, 5), real(9, 5)),
    Case("MLP, SiLU", lambda: mlp(nn.SiLU), real(6, 5), real(9, 5), slow=True),
    Case("20 activations", activations, real(6, 4), real(3, 4), bitwise=False, rel=1e-4),
    Case("U-Net, transposed convolution, batch norm", TransposedUNet, real(2, 1, 12, 8), real(3, 1, 8, 16)),
    Case("U-Net of the paper", lambda: models.UNet(4), real(2, 1, 32, 48), real(3, 1, 48, 32), slow=True, rel=1e-8),
    Case("DeconvNet of the paper", lambda: models.DeconvNet((4, 4, 8, 8, 8)), real(3, 1, 20), real(2, 1, 33)),
    Case("U-Net, bilinear, group norm", BilinearUNet, real(2, 1, 8, 12), real(3, 1, 12, 8)),
    Case("ResNet, batch norm", resnet, real(2, 3, 16, 24), real(3, 3, 24, 16)),
    Case("DenseNet", DenseNet, real(2, 2, 8, 6), real(3, 2, 6, 8), slow=True),
    Case("3D net, instance norm, trilinear", net_3d, real(2, 1, 4, 6, 4), real(3, 1, 6, 4, 8)),
    Case("dilated, grouped and depthwise convolutions", odd_convolutions, real(2, 4, 8, 6), real(3, 4, 6, 10)),
    Case("WaveNet", WaveNet, real(2, 1, 16), real(3, 1, 25)),
    Case("Fourier neural operator, complex weights", SpectralNet, real(2, 1, 16), real(3, 1, 16)),
    Case(
        "Fourier neural operator, real weights", lambda: SpectralNet(complex_weight=False), real(2, 1, 16),
        real(3, 1, 16), slow=True),
    Case("super-resolution, pixel shuffle, bicubic", SuperResolution, real(2, 1, 6, 8), real(3, 1, 8, 6)),
    Case("DnCNN, learned residual", DnCNN, real(2, 1, 8, 6), real(3, 1, 6, 8)),
    Case("gates on strided halves", Gated, real(3, 5), real(4, 5)),
    Case("squeeze and excitation", SqueezeExcitation, real(2, 3, 6, 6), real(3, 3, 4, 8), slow=True),
    Case("ConvNeXt block", ConvNeXtBlock, real(2, 6, 8, 8), real(3, 6, 7, 9)),
    Case("functional calls with own weights", Functional, real(2, 2, 5, 6), real(3, 2, 6, 5)),
    Case("transformer encoder, ReLU", encoder, real(2, 5, 8), real(3, 7, 8), bitwise=False, rel=1e-5),
    Case(
        "transformer encoder, GELU, norm first", lambda: encoder(activation="gelu", norm_first=True), real(2, 5, 8),
        real(3, 7, 8), bitwise=False, rel=1e-5, slow=True),
    Case(
        "multi-head attention, cross", lambda: nn.MultiheadAttention(8, 2, batch_first=True, kdim=6, vdim=4),
        lambda: ((torch.randn(2, 3, 8), torch.randn(2, 5, 6), torch.randn(2, 5, 4)), {}), bitwise=False, slow=True),
    Case("attention by the fused kernel", lambda: Attention("sdpa"), real(2, 5, 8), real(3, 7, 8)),
    Case("attention by einsum", lambda: Attention("einsum"), real(2, 5, 8), real(3, 7, 8), slow=True),
    Case("attention by matmul and softmax", lambda: Attention("matmul"), real(2, 5, 8), real(3, 7, 8), slow=True),
    Case("LSTM, two layers, both ways", lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True), real(2, 4, 3),
         real(3, 4, 3), bitwise=False, slow=True),
    Case("GRU", lambda: Recurrent(nn.GRU), real(2, 4, 3), real(3, 4, 3), bitwise=False, slow=True),
    Case("RNN", lambda: Recurrent(nn.RNN), real(2, 4, 3), real(3, 4, 3), slow=True),
    Case("language model, tied head", LanguageModel, ids(2, 5), ids(3, 7), bitwise=False, rel=1e-4),
    Case("MLP-Mixer", Mixer, real(2, 1, 8, 8), real(3, 1, 8, 8), bitwise=False, slow=True),
    Case("vision transformer", VisionTransformer, real(2, 1, 8, 8), real(3, 1, 8, 8), bitwise=False, rel=1e-6,
         slow=True),
    Case("weight norm", weight_norms, real(2, 2, 9), real(3, 2, 12)),
    Case("weight norm, old style", old_weight_norms, real(3, 4), real(5, 4)),
    Case("spectral norm", spectral_norms, real(3, 4), real(5, 4)),
    Case("tied weights, a layer that runs twice", Tied, real(3, 6), real(5, 6)),
    Case(
        "several inputs, by keyword, in a list", SeveralInputs,
        lambda: ((torch.randn(3, 4), [torch.randn(3, 3), torch.randn(3, 3)]),
                 {"mask": torch.randn(3, 5) > 0, "gain": 0.5}),
    ),
    Case("nested outputs", Nested, real(3, 4), real(5, 4)),
    Case("in-place result discarded", Discarded, real(3, 4), real(5, 4)),
    Case("in-place module whose input is used again", UsedAgain, real(3, 4), real(5, 4)),
    Case("write through a view", ThroughView, real(3, 4), real(5, 4)),
    Case("item assignment", ItemAssigned, real(3, 4), real(5, 4)),
    Case("out= into a buffer", IntoBuffer, real(3, 4), real(5, 4)),
    Case("custom autograd.Function", OwnFunction, real(3, 4), real(5, 4)),
]  # fmt: skip
