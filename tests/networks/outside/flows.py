"""Normalizing flows of zuko, nflows and normflows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from zoo import Case, Inputs, real

from outside.case import Call, network, of


def density(model: Any, x: Tensor) -> Any:
    """The logarithm of a flow's density, which is what a flow is trained by."""
    return model.log_prob(x)


def zuko(name: str, **options: Any) -> Case:
    def build() -> nn.Module:
        return Call(getattr(of("zuko.flows"), name)(3, **options), lambda flow, x: flow().log_prob(x))

    return network(name, build, real(4, 3), rel=1e-4)


HIDDEN = {"transforms": 2, "hidden_features": (6, 6)}
ZUKO = [
    zuko("MAF", **HIDDEN),
    zuko("NICE", **HIDDEN),
    zuko("RealNVP", **HIDDEN),
    zuko("NSF", bins=4, **HIDDEN),
    zuko("SOSPF", **HIDDEN),
    zuko("NAF", transforms=1, hidden_features=(6,)),
    zuko("BPF", **HIDDEN),
    zuko("GMM", components=2),
]


def nflows(name: str, transform: Callable[[Any], Any]) -> Case:
    def build() -> nn.Module:
        layers = transform(of("nflows.transforms"))
        flow = of("nflows.flows").Flow(layers, of("nflows.distributions").StandardNormal([4]))
        return Call(flow, density)

    return network(name, build, real(4, 4), rel=1e-4)


def _net(inputs: int, outputs: int) -> nn.Module:
    made: nn.Module = of("nflows.nn.nets").ResidualNet(inputs, outputs, hidden_features=6, num_blocks=1)
    return made


NFLOWS = [
    nflows("masked affine autoregressive", lambda t: t.MaskedAffineAutoregressiveTransform(4, 6)),
    nflows("affine coupling", lambda t: t.AffineCouplingTransform(torch.tensor([1, 0, 1, 0]), _net)),
    nflows("additive coupling", lambda t: t.AdditiveCouplingTransform(torch.tensor([1, 0, 1, 0]), _net)),
    nflows(
        "rational quadratic coupling",
        lambda t: t.PiecewiseRationalQuadraticCouplingTransform(
            torch.tensor([1, 0, 1, 0]), _net, num_bins=4, tails="linear", tail_bound=3.0
        ),
    ),
    nflows("LU linear", lambda t: t.LULinear(4, identity_init=False)),
    nflows("batch norm and permutation", lambda t: t.CompositeTransform([t.BatchNorm(4), t.RandomPermutation(4)])),
    nflows("act norm", lambda t: t.ActNorm(4)),
]


def normflows(name: str, layers: Callable[[Any], list[Any]], inputs: Callable[[], Inputs] | None = None) -> Case:
    def build() -> nn.Module:
        nf = of("normflows")
        return _begun(Call(nf.NormalizingFlow(nf.distributions.DiagGaussian(4), layers(nf)), density), 4)

    return network(name, build, inputs or real(4, 4), rel=1e-4)


def _glow() -> nn.Module:
    return _begun(Call(of("normflows").flows.GlowBlock(8, 6), lambda block, z: block.inverse(z)), 8, 4, 4)


def _begun(model: nn.Module, *shape: int) -> nn.Module:
    """Return a model that has seen a batch, by which layers such as act norm set their weights in the first call."""
    with torch.no_grad():
        model(torch.randn(16, *shape))
    return model


def _mlp(nf: Any) -> Any:
    return nf.nets.MLP([2, 6, 4], init_zeros=False)


NORMFLOWS = [
    normflows("RealNVP", lambda nf: [nf.flows.AffineCouplingBlock(_mlp(nf)), nf.flows.Permute(4, mode="swap")]),
    normflows(
        "masked affine",
        lambda nf: [
            nf.flows.MaskedAffineFlow(torch.tensor([1.0, 0, 1, 0]), nf.nets.MLP([4, 6, 4]), nf.nets.MLP([4, 6, 4]))
        ],
    ),
    normflows("planar", lambda nf: [nf.flows.Planar((4,), act="leaky_relu")]),
    normflows("coupled rational quadratic spline", lambda nf: [nf.flows.CoupledRationalQuadraticSpline(4, 1, 6)]),
    normflows(
        "autoregressive rational quadratic spline", lambda nf: [nf.flows.AutoregressiveRationalQuadraticSpline(4, 1, 6)]
    ),
    normflows("act norm, LU permute", lambda nf: [nf.flows.ActNorm(4), nf.flows.LULinearPermute(4)]),
    network("Glow block", _glow, real(2, 8, 4, 4), rel=1e-4),
]
