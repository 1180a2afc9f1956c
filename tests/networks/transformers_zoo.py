"""Networks of Hugging Face transformers, small, from random weights; import only where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf
from torch import nn
from zoo import Case, Inputs

TEXT = {
    "vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
    "max_position_embeddings": 32,
}  # fmt: skip
DECODER = TEXT | {"num_key_value_heads": 1, "head_dim": 4, "use_cache": False, "pad_token_id": 0}
IMAGE = {
    "image_size": 8, "patch_size": 4, "num_channels": 1, "hidden_size": 8, "num_hidden_layers": 1,
    "num_attention_heads": 2, "intermediate_size": 16,
}  # fmt: skip


def tokens() -> Inputs:
    return (), {"input_ids": torch.randint(3, 20, (2, 5))}


def masked() -> Inputs:
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    return (), {"input_ids": torch.randint(3, 20, (2, 5)), "attention_mask": mask}


def image(size: int = 8, channels: int = 1) -> Callable[[], Inputs]:
    return lambda: ((), {"pixel_values": torch.randn(2, channels, size, size)})


def audio(length: int = 200) -> Callable[[], Inputs]:
    return lambda: ((), {"input_values": torch.randn(2, length)})


def case(
    name: str, model: str, config: str, options: dict[str, Any], inputs: Callable[[], Inputs], *, rel: float = 1e-5,
    quick: bool = False,
) -> Case:  # fmt: skip
    def build() -> nn.Module:
        made = getattr(hf, model)(getattr(hf, config)(**options))
        made.set_attn_implementation("sdpa") if getattr(made, "_supports_sdpa", False) else None
        built: nn.Module = made
        return built

    return Case(name, build, inputs, rel=rel, slow=not quick, bitwise=False)


T5 = {"vocab_size": 20, "d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2, "use_cache": False}
BART = {
    "vocab_size": 20, "d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 32,
    "use_cache": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
WAV = {
    "vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
    "conv_dim": (4, 4), "conv_kernel": (10, 3), "conv_stride": (5, 2), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "apply_spec_augment": False,
}  # fmt: skip
STAGES = {
    "num_channels": 1, "hidden_sizes": [4, 8], "depths": [1, 1], "num_stages": 2, "image_size": 16, "num_labels": 2,
}  # fmt: skip
SWIN = {
    "image_size": 8, "patch_size": 2, "num_channels": 1, "embed_dim": 4, "depths": [1, 1], "num_heads": [1, 2],
    "window_size": 2, "mlp_ratio": 2.0,
}  # fmt: skip
SEGFORMER = {
    "num_channels": 1, "num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [4, 8],
    "patch_sizes": [3, 3], "strides": [2, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 2],
    "decoder_hidden_size": 8, "num_labels": 2,
}  # fmt: skip
GPT2 = {"vocab_size": 20, "n_positions": 32, "n_embd": 8, "n_layer": 1, "n_head": 2, "use_cache": False}
MOE = DECODER | {"num_local_experts": 2, "num_experts_per_tok": 1}

TRANSFORMERS = [
    case("BERT", "BertModel", "BertConfig", TEXT, tokens, quick=True),
    case("BERT, masked, token classes", "BertForTokenClassification", "BertConfig", TEXT, masked),
    case("RoBERTa", "RobertaModel", "RobertaConfig", TEXT, tokens),
    case("DistilBERT", "DistilBertModel", "DistilBertConfig",
         {"vocab_size": 20, "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 16, "max_position_embeddings": 32},
         tokens),
    case("ALBERT", "AlbertModel", "AlbertConfig", TEXT | {"embedding_size": 4}, tokens),
    case("ELECTRA", "ElectraModel", "ElectraConfig", TEXT | {"embedding_size": 8}, tokens),
    case("DeBERTa v2", "DebertaV2Model", "DebertaV2Config", TEXT, tokens),
    case("MPNet", "MPNetModel", "MPNetConfig", TEXT, tokens),
    case("ModernBERT", "ModernBertModel", "ModernBertConfig", TEXT | {"pad_token_id": 0, "bos_token_id": 1,
         "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}, tokens),
    case("FNet", "FNetModel", "FNetConfig", TEXT | {"tpu_short_seq_length": 5}, tokens),
    case("GPT-2", "GPT2LMHeadModel", "GPT2Config", GPT2, tokens, quick=True),
    case("GPT-Neo", "GPTNeoModel", "GPTNeoConfig",
         {"vocab_size": 20, "hidden_size": 8, "num_layers": 1, "num_heads": 2, "attention_types": [[["global"], 1]],
          "max_position_embeddings": 32, "use_cache": False}, tokens),
    case("GPT-NeoX", "GPTNeoXModel", "GPTNeoXConfig", TEXT | {"use_cache": False}, tokens),
    case("OPT", "OPTModel", "OPTConfig",
         {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "ffn_dim": 16,
          "max_position_embeddings": 32, "word_embed_proj_dim": 8, "use_cache": False, "pad_token_id": 0}, tokens),
    case("BLOOM", "BloomModel", "BloomConfig",
         {"vocab_size": 20, "hidden_size": 8, "n_layer": 1, "n_head": 2, "use_cache": False}, tokens),
    case("Llama", "LlamaForCausalLM", "LlamaConfig", DECODER, tokens),
    case("Mistral", "MistralModel", "MistralConfig", DECODER | {"sliding_window": 4}, tokens),
    case("Qwen2", "Qwen2Model", "Qwen2Config", DECODER, tokens),
    case("Qwen3", "Qwen3Model", "Qwen3Config", DECODER, tokens),
    case("Gemma", "GemmaModel", "GemmaConfig", DECODER, tokens),
    case("Gemma 2", "Gemma2Model", "Gemma2Config", DECODER | {"query_pre_attn_scalar": 4}, tokens),
    case("Phi", "PhiModel", "PhiConfig", TEXT | {"use_cache": False, "pad_token_id": 0}, tokens),
    case("Phi-3", "Phi3Model", "Phi3Config", DECODER | {"bos_token_id": 1, "eos_token_id": 2}, tokens),
    case("Mamba", "MambaModel", "MambaConfig", {"vocab_size": 20, "hidden_size": 8, "state_size": 2,
         "num_hidden_layers": 1, "use_cache": False}, tokens),
    case("T5, encoder", "T5EncoderModel", "T5Config", T5, tokens),
    case("T5", "T5Model", "T5Config", T5 | {"decoder_start_token_id": 0},
         lambda: ((), tokens()[1] | {"decoder_input_ids": torch.randint(3, 20, (2, 3))})),
    case("BART", "BartModel", "BartConfig", BART, tokens),
    case("CLIP, text", "CLIPTextModel", "CLIPTextConfig", TEXT | {"eos_token_id": 19}, tokens),
    case("CLIP, vision", "CLIPVisionModel", "CLIPVisionConfig", IMAGE, image()),
    case("SigLIP, vision", "SiglipVisionModel", "SiglipVisionConfig", IMAGE, image()),
    case("ViT", "ViTModel", "ViTConfig", IMAGE, image(), quick=True),
    case("DeiT", "DeiTModel", "DeiTConfig", IMAGE, image()),
    case("BEiT", "BeitModel", "BeitConfig", IMAGE | {"use_relative_position_bias": True}, image()),
    case("DINOv2", "Dinov2Model", "Dinov2Config", IMAGE, image()),
    case("Swin", "SwinModel", "SwinConfig", SWIN, image()),
    case("Swin v2", "Swinv2Model", "Swinv2Config", SWIN, image()),
    case("Swin2SR", "Swin2SRForImageSuperResolution", "Swin2SRConfig",
         SWIN | {"num_channels_out": 1, "upscale": 2, "patch_size": 1, "upsampler": "pixelshuffledirect"}, image()),
    case("Segformer", "SegformerForSemanticSegmentation", "SegformerConfig", SEGFORMER, image(16)),
    case("ConvNeXt", "ConvNextModel", "ConvNextConfig", STAGES | {"patch_size": 4}, image(16)),
    case("ConvNeXt v2", "ConvNextV2Model", "ConvNextV2Config", STAGES | {"patch_size": 4}, image(16)),
    case("ResNet", "ResNetForImageClassification", "ResNetConfig",
         {"num_channels": 1, "embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1], "layer_type": "basic",
          "num_labels": 2}, image(16), rel=1e-3),
    case("RegNet", "RegNetModel", "RegNetConfig",
         {"num_channels": 1, "embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1], "groups_width": 2},
         image(16)),
    case("MobileNet v2", "MobileNetV2Model", "MobileNetV2Config", {"num_channels": 1, "image_size": 32,
         "depth_multiplier": 0.25}, image(32), rel=1e-9),
    case("MobileViT", "MobileViTModel", "MobileViTConfig",
         {"num_channels": 1, "image_size": 32, "patch_size": 2, "hidden_sizes": [8, 8, 8],
          "neck_hidden_sizes": [4, 4, 8, 8, 8, 8, 16], "num_attention_heads": 2}, image(32), rel=1e-9),
    case("PoolFormer", "PoolFormerModel", "PoolFormerConfig",
         {"num_channels": 1, "num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [4, 8],
          "patch_sizes": [7, 3], "strides": [4, 2], "padding": [2, 1]}, image(16)),
    case("DPT", "DPTForSemanticSegmentation", "DPTConfig",
         IMAGE | {"image_size": 16, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3],
                  "neck_hidden_sizes": [4, 4, 8, 8], "fusion_hidden_size": 4, "is_hybrid": False, "num_labels": 2},
         image(16), rel=1e-7),
    case("Wav2Vec2", "Wav2Vec2Model", "Wav2Vec2Config", WAV, audio()),
    case("HuBERT", "HubertModel", "HubertConfig", WAV, audio()),
    case("Whisper, encoder", "WhisperForAudioClassification", "WhisperConfig",
         {"vocab_size": 20, "d_model": 8, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 16,
          "decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 16, "num_mel_bins": 4,
          "max_source_positions": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
          "decoder_start_token_id": 1, "classifier_proj_size": 4},
         lambda: ((torch.randn(2, 4, 16),), {})),
    case("AST, audio", "ASTModel", "ASTConfig",
         {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
          "patch_size": 4, "max_length": 8, "num_mel_bins": 8, "frequency_stride": 4, "time_stride": 4},
         lambda: ((), {"input_values": torch.randn(2, 8, 8)})),
    case("PatchTST, time series", "PatchTSTModel", "PatchTSTConfig",
         {"num_input_channels": 2, "context_length": 8, "patch_length": 2, "patch_stride": 2, "d_model": 8,
          "num_hidden_layers": 1, "num_attention_heads": 2, "ffn_dim": 16},
         lambda: ((), {"past_values": torch.randn(2, 8, 2)})),
    case("Decision transformer", "DecisionTransformerModel", "DecisionTransformerConfig",
         {"state_dim": 3, "act_dim": 2, "hidden_size": 8, "n_layer": 1, "n_head": 2, "max_ep_len": 8},
         lambda: ((), {"states": torch.randn(1, 4, 3), "actions": torch.randn(1, 4, 2),
                       "rewards": torch.randn(1, 4, 1), "returns_to_go": torch.randn(1, 4, 1),
                       "timesteps": torch.arange(4)[None], "attention_mask": torch.ones(1, 4)})),
]  # fmt: skip

# Those that choose among experts by the largest score, or draw random numbers.
REFUSED = [
    case("Mixtral (mixture of experts)", "MixtralModel", "MixtralConfig", MOE, tokens),
    case("ViT-MAE", "ViTMAEModel", "ViTMAEConfig", IMAGE, image()),
]  # fmt: skip
