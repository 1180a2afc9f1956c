"""Networks of deepinv and neuraloperator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from zoo import Case, Inputs, real

from outside.case import Call, image, network, of


def deepinv(name: str, inputs: Callable[[], Inputs], label: str = "", **options: Any) -> Case:
    return network(label or name, lambda: getattr(of("deepinv.models"), name)(**options), inputs)


def noisy(channels: int = 1, size: int = 16) -> Callable[[], Inputs]:
    """An image and the noise's deviation."""
    return lambda: ((torch.rand(1, channels, size, size), 0.1), {})


def unrolled() -> nn.Module:
    optim, dinv = of("deepinv.optim"), of("deepinv")
    net: nn.Module = dinv.unfolded.unfolded_builder(
        "PGD", params_algo={"stepsize": [1.0] * 2, "g_param": [0.1] * 2}, trainable_params=["stepsize", "g_param"],
        data_fidelity=optim.data_fidelity.L2(), max_iter=2,
        prior=optim.prior.PnP(dinv.models.DnCNN(1, 1, depth=3, nf=4, pretrained=None)),
    )  # fmt: skip
    return Call(net, lambda model, y: model(y, dinv.physics.Denoising()))


ONE = {"in_channels": 1, "out_channels": 1, "pretrained": None}
DEEPINV = [
    deepinv("UNet", noisy(1, 16), in_channels=1, out_channels=1, scales=2, channels_per_scale=(4, 8)),
    deepinv("DnCNN", noisy(), depth=3, nf=4, **ONE),
    deepinv("DRUNet", noisy(), nc=(4, 4, 8, 8), nb=1, **ONE),
    deepinv("GSDRUNet", noisy(), nc=(4, 4, 8, 8), nb=1, **ONE),
    deepinv("SCUNet", noisy(1, 64), in_nc=1, config=(1, 1, 1, 1, 1, 1, 1), dim=64, pretrained=None),
    deepinv(
        "SwinIR",
        noisy(1, 16),
        img_size=16,
        in_chans=1,
        embed_dim=8,
        depths=(1, 1),
        num_heads=(2, 2),
        window_size=4,
        pretrained=None,
        upsampler=None,
    ),
    deepinv(
        "Restormer",
        noisy(),
        in_channels=1,
        out_channels=1,
        dim=8,
        num_blocks=(1, 1, 1, 1),
        num_refinement_blocks=1,
        heads=(1, 1, 2, 2),
        pretrained=None,
    ),
    deepinv("FFDNet", noisy(), n_conv_layers=3, nf=4, img_channels=1, pretrained=None),
    deepinv("AutoEncoder", lambda: ((torch.rand(2, 1, 4, 4),), {}), dim_input=16, dim_mid=8, dim_hid=4),
    deepinv("ConvDecoder", lambda: ((torch.rand(1, 4, 4, 4),), {}), img_size=(1, 16, 16), layers=3, channels=4),
    deepinv("ICNN", image(1, 8, 1), in_channels=1, num_filters=4, num_layers=3),
    deepinv(
        "ICNN",
        image(1, 8, 1),
        "ICNN, weights of any sign",
        in_channels=1,
        num_filters=4,
        num_layers=3,
        pos_weights=False,
    ),
    network("unrolled proximal gradient", unrolled, lambda: ((torch.rand(1, 1, 8, 8),), {})),
]


def neuralop(name: str, label: str = "", **options: Any) -> Case:
    return network(label or name, lambda: getattr(of("neuralop.models"), name)(**options), real(1, 1, 16, 16), rel=1e-4)


FNO = {"n_modes": (4, 4), "in_channels": 1, "out_channels": 1, "hidden_channels": 4, "n_layers": 2}
UNO = {
    "in_channels": 1, "out_channels": 1, "hidden_channels": 4, "uno_out_channels": [4, 4, 4], "n_layers": 3,
    "uno_n_modes": [[4, 4]] * 3, "uno_scalings": [[1, 1]] * 3, "channel_mlp_skip": "linear",
}  # fmt: skip
NEURALOP = [
    neuralop("FNO", **FNO),
    neuralop("FNO", "FNO, group norm", norm="group_norm", **FNO),
    neuralop("FNO", "FNO, separable", separable=True, **FNO),
    neuralop("TFNO", factorization="tucker", rank=0.5, **FNO),
    neuralop("TFNO", "TFNO, CP", factorization="cp", rank=0.5, implementation="factorized", **FNO),
    neuralop("UNO", **UNO),
]
