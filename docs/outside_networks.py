"""Networks of public packages, small, from random weights: what ``make coverage-outside`` converts.

Each package is imported when its first network is built, so that one that is missing or broken costs only its own rows.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from zoo import Case, Inputs, real

REL = 1e-5  # gaps relative to the weights: most of these networks are deep


def of(module: str) -> Any:
    """Return a module of a package."""
    return importlib.import_module(module)


def network(name: str, model: Callable[[], nn.Module], inputs: Callable[[], Inputs], *, rel: float = REL) -> Case:
    """Name a network, with its builder and the arguments of one call."""
    return Case(name, model, inputs, rel=rel, bitwise=False)


def image(channels: int = 3, size: int = 32, batch: int = 2) -> Callable[[], Inputs]:
    return real(batch, channels, size, size)


class Call(nn.Module):
    """A network whose forward pass is another method of the model, or wants arguments that are no tensors."""

    def __init__(self, model: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model
        self.call = call

    def forward(self, *args: Any) -> Any:
        return self.call(self.model, *args)


# --- timm ---


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
    timm("nfnet_l0"),
    timm("hardcorenas_a"),
    timm("efficientformer_l1", 224),
    timm("xcit_nano_12_p16_224", img_size=32, depth=1, embed_dim=16, num_heads=2),
    timm("cait_xxs24_224", img_size=32, embed_dim=16, depth=1, num_heads=2),
]

# --- segmentation-models-pytorch ---


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

# --- diffusers ---


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
    diffusers("UNet2DModel", latent(3), in_channels=3, out_channels=3, down_block_types=("DownBlock2D",
            "AttnDownBlock2D"),
              up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=4, **BLOCKS2),
    diffusers("UNet2DConditionModel", latent(4, 8, 6), down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
              up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=6, attention_head_dim=2,
                      **BLOCKS2),
    diffusers("UNet1DModel", lambda: ((torch.randn(2, 2, 16), torch.randint(1, 900, (2,))), {"return_dict": False}),
              in_channels=2, out_channels=2, extra_in_channels=64, block_out_channels=(32, 64),
              down_block_types=("DownBlock1DNoSkip", "DownBlock1D"), up_block_types=("UpBlock1D", "UpBlock1DNoSkip"),
              mid_block_type="UNetMidBlock1D", sample_size=16),
    diffusers("ControlNetModel", lambda: (
        (torch.randn(2, 4, 8, 8), torch.randint(1, 900, (2,)), torch.randn(2, 3, 6), torch.randn(2, 3, 16, 16)),
        {"return_dict": False}), down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), cross_attention_dim=6,
        attention_head_dim=2, block_out_channels=(8, 16), norm_num_groups=4, layers_per_block=1,
        conditioning_embedding_out_channels=(4, 4)),
    diffusers("AutoencoderKL", lambda: ((torch.randn(1, 3, 16, 16),), {"return_dict": False}), down_block_types=DOWN2,
              up_block_types=UP2, **VAE),
    diffusers("VQModel", lambda: ((torch.randn(1, 3, 16, 16),), {"return_dict": False}), down_block_types=DOWN2,
              up_block_types=UP2, num_vq_embeddings=8, **VAE),
    diffusers("AutoencoderTiny", lambda: ((torch.rand(1, 3, 16, 16),), {"return_dict": False}),
              encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8), num_encoder_blocks=(1, 1),
              num_decoder_blocks=(1, 1)),
    diffusers("DiTTransformer2DModel", lambda: (
        (torch.randn(2, 4, 8, 8),), {"timestep": torch.randint(1, 900, (2,)), "class_labels": torch.randint(0, 5, (2,)),
                                     "return_dict": False}),
        num_attention_heads=2, attention_head_dim=4, num_layers=1, sample_size=8, num_embeds_ada_norm=10,
                norm_num_groups=4),
    diffusers("PixArtTransformer2DModel", lambda: (
        (torch.randn(2, 4, 8, 8),), {"encoder_hidden_states": torch.randn(2, 3, 6), "timestep": torch.randint(1, 900,
                (2,)),
         "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}, "return_dict": False}),
        num_attention_heads=2, attention_head_dim=4, num_layers=1, sample_size=8, cross_attention_dim=8,
        caption_channels=6, norm_num_groups=4, out_channels=8),
    diffusers("SD3Transformer2DModel", lambda: (
        (torch.randn(1, 4, 8, 8), torch.randn(1, 3, 8), torch.randn(1, 6), torch.randint(1, 900, (1,))),
        {"return_dict": False}), sample_size=8, patch_size=2, in_channels=4, num_layers=1, attention_head_dim=4,
        num_attention_heads=2, joint_attention_dim=8, caption_projection_dim=8, pooled_projection_dim=6, out_channels=4,
        pos_embed_max_size=8),
    diffusers("FluxTransformer2DModel", lambda: (
        (torch.randn(1, 16, 4), torch.randn(1, 3, 8), torch.randn(1, 6), torch.rand(1), torch.zeros(16, 3),
         torch.zeros(3, 3)), {"return_dict": False}), patch_size=1, in_channels=4, num_layers=1, num_single_layers=1,
        attention_head_dim=16, num_attention_heads=2, joint_attention_dim=8, pooled_projection_dim=6,
        axes_dims_rope=(4, 4, 8)),
    diffusers("Transformer2DModel", lambda: ((torch.randn(1, 8, 4, 4),), {"return_dict": False}), in_channels=8,
              num_attention_heads=2, attention_head_dim=4, norm_num_groups=4),
]  # fmt: skip

# --- torch_geometric ---


def graph(width: int = 5, *, edges: int = 0, batch: bool = False, kinds: int = 0) -> Callable[[], Inputs]:
    """Nodes and edges, with what else a network takes."""

    def made() -> Inputs:
        index = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2], [1, 0, 3, 2, 5, 4, 2, 0]])
        more: tuple[Tensor, ...] = (torch.randint(0, kinds, (8,)),) if kinds else ()
        more += (torch.randn(8, edges),) if edges else ()
        more += (torch.tensor([0, 0, 0, 0, 1, 1]),) if batch else ()
        return (torch.randn(6, width), index, *more), {}

    return made


def pyg(name: str, inputs: Callable[[], Inputs] | None = None, *args: Any, **options: Any) -> Case:
    return network(name, lambda: getattr(of("torch_geometric.nn"), name)(*args, **options), inputs or graph(), rel=1e-3)


def pooled(model: nn.Module, x: Tensor, edges: Tensor, batch: Tensor) -> Any:
    """Pool each graph of a batch: as the examples of the package do."""
    return of("torch_geometric.nn").global_mean_pool(model(x, edges), batch)


def of_batch(model: nn.Module, data: Any) -> Any:
    return pooled(model, data.x, data.edge_index, data.batch)


def batch_of_graphs() -> Inputs:
    Data, Batch = of("torch_geometric.data").Data, of("torch_geometric.data").Batch
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    return (Batch.from_data_list([Data(x=torch.randn(3, 5), edge_index=edges) for _ in range(2)]),), {}


def gcn() -> nn.Module:
    made: nn.Module = of("torch_geometric.nn").GCN(5, 6, 2, 3)
    return made


def atoms() -> Inputs:
    return (torch.randint(1, 9, (6,)), torch.randn(6, 3), torch.tensor([0, 0, 0, 1, 1, 1])), {}


def near(positions: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
    """Join the atoms of each molecule: what the package itself would look for by a kernel that it does not bring."""
    edges = torch.tensor([[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], [1, 2, 0, 2, 0, 1, 4, 5, 3, 5, 3, 4]])
    return edges, (positions[edges[0]] - positions[edges[1]]).norm(dim=-1)


PYG = [
    pyg("GCN", None, 5, 6, 2, 3),
    pyg("GraphSAGE", None, 5, 6, 2, 3),
    pyg("GIN", None, 5, 6, 2, 3),
    pyg("GAT", None, 5, 6, 2, 3, heads=2),
    pyg("PNA", None, 5, 6, 2, 3, aggregators=["mean", "max", "std"], scalers=["identity"], deg=torch.tensor([0, 4, 2])),
    pyg("EdgeCNN", None, 5, 6, 2, 3),
    pyg("GATv2Conv", None, 5, 3, heads=2),
    pyg("TransformerConv", None, 5, 3, heads=2),
    pyg("ChebConv", None, 5, 3, 2),
    pyg("GatedGraphConv", None, 6, 2),
    pyg("ARMAConv", None, 5, 3, num_stacks=2, num_layers=2),
    pyg("RGCNConv", graph(kinds=3), 5, 4, 3),
    pyg("GraphUNet", None, 5, 6, 3, 2),
    pyg("SchNet", atoms, hidden_channels=8, num_filters=8, num_interactions=1, num_gaussians=4, interaction_graph=near),
    network("GCN, mean pool of a batch", lambda: Call(gcn(), pooled), graph(batch=True), rel=1e-3),
    network("GCN, a Batch object", lambda: Call(gcn(), of_batch), batch_of_graphs, rel=1e-3),
]

# --- deepinv ---


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
    deepinv("SwinIR", noisy(1, 16), img_size=16, in_chans=1, embed_dim=8, depths=(1, 1), num_heads=(2, 2),
            window_size=4,
            pretrained=None, upsampler=None),
    deepinv("Restormer", noisy(), in_channels=1, out_channels=1, dim=8, num_blocks=(1, 1, 1, 1),
            num_refinement_blocks=1,
            heads=(1, 1, 2, 2), pretrained=None),
    deepinv("FFDNet", noisy(), n_conv_layers=3, nf=4, img_channels=1, pretrained=None),
    deepinv("AutoEncoder", lambda: ((torch.rand(2, 1, 4, 4),), {}), dim_input=16, dim_mid=8, dim_hid=4),
    deepinv("ConvDecoder", lambda: ((torch.rand(1, 4, 4, 4),), {}), img_size=(1, 16, 16), layers=3, channels=4),
    deepinv("ICNN", image(1, 8, 1), in_channels=1, num_filters=4, num_layers=3),
    deepinv("ICNN", image(1, 8, 1), "ICNN, weights of any sign", in_channels=1, num_filters=4, num_layers=3,
            pos_weights=False),
    network("unrolled proximal gradient", unrolled, lambda: ((torch.rand(1, 1, 8, 8),), {})),
]  # fmt: skip

# --- neuraloperator ---


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

# --- dynamic-network-architectures: the networks of nnU-Net ---


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

# --- ncps ---


def ncps(name: str, *args: Any, wired: bool = False, **options: Any) -> Case:
    def build() -> nn.Module:
        given = (args[0], of("ncps.wirings").AutoNCP(8, 2)) if wired else args
        made: nn.Module = getattr(of("ncps.torch"), name)(*given, **options)
        return made

    label = name + (", wired" if wired else "") + "".join(f", {key}={value}" for key, value in options.items())
    return network(label, build, real(2, 5, 3), rel=1e-3)


NCPS = [
    ncps("CfC", 3, 6),
    ncps("CfC", 3, wired=True),
    ncps("CfC", 3, 6, mode="pure"),
    ncps("CfC", 3, 6, mode="no_gate"),
    ncps("CfC", 3, 6, mixed_memory=True),
    ncps("LTC", 3, 6),
    ncps("LTC", 3, wired=True),
]

# --- normalizing flows ---


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
    nflows("rational quadratic coupling", lambda t: t.PiecewiseRationalQuadraticCouplingTransform(
        torch.tensor([1, 0, 1, 0]), _net, num_bins=4, tails="linear", tail_bound=3.0)),
    nflows("LU linear", lambda t: t.LULinear(4, identity_init=False)),
    nflows("batch norm and permutation", lambda t: t.CompositeTransform([t.BatchNorm(4), t.RandomPermutation(4)])),
    nflows("act norm", lambda t: t.ActNorm(4)),
]  # fmt: skip


def normflows(name: str, layers: Callable[[Any], list[Any]], inputs: Callable[[], Inputs] | None = None) -> Case:
    def build() -> nn.Module:
        nf = of("normflows")
        return Call(nf.NormalizingFlow(nf.distributions.DiagGaussian(4), layers(nf)), density)

    return network(name, build, inputs or real(4, 4), rel=1e-4)


def _glow() -> nn.Module:
    return Call(of("normflows").flows.GlowBlock(8, 6), lambda block, z: block.inverse(z))


def _mlp(nf: Any) -> Any:
    return nf.nets.MLP([2, 6, 4], init_zeros=False)


NORMFLOWS = [
    normflows("RealNVP", lambda nf: [nf.flows.AffineCouplingBlock(_mlp(nf)), nf.flows.Permute(4, mode="swap")]),
    normflows("masked affine", lambda nf: [nf.flows.MaskedAffineFlow(
        torch.tensor([1.0, 0, 1, 0]), nf.nets.MLP([4, 6, 4]), nf.nets.MLP([4, 6, 4]))]),
    normflows("planar", lambda nf: [nf.flows.Planar((4,), act="leaky_relu")]),
    normflows("coupled rational quadratic spline", lambda nf: [nf.flows.CoupledRationalQuadraticSpline(4, 1, 6)]),
    normflows("autoregressive rational quadratic spline",
              lambda nf: [nf.flows.AutoregressiveRationalQuadraticSpline(4, 1, 6)]),
    normflows("act norm, LU permute", lambda nf: [nf.flows.ActNorm(4), nf.flows.LULinearPermute(4)]),
    network("Glow block", _glow, real(2, 8, 4, 4), rel=1e-4),
]  # fmt: skip

# --- differential equations and sparse activations ---


class Solved(nn.Module):
    """A neural ordinary differential equation, solved with a fixed step."""

    def __init__(self, method: str, options: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.field = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 3))
        self.method, self.options = method, options

    def forward(self, x: Tensor) -> Any:
        times = torch.linspace(0, 1, 3, dtype=x.dtype)
        return of("torchdiffeq").odeint(lambda _, y: self.field(y), x, times, method=self.method, options=self.options)


class Activated(nn.Module):
    """A classifier whose last activation is sparse."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.first, self.last, self.name = nn.Linear(3, 6), nn.Linear(6, 4), name

    def forward(self, x: Tensor) -> Any:
        return getattr(of("entmax"), self.name)(self.last(torch.relu(self.first(x))), dim=-1)


