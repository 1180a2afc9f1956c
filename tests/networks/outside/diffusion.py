"""Networks of diffusers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from zoo import Case, Inputs

from outside.case import REL, network, of


def diffusers(name: str, inputs: Callable[[], Inputs], *, rel: float = REL, **options: Any) -> Case:
    return network(name, lambda: getattr(of("diffusers"), name)(**options), inputs, rel=rel)


def latent(channels: int = 4, size: int = 8, width: int = 0, tokens: int = 3) -> Callable[[], Inputs]:
    """Noise, a time, and what the text encoder would give."""

    def made() -> Inputs:
        text = {"encoder_hidden_states": torch.randn(2, tokens, width)} if width else {}
        return (torch.randn(2, channels, size, size), torch.randint(1, 900, (2,))), text | {"return_dict": False}

    return made


BLOCKS2 = {"block_out_channels": (8, 16), "norm_num_groups": 4, "layers_per_block": 1, "sample_size": 8}
VAE = {"block_out_channels": (8, 16), "norm_num_groups": 4, "latent_channels": 2, "sample_size": 16}
DOWN2, UP2 = ("DownEncoderBlock2D",) * 2, ("UpDecoderBlock2D",) * 2
DIFFUSERS = [
    diffusers(
        "UNet2DModel",
        latent(3),
        in_channels=3,
        out_channels=3,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=4,
        **BLOCKS2,
    ),
    diffusers(
        "UNet2DConditionModel",
        latent(4, 8, 6),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=6,
        attention_head_dim=2,
        **BLOCKS2,
    ),
    diffusers(
        "UNet1DModel",
        lambda: ((torch.randn(2, 2, 16), torch.randint(1, 900, (2,))), {"return_dict": False}),
        in_channels=2,
        out_channels=2,
        extra_in_channels=64,
        block_out_channels=(32, 64),
        down_block_types=("DownBlock1DNoSkip", "DownBlock1D"),
        up_block_types=("UpBlock1D", "UpBlock1DNoSkip"),
        mid_block_type="UNetMidBlock1D",
        sample_size=16,
    ),
    diffusers(
        "ControlNetModel",
        lambda: (
            (torch.randn(2, 4, 8, 8), torch.randint(1, 900, (2,)), torch.randn(2, 3, 6), torch.randn(2, 3, 16, 16)),
            {"return_dict": False},
        ),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        cross_attention_dim=6,
        attention_head_dim=2,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        layers_per_block=1,
        conditioning_embedding_out_channels=(4, 4),
    ),
    diffusers(
        "AutoencoderKL",
        lambda: ((torch.randn(1, 3, 16, 16),), {"return_dict": False}),
        down_block_types=DOWN2,
        up_block_types=UP2,
        **VAE,
    ),
    diffusers(
        "VQModel",
        lambda: ((torch.randn(1, 3, 16, 16),), {"return_dict": False}),
        down_block_types=DOWN2,
        up_block_types=UP2,
        num_vq_embeddings=8,
        **VAE,
    ),
    diffusers(
        "AutoencoderTiny",
        lambda: ((torch.rand(1, 3, 16, 16),), {"return_dict": False}),
        encoder_block_out_channels=(8, 8),
        decoder_block_out_channels=(8, 8),
        num_encoder_blocks=(1, 1),
        num_decoder_blocks=(1, 1),
    ),
    diffusers(
        "DiTTransformer2DModel",
        lambda: (
            (torch.randn(2, 4, 8, 8),),
            {"timestep": torch.randint(1, 900, (2,)), "class_labels": torch.randint(0, 5, (2,)), "return_dict": False},
        ),
        num_attention_heads=2,
        attention_head_dim=4,
        num_layers=1,
        sample_size=8,
        num_embeds_ada_norm=10,
        norm_num_groups=4,
    ),
    diffusers(
        "PixArtTransformer2DModel",
        lambda: (
            (torch.randn(2, 4, 8, 8),),
            {
                "encoder_hidden_states": torch.randn(2, 3, 6),
                "timestep": torch.randint(1, 900, (2,)),
                "added_cond_kwargs": {"resolution": None, "aspect_ratio": None},
                "return_dict": False,
            },
        ),
        num_attention_heads=2,
        attention_head_dim=4,
        num_layers=1,
        sample_size=8,
        cross_attention_dim=8,
        caption_channels=6,
        norm_num_groups=4,
        out_channels=8,
    ),
    diffusers(
        "SD3Transformer2DModel",
        lambda: (
            (torch.randn(1, 4, 8, 8), torch.randn(1, 3, 8), torch.randn(1, 6), torch.randint(1, 900, (1,))),
            {"return_dict": False},
        ),
        sample_size=8,
        patch_size=2,
        in_channels=4,
        num_layers=1,
        attention_head_dim=4,
        num_attention_heads=2,
        joint_attention_dim=8,
        caption_projection_dim=8,
        pooled_projection_dim=6,
        out_channels=4,
        pos_embed_max_size=8,
    ),
    diffusers(
        "FluxTransformer2DModel",
        lambda: (
            (
                torch.randn(1, 16, 4),
                torch.randn(1, 3, 8),
                torch.randn(1, 6),
                torch.rand(1),
                torch.zeros(16, 3),
                torch.zeros(3, 3),
            ),
            {"return_dict": False},
        ),
        patch_size=1,
        in_channels=4,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=8,
        pooled_projection_dim=6,
        axes_dims_rope=(4, 4, 8),
    ),
    diffusers(
        "Transformer2DModel",
        lambda: ((torch.randn(1, 8, 4, 4),), {"return_dict": False}),
        in_channels=8,
        num_attention_heads=2,
        attention_head_dim=4,
        norm_num_groups=4,
    ),
]
