"""Networks of segmentation-models-pytorch and of nnU-Net (dynamic-network-architectures)."""

from __future__ import annotations

from typing import Any

from torch import nn
from zoo import Case, real

from outside.case import image, network, of


def smp(name: str, encoder: str = "resnet18", size: int = 64, **options: Any) -> Case:
    def build() -> nn.Module:
        made: nn.Module = getattr(of("segmentation_models_pytorch"), name)(
            encoder, encoder_weights=None, classes=2, **options
        )
        return made

    return network(f"{name}, {encoder}", build, image(3, size, 1), rel=1e-7)


SMALL = {"decoder_channels": (16, 8, 8, 4, 4)}
SMP = [
    smp("Unet", **SMALL),
    smp("Unet", "timm-efficientnet-b0", **SMALL),
    smp("Unet", "mobilenet_v2", decoder_attention_type="scse", decoder_channels=(32, 32, 16, 16, 16)),
    smp("UnetPlusPlus", **SMALL),
    smp("FPN"),
    smp("Linknet"),
    smp("PSPNet"),
    smp("PAN", size=128),
    smp("MAnet", **SMALL),
    smp("DeepLabV3"),
    smp("DeepLabV3Plus"),
    smp("UPerNet"),
    smp("Segformer", "mit_b0"),
]


def nnunet(name: str, dims: int = 2, **options: Any) -> Case:
    plain = name.startswith("Plain")
    blocks = {"n_conv_per_stage" if plain else "n_blocks_per_stage": 1, "n_conv_per_stage_decoder": 1}
    conv = nn.Conv2d if dims == 2 else nn.Conv3d
    norm = nn.InstanceNorm2d if dims == 2 else nn.InstanceNorm3d
    settings: dict[str, Any] = {
        "input_channels": 1, "n_stages": 3, "features_per_stage": (4, 8, 8), "conv_op": conv, "kernel_sizes": 3,
        "strides": (1, 2, 2), "num_classes": 2, "conv_bias": True, "norm_op": norm, "norm_op_kwargs": {"affine": True},
        "nonlin": nn.LeakyReLU, "nonlin_kwargs": {"inplace": True},
    }  # fmt: skip
    label = f"{name}, {dims}D" + (", deep supervision" if options.get("deep_supervision") else "")
    return network(
        label,
        lambda: getattr(of("dynamic_network_architectures.architectures.unet"), name)(**settings, **blocks, **options),
        real(1, 1, *(16,) * dims),
    )


NNUNET = [
    nnunet("PlainConvUNet"),
    nnunet("PlainConvUNet", 3, deep_supervision=True),
    nnunet("ResidualEncoderUNet"),
    nnunet("ResidualEncoderUNet", 3, deep_supervision=True),
    nnunet("ResidualUNet"),
]