TORCHDIFFEQ = [
    network("Euler", lambda: Solved("euler"), real(2, 3), rel=1e-3),
    network("midpoint", lambda: Solved("midpoint"), real(2, 3), rel=1e-3),
    network("Runge-Kutta 4", lambda: Solved("rk4"), real(2, 3), rel=1e-3),
    network("Runge-Kutta 4, own step", lambda: Solved("rk4", {"step_size": 0.25}), real(2, 3), rel=1e-3),
    network("dopri5, adaptive", lambda: Solved("dopri5"), real(2, 3), rel=1e-3),
]
ENTMAX = [
    network("sparsemax", lambda: Activated("sparsemax"), real(2, 3), rel=1e-3),
    network("1.5-entmax", lambda: Activated("entmax15"), real(2, 3), rel=1e-3),
    network("sparsemax by bisection", lambda: Activated("sparsemax_bisect"), real(2, 3), rel=1e-3),
]

# --- transformers written out ---


def x_transformers(name: str, **options: Any) -> Case:
    def build() -> nn.Module:
        x = of("x_transformers")
        layers = x.Decoder(dim=8, depth=1, heads=2, **{"attn_dim_head": 4} | options)
        made: nn.Module = x.TransformerWrapper(num_tokens=20, max_seq_len=8, attn_layers=layers)
        return made

    return network(name, build, lambda: ((torch.randint(0, 20, (2, 6)),), {}), rel=1e-4)


