"""Networks of MONAI, small; import this module only where MONAI is installed."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from monai.networks import nets
from torch import nn
from zoo import Case, real


def _ae(**options: Any) -> nn.Module:
    return nets.AutoEncoder(spatial_dims=2, in_channels=1, out_channels=1, channels=(2, 4), strides=(2, 2), **options)


def _quiet(make: Any) -> Any:
    """Some of MONAI's constructors warn about themselves."""

    def build() -> nn.Module:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model: nn.Module = make()
        return model

    return build


def _case(name: str, make: Any, shape: tuple[int, ...], *, rel: float = 1e-4, quick: bool = False) -> Case:
    return Case(name, _quiet(make), real(*shape), rel=rel, slow=not quick, bitwise=False)


def _diffusion() -> nn.Module:
    return nets.DiffusionModelUNet(
        spatial_dims=2, in_channels=1, out_channels=1, channels=(4, 8), attention_levels=(False, True),
        num_res_blocks=1, norm_num_groups=2, num_head_channels=4,
    )  # fmt: skip


MONAI = [
    _case("UNet, 2D", lambda: nets.UNet(2, 1, 1, (2, 4, 8), (2, 2), num_res_units=1), (2, 1, 16, 16), quick=True),
    _case("UNet, 3D", lambda: nets.UNet(3, 1, 2, (2, 4), (2,), num_res_units=1), (1, 1, 8, 8, 8)),
    _case("UNet, batch norm", lambda: nets.UNet(2, 1, 1, (2, 4), (2,), norm="batch", act="relu"), (2, 1, 8, 8)),
    _case("BasicUNet, 2D", lambda: nets.BasicUNet(2, 1, 1, (2, 2, 4, 4, 8, 2)), (1, 1, 32, 32), rel=1e-6),
    _case("BasicUNet, 3D, bilinear", lambda: nets.BasicUNet(3, 1, 1, (2, 2, 2, 2, 2, 2), upsample="nontrainable"),
          (1, 1, 32, 16, 16), rel=1e-6),
    _case("BasicUNet++", lambda: nets.BasicUNetPlusPlus(2, 1, 1, (2, 2, 4, 4, 8, 2)), (1, 1, 32, 32), rel=1e-6),
    _case("AttentionUnet", lambda: nets.AttentionUnet(2, 1, 1, (2, 4, 8), (2, 2)), (2, 1, 16, 16)),
    _case("SegResNet", lambda: nets.SegResNet(2, 8, 1, 1, blocks_down=(1, 1), blocks_up=(1,)), (2, 1, 8, 8)),
    _case("SegResNet, 3D", lambda: nets.SegResNet(3, 8, 1, 1, blocks_down=(1, 1), blocks_up=(1,)), (1, 1, 8, 8, 8)),
    _case("SegResNetDS", lambda: nets.SegResNetDS(2, 8, 1, 1, blocks_down=(1, 1), norm="batch"), (2, 1, 16, 16)),
    _case("DynUNet", lambda: nets.DynUNet(2, 1, 1, [3, 3, 3], [1, 2, 2], [2, 2], filters=[2, 4, 8]), (2, 1, 16, 16)),
    _case("DynUNet, 3D, residual", lambda: nets.DynUNet(3, 1, 1, [3, 3, 3], [1, 2, 2], [2, 2], filters=[2, 4, 4],
                                                          res_block=True), (1, 1, 8, 8, 8)),
    _case("VNet, 2D", lambda: nets.VNet(2, 1, 1), (1, 1, 32, 32), rel=1e-8),
    _case("DenseNet", lambda: nets.DenseNet(2, 1, 3, init_features=4, growth_rate=2, block_config=(2, 2), bn_size=2),
          (2, 1, 32, 32)),
    _case("DenseNet, 3D", lambda: nets.DenseNet(3, 1, 3, init_features=4, growth_rate=2, block_config=(2,), bn_size=2),
          (1, 1, 16, 16, 16)),
    _case("ResNet-10", lambda: nets.ResNet("basic", [1, 1, 1, 1], [2, 4, 4, 8], spatial_dims=2, n_input_channels=1,
                                           num_classes=3), (2, 1, 32, 32), rel=1e-5),
    _case("SEResNet-50", lambda: nets.SEResNet50(spatial_dims=2, in_channels=1, num_classes=2, layers=(1, 1, 1, 1)),
          (1, 1, 32, 32), rel=1e-8),
    _case("UNETR", lambda: nets.UNETR(1, 1, (16, 16), feature_size=2, hidden_size=8, mlp_dim=16, num_heads=2,
                                      spatial_dims=2), (1, 1, 16, 16), rel=1e-7),
    _case("SwinUNETR", lambda: nets.SwinUNETR(1, 1, patch_size=2, depths=(1, 1, 1, 1), num_heads=(1, 1, 1, 1),
                                              window_size=2, feature_size=12, norm_name="instance", spatial_dims=2,
                                              mlp_ratio=1.0), (1, 1, 64, 64), rel=1e-8),
    _case("ViT", lambda: nets.ViT(1, (8, 8), (4, 4), hidden_size=8, mlp_dim=16, num_layers=2, num_heads=2,
                                  classification=True, num_classes=3, spatial_dims=2), (2, 1, 8, 8), rel=1e-6),
    _case("ViTAutoEnc", lambda: nets.ViTAutoEnc(1, (8, 8), (4, 4), hidden_size=8, mlp_dim=16, num_layers=1,
                                                num_heads=2, deconv_chns=2, spatial_dims=2), (2, 1, 8, 8), rel=1e-6),
    _case("AutoEncoder", _ae, (2, 1, 16, 16), quick=True),
    _case("VarAutoEncoder", lambda: nets.VarAutoEncoder(spatial_dims=2, in_shape=(1, 8, 8), out_channels=1,
                                                        latent_size=2, channels=(2, 4), strides=(2, 2)), (2, 1, 8, 8)),
    _case("FullyConnectedNet", lambda: nets.FullyConnectedNet(5, 2, [8, 6], 0.1), (3, 5), quick=True),
    _case("EfficientNet-B0", lambda: nets.EfficientNetBN("efficientnet-b0", pretrained=False, spatial_dims=2,
                                                         in_channels=1, num_classes=2), (1, 1, 32, 32), rel=1e-9),
    _case("HighResNet", lambda: nets.HighResNet(2, 1, 1), (1, 1, 16, 16), rel=1e-8),
    _case("Generator", lambda: nets.Generator(4, (2, 4, 4), (4, 1), (2, 1)), (2, 4)),
    _case("Discriminator", lambda: nets.Discriminator((1, 8, 8), (2, 4), (2, 2)), (2, 1, 8, 8)),
    _case("Regressor", lambda: nets.Regressor((1, 8, 8), 2, (2, 4), (2, 2)), (2, 1, 8, 8)),
    _case("Classifier", lambda: nets.Classifier((1, 8, 8), 2, (2, 4), (2, 2)), (2, 1, 8, 8)),
    _case("FlexibleUNet", lambda: nets.FlexibleUNet(1, 1, "efficientnet-b0", pretrained=False,
                                                                     decoder_channels=(4, 4, 4, 4, 4)),
          (1, 1, 32, 32), rel=1e-9),
    _case("RegUNet", lambda: nets.RegUNet(2, 1, 2, 1, out_kernel_initializer="kaiming_uniform"), (1, 1, 8, 8)),
    _case("LocalNet", lambda: nets.LocalNet(2, 1, 2, (0, 1), out_channels=2), (1, 1, 16, 16), rel=1e-5),
    Case("DiffusionModelUNet", _quiet(_diffusion), lambda: ((torch.randn(1, 1, 8, 8), torch.tensor([3])), {}),
         rel=1e-6, slow=True, bitwise=False),
    _case("MedNeXt", lambda: nets.MedNeXt(2, 4, 1, 1, encoder_expansion_ratio=2, decoder_expansion_ratio=2,
                                          bottleneck_expansion_ratio=2, blocks_down=(1, 1, 1, 1), blocks_bottleneck=1,
                                          blocks_up=(1, 1, 1, 1)), (1, 1, 32, 32), rel=1e-7),
    _case("PatchDiscriminator", lambda: nets.PatchDiscriminator(2, 4, 1, num_layers_d=2), (2, 1, 16, 16)),
    _case("Critic", lambda: nets.Critic((1, 8, 8), (2, 4), (2, 2)), (2, 1, 8, 8)),
    _case("SegResNetVAE", lambda: nets.SegResNetVAE((8, 8), spatial_dims=2, init_filters=8,
                                                                  blocks_down=(1, 1), blocks_up=(1,), vae_nz=4),
          (1, 1, 8, 8)),
    _case("SegResNet, group norm, deconvolution", lambda: nets.SegResNet(
        2, 8, 1, 1, norm=("group", {"num_groups": 4}), blocks_down=(1, 1), blocks_up=(1,), upsample_mode="deconv"),
        (2, 1, 8, 8)),
    _case("VQVAE", lambda: nets.VQVAE(2, 1, 1, channels=(4, 4), num_res_layers=1, num_res_channels=(4, 4),
                                      downsample_parameters=((2, 4, 1, 1),) * 2,
                                      upsample_parameters=((2, 4, 1, 1, 0),) * 2, num_embeddings=4,
                                      embedding_dim=4), (1, 1, 8, 8)),
]  # fmt: skip

# Those that draw random numbers, or branch on values.
REFUSED = [
    _case("AutoencoderKL", lambda: nets.AutoencoderKL(2, 1, 1, (1, 1), (4, 4), attention_levels=(False, False),
                                                      norm_num_groups=2, latent_channels=2,
                                                      with_encoder_nonlocal_attn=False,
                                                      with_decoder_nonlocal_attn=False), (1, 1, 8, 8), rel=1e-5),
    _case("DiNTS", lambda: nets.DiNTS(
        nets.TopologyInstance(channel_mul=0.2, num_blocks=2, num_depths=2, spatial_dims=2, device="cpu"), 1, 1,
        spatial_dims=2), (1, 1, 16, 16), rel=1e-6),
]  # fmt: skip
