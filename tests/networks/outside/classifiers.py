"""Networks of timm, torchvision and vit-pytorch."""

from __future__ import annotations

from typing import Any

from torch import nn
from zoo import Case

from outside.case import REL, image, network, of


def timm(name: str, size: int = 32, *, rel: float = REL, **options: Any) -> Case:
    def build() -> nn.Module:
        made: nn.Module = of("timm").create_model(name, pretrained=False, num_classes=3, **options)
        return made

    return network(name, build, image(3, size), rel=rel)


TINY = {"depths": (1, 1, 1, 1), "dims": (8, 8, 16, 16)}
VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 16, "depth": 1, "num_heads": 2}
TIMM = [
    timm("resnet10t"),
    timm("resnet18"),
    timm("seresnet18"),
    timm("resnetv2_50", layers=(1, 1, 1, 1), channels=(16, 16, 32, 32)),
    timm("convnext_atto", **TINY),
    timm("convnextv2_atto", **TINY),
    timm("efficientnet_b0"),
    timm("mobilenetv3_small_050"),
    timm("mobilenetv4_conv_small_050"),
    timm("regnetx_002"),
    timm("densenet121", growth_rate=4, block_config=(1, 1, 1, 1)),
    timm("vgg11_bn", rel=1e-7, mlp_ratio=0.01),
    timm("vit_tiny_patch16_224", **VIT),
    timm("deit3_small_patch16_224", **VIT),
    timm("beit_base_patch16_224", **VIT),
    timm("eva02_tiny_patch14_224", **VIT),
    timm("swin_tiny_patch4_window7_224", img_size=32, window_size=4, embed_dim=8, depths=(1, 1), num_heads=(1, 2)),
    timm("swinv2_tiny_window8_256", img_size=32, window_size=4, embed_dim=8, depths=(1, 1), num_heads=(1, 2)),
    timm("mixer_s32_224", img_size=32),
    timm("poolformer_s12", layers=(1, 1, 1, 1), embed_dims=(8, 8, 16, 16)),
    timm("maxvit_rmlp_pico_rw_256", 64, img_size=64),
    timm("coatnet_nano_rw_224", 64, img_size=64),
    timm("ghostnet_050"),
    timm("res2net50_14w_8s"),
    timm("nfnet_l0", depths=(1, 1, 1, 1), channels=(64, 64, 128, 128), group_size=8, num_features=128),
    timm("hardcorenas_a"),
    timm("efficientformer_l1", 224),
    timm("xcit_nano_12_p16_224", img_size=32, depth=1, embed_dim=16, num_heads=2),
    timm("cait_xxs24_224", img_size=32, embed_dim=16, depth=1, num_heads=2),
]


def torchvision(name: str, size: int = 32, **options: Any) -> Case:
    return network(
        name, lambda: getattr(of("torchvision.models"), name)(weights=None, **options), image(3, size, 1), rel=1e-7
    )


TORCHVISION = [
    torchvision("resnet18", num_classes=3),
    torchvision("squeezenet1_1", 64, num_classes=3),
    torchvision("shufflenet_v2_x0_5", num_classes=3),
    torchvision("mnasnet0_5", num_classes=3),
    torchvision("googlenet", 64, num_classes=3, init_weights=False),
]


def vit(module: str, name: str, size: int = 16, **options: Any) -> Case:
    shared = {"image_size": 16, "patch_size": 4, "num_classes": 3, "dim": 8, "depth": 1, "heads": 2, "mlp_dim": 16}
    given = options.pop("only", shared) | options
    return network(name, lambda: getattr(of(f"vit_pytorch.{module}"), name)(**given), image(3, size), rel=1e-4)


VIT_PYTORCH = [
    vit("vit", "ViT", dim_head=4),
    vit("simple_vit", "SimpleViT", dim_head=4),
    vit("deepvit", "DeepViT", dim_head=4),
    vit("cait", "CaiT", cls_depth=1, dim_head=4),
    vit(
        "t2t",
        "T2TViT",
        only={
            "image_size": 16,
            "num_classes": 3,
            "dim": 8,
            "depth": 1,
            "heads": 2,
            "mlp_dim": 16,
            "t2t_layers": ((3, 2), (3, 2)),
        },
    ),
    vit(
        "crossformer",
        "CrossFormer",
        64,
        only={
            "dim": (32, 32, 32, 32),
            "depth": (1, 1, 1, 1),
            "num_classes": 3,
            "global_window_size": (2, 2, 1, 1),
            "local_window_size": (2, 2, 1, 1),
            "cross_embed_kernel_sizes": ((4,), (2,), (2,), (2,)),
        },
    ),
    vit(
        "mobile_vit",
        "MobileViT",
        only={
            "image_size": (16, 16),
            "dims": [8, 8, 8],
            "num_classes": 3,
            "patch_size": (1, 1),
            "channels": [4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 16],
            "depths": (1, 1, 1),
        },
    ),
]