X_TRANSFORMERS = [
    x_transformers("decoder"),
    x_transformers("decoder, rotary", rotary_pos_emb=True, attn_dim_head=32),
    x_transformers("decoder, ALiBi", alibi_pos_bias=True, alibi_num_heads=2),
    x_transformers("decoder, T5 bias", rel_pos_bias=True),
    x_transformers("decoder, RMS norm, GLU", use_rmsnorm=True, ff_glu=True, ff_swish=True),
    x_transformers("decoder, squared ReLU, QK norm", ff_relu_squared=True, attn_qk_norm=True),
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
    vit("t2t", "T2TViT", only={"image_size": 16, "num_classes": 3, "dim": 8, "depth": 1, "heads": 2, "mlp_dim": 16,
                              "t2t_layers": ((3, 2), (3, 2))}),
    vit("crossformer", "CrossFormer", 64, only={"dim": (32, 32, 32, 32), "depth": (1, 1, 1, 1), "num_classes": 3,
        "global_window_size": (2, 2, 1, 1), "local_window_size": (2, 2, 1, 1),
        "cross_embed_kernel_sizes": ((4,), (2,), (2,), (2,))}),
    vit("mobile_vit", "MobileViT", only={"image_size": (16, 16), "dims": [8, 8, 8], "num_classes": 3,
            "patch_size": (1, 1),
        "channels": [4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 16], "depths": (1, 1, 1)}),
]  # fmt: skip

