"""Complex networks as their packages write them: layers of two real ones, complex layers, norms, gates, spectra."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from zoo import Case, Inputs


def complex_input(*shape: int):  # type: ignore[no-untyped-def]
    """One tensor of complex normal numbers."""

    def make() -> Inputs:
        return (torch.randn(*shape, dtype=torch.complex64),), {}

    return make


def real_input(*shape: int):  # type: ignore[no-untyped-def]
    """One tensor of normal numbers."""

    def make() -> Inputs:
        return (torch.randn(*shape),), {}

    return make


class PairConv(nn.Module):
    """A complex convolution as two real ones, joined by a complex unit."""

    def __init__(self, inputs: int, outputs: int, transposed: bool = False) -> None:
        super().__init__()
        kind = nn.ConvTranspose2d if transposed else nn.Conv2d
        self.re, self.im = kind(inputs, outputs, 3, padding=1), kind(inputs, outputs, 3, padding=1)

    def forward(self, z: Tensor) -> Tensor:
        re, im = self.re(z.real) - self.im(z.imag), self.re(z.imag) + self.im(z.real)
        return re.type(torch.complex64 if re.dtype == torch.float32 else torch.complex128) + 1j * im


class ComplexBatchNorm(nn.Module):
    """Whitens both parts with their running covariance, and turns the result by a matrix that is learned."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.4142, 1.4142, 0.1]).repeat(channels, 1))
        self.bias = nn.Parameter(torch.randn(channels, 2))
        self.register_buffer("mean", torch.randn(channels, dtype=torch.complex64))
        self.register_buffer("covar", torch.tensor([1.4142, 1.3, 0.2]).repeat(channels, 1))

    def forward(self, z: Tensor) -> Tensor:
        z = z - self.mean[None, :, None, None]
        crr, cii, cri = (self.covar[:, k] + (1e-5 if k < 2 else 0.0) for k in range(3))
        s = torch.sqrt(crr * cii - cri.pow(2))
        inverse = 1.0 / (s * torch.sqrt(cii + crr + 2 * s))
        rrr, rii, rri = ((v * inverse)[None, :, None, None] for v in (cii + s, crr + s, -cri))
        z = torch.complex(rrr * z.real + rri * z.imag, rii * z.imag + rri * z.real)
        w, b = (p[None, :, :, None, None] for p in (self.weight, self.bias))
        re = w[:, :, 0] * z.real + w[:, :, 2] * z.imag + b[:, :, 0]
        im = w[:, :, 2] * z.real + w[:, :, 1] * z.imag + b[:, :, 1]
        return torch.complex(re, im)


class PairNet(nn.Module):
    """Complex convolutions, batch norm and CReLU, and the moduli of the result."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = PairConv(1, 3), ComplexBatchNorm(3), PairConv(3, 2, transposed=True)

    def forward(self, z: Tensor) -> Tensor:
        z = self.norm(self.first(z))
        z = torch.complex(F.relu(z.real), F.relu(z.imag))
        return F.log_softmax(self.last(z).abs().mean((-1, -2)), 1)


class Layers(nn.Module):
    """Layers whose weights are complex, with the gates that complex networks have."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, padding=1, dtype=torch.complex64)
        self.up = nn.ConvTranspose1d(4, 3, 2, stride=2, dtype=torch.complex64)
        self.linear = nn.Linear(3, 3, dtype=torch.complex64)
        self.shift = nn.Parameter(torch.tensor([-0.1, 0.2, -0.3, 0.05]))

    def forward(self, z: Tensor) -> Tensor:
        z = self.conv(z)
        size = z.abs()
        z = F.relu(size + self.shift[:, None]) * z / (size + 0.1)  # modReLU
        z = self.up(z)
        z = 0.5 * (1 + torch.cos(z.angle())) * z  # cardioid
        z = self.linear(z.mT)
        return torch.tanh(z) / (2.0 + torch.exp(1j * z.real))


class ComplexAttention(nn.Module):
    """Attention whose scores are the sizes of complex products."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(3, 3, bias=False, dtype=torch.complex64) for _ in range(3))

    def forward(self, z: Tensor) -> Tensor:
        scores = torch.einsum("bid,bjd->bij", self.query(z), self.key(z).conj())
        weights = torch.softmax(scores.abs(), -1)
        return weights.to(z.dtype) @ self.value(z)


class Phases(nn.Module):
    """A spectrum with its phase kept and its size through a layer; by the short-time transform and back."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.mask = nn.Conv1d(1, 1, 3, padding=1), nn.Linear(5, 5)
        self.register_buffer("window", torch.hann_window(8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x[:, None])[:, 0]
        z = torch.stft(x, 8, 4, window=self.window, return_complex=True)
        size = torch.sigmoid(self.mask(z.abs().mT)).mT * z.abs()
        return torch.istft(torch.polar(size, z.angle()), 8, 4, window=self.window, length=x.shape[-1])


class Spectral2d(nn.Module):
    """A spectral convolution in two dimensions, with complex weights for either half of the frequencies."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([0.2 * torch.randn(2, 2, 2, 2, dtype=torch.complex64) for _ in range(2)])
        self.bias = nn.Parameter(torch.randn(2, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        z = torch.fft.rfft2(x, norm="forward")
        out = torch.zeros_like(z)
        out[..., :2, :2] = torch.einsum("bixy,ioxy->boxy", z[..., :2, :2], self.weights[0])
        out[..., -2:, :2] = torch.einsum("bixy,ioxy->boxy", z[..., -2:, :2], self.weights[1])
        return F.gelu(torch.fft.irfft2(out, s=x.shape[-2:], norm="forward") + self.bias)


class Rotations(nn.Module):
    """States turned and shrunk by complex numbers, as linear recurrent units and state spaces have them."""

    def __init__(self) -> None:
        super().__init__()
        self.size, self.turn = nn.Parameter(torch.tensor([0.1, 0.5])), nn.Parameter(torch.tensor([0.3, 1.0]))
        self.into = nn.Parameter(0.3 * torch.randn(2, 1, dtype=torch.complex64))
        self.out = nn.Parameter(0.3 * torch.randn(1, 2, dtype=torch.complex64))

    def forward(self, x: Tensor) -> Tensor:
        rate = torch.exp(torch.complex(-torch.exp(self.size), self.turn))
        powers = rate[:, None] ** torch.arange(4)
        kernel = torch.einsum("on,nt,ni->oit", self.out, powers, self.into).real
        step = (rate - 1) / torch.log(rate)
        return F.conv1d(F.pad(x, (3, 0)), kernel.flip(-1)) * step.abs().sum()


class Joining(nn.Module):
    """A layer and a product of what is joined before them, of an interval and a point."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 2, dtype=torch.complex64), nn.Linear(5, 2, dtype=torch.complex64)

    def forward(self, z: Tensor) -> Tensor:
        joined = torch.cat((z, self.first(z)), -1)
        return self.second(joined) + joined @ self.second.weight.mT


ZOO = [
    Case("complex convolutions of two real ones, batch norm, CReLU", PairNet, complex_input(2, 1, 4, 4)),
    Case("complex layers, modReLU, cardioid, quotients", Layers, complex_input(2, 2, 5)),
    Case("attention by sizes of complex products", ComplexAttention, complex_input(2, 4, 3)),
    Case("short-time spectra, sizes and phases", Phases, real_input(2, 16)),
    Case("spectral convolution in two dimensions", Spectral2d, real_input(2, 2, 6, 6)),
    Case("complex states of a linear recurrence", Rotations, real_input(2, 1, 6)),
    Case("complex layers of joined values", Joining, complex_input(2, 3)),
]