# --- torchvision, splines, rotations ---


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


def _kan() -> nn.Module:
    made: nn.Module = of("kan").KAN(width=[2, 3, 1], grid=3, k=3, seed=0, auto_save=False, save_act=False)
    return made


def _e3nn(activated: bool) -> nn.Module:
    o3, e3 = of("e3nn.o3"), of("e3nn.nn")
    scalars, gates = o3.Irreps("4x0e"), o3.Irreps("2x0e")
    if not activated:
        made: nn.Module = o3.Linear("4x0e + 2x1o", "3x0e + 2x1o")
        return made
    gate = e3.Gate(scalars, [torch.relu], gates, [torch.sigmoid], o3.Irreps("2x1o"))
    return nn.Sequential(o3.Linear("4x0e + 2x1o", gate.irreps_in), gate)


PYKAN = [network("KAN, cubic splines", _kan, lambda: ((torch.rand(4, 2) * 1.6 - 0.8,), {}), rel=1e-4)]
E3NN = [
    network("linear", lambda: _e3nn(False), real(2, 10), rel=1e-3),
    network("linear and gate", lambda: _e3nn(True), real(2, 10), rel=1e-3),
    network("tensor product", lambda: of("e3nn.o3").FullyConnectedTensorProduct("2x0e + 1x1o", "1x0e + 1x1o",
            "2x0e + 1x1o"),
            lambda: ((torch.randn(2, 5), torch.randn(2, 4)), {}), rel=1e-3),
]  # fmt: skip

LIBRARIES = {  # the package's name at the registry, and its networks
    "timm": TIMM,
    "segmentation-models-pytorch": SMP,
    "diffusers": DIFFUSERS,
    "torch_geometric": PYG,
    "deepinv": DEEPINV,
    "neuraloperator": NEURALOP,
    "dynamic-network-architectures": NNUNET,
    "ncps": NCPS,
    "zuko": ZUKO,
    "nflows": NFLOWS,
    "normflows": NORMFLOWS,
    "torchdiffeq": TORCHDIFFEQ,
    "entmax": ENTMAX,
    "x-transformers": X_TRANSFORMERS,
    "vit-pytorch": VIT_PYTORCH,
    "torchvision": TORCHVISION,
    "pykan": PYKAN,
    "e3nn": E3NN,
}
