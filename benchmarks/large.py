"""Very large inputs and networks: what bounds cost in time and memory, next to the plain forward.

    python benchmarks/large.py image                        # 2048 x 2048 through the paper's U-Net, tile by tile
    python benchmarks/large.py volume                       # 256 x 256 x 256 through a 3D U-Net
    python benchmarks/large.py transformer --device cuda --gap-dtype bfloat16 --batch 8 --compile  # 100 million weights

Each variant runs in a process of its own, which on the CPU may not take more than ``--limit`` GiB. Peak memory is that
of the whole process on the CPU, and of all tensors on a GPU. The plain forward takes the whole input at once; the time
of tiles has that of measuring the halo in it. Checked are that the bounds are finite and contain the point, that the
point is the plain forward's, and that a smaller input predicted in tiles is predicted as in one piece.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import intervalnn as inn
import measure
from intervalnn.cli.allocation import keep_freed_memory
from intervalnn.data.tiling import Halo, predict_tiled
from intervalnn.evaluation.cost import seconds
from intervalnn.paper.models import UNet
from intervalnn.prediction import Prediction

TITLES = {
    "image": "An image of 2048 x 2048 through the paper's U-Net",
    "volume": "A volume of 256 x 256 x 256 through a 3D U-Net",
    "transformer": "A transformer of 100 million parameters",
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "image": {"size": 2048, "width": 32, "depth": 5, "layers": "7", "gap": 1e-3},
    "volume": {"size": 256, "width": 8, "depth": 3, "layers": "all", "gap": 1e-3},
    "transformer": {"size": 512, "width": 768, "depth": 14, "layers": "all", "gap": 1e-6},
}
FEATURES = 512  # of each token of the transformer


# --- networks, with random weights ---


class UNet3d(nn.Module):
    """A U-Net over volumes: two convolutions with batch norm a level, max pooling, transposed convolutions."""

    def __init__(self, base: int, levels: int) -> None:
        super().__init__()
        widths = [base * 2**level for level in range(levels)]
        self.first = self._convs(1, base)
        self.down = nn.ModuleList(self._convs(a, b) for a, b in pairwise(widths))
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, stride=2) for a, b in reversed(list(pairwise(widths))))
        self.mix = nn.ModuleList(self._convs(2 * a, a) for a in reversed(widths[:-1]))
        self.last = nn.Conv3d(base, 1, 1)

    @staticmethod
    def _convs(inputs: int, outputs: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for channels in (inputs, outputs):
            layers += [nn.Conv3d(channels, outputs, 3, padding=1), nn.BatchNorm3d(outputs), nn.ReLU()]
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        skips = []
        for down in self.down:
            skips.append(x)
            x = down(F.max_pool3d(x, 2))
        for up, mix in zip(self.up, self.mix, strict=True):
            x = mix(torch.cat((skips.pop(), up(x)), 1))
        result: Tensor = self.last(x)
        return result


class Block(nn.Module):
    """Attention and two linear layers, each behind a norm and around a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.before(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2))
        return x + self.narrow(F.gelu(self.wide(self.between(x))))


def transformer(width: int, depth: int) -> nn.Module:
    blocks = [Block(width, width // 64) for _ in range(depth)]
    return nn.Sequential(nn.Linear(FEATURES, width), *blocks, nn.LayerNorm(width), nn.Linear(width, FEATURES))


def network(args: argparse.Namespace) -> nn.Module:
    torch.manual_seed(0)
    if args.case == "image":
        return UNet(args.width, dropout=0.0).eval()
    if args.case == "transformer":
        return transformer(args.width, args.depth).eval()
    model = UNet3d(args.width, args.depth)
    for name, buffer in model.named_buffers():
        if name.endswith("running_var"):
            buffer.uniform_(0.1, 0.5)  # about what a convolution with random weights makes of its input
    return model.eval()


def sample(args: argparse.Namespace, size: tuple[int, ...]) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.rand((args.batch, *size) if args.case == "transformer" else (1, 1, *size), generator=generator)


def size_of(args: argparse.Namespace) -> tuple[int, ...]:
    return {"image": (args.size,) * 2, "volume": (args.size,) * 3, "transformer": (args.size, FEATURES)}[args.case]


# --- one variant, in a process of its own ---


def plain(args: argparse.Namespace) -> dict[str, Any]:
    model, x = network(args).to(args.device), sample(args, size_of(args)).to(args.device)
    forward = torch.compile(model, dynamic=False) if args.compile else model
    with torch.no_grad():
        taken, point = timed(lambda: forward(x), args)
    np.save(args.folder / "point.npy", point.cpu().numpy())
    return {"seconds": taken, "parameters": sum(p.numel() for p in model.parameters())}


def intervals(args: argparse.Namespace) -> dict[str, Any]:
    model, x = network(args).to(args.device), sample(args, size_of(args)).to(args.device)
    layers = args.layers if args.layers == "all" else int(args.layers)
    gap_dtype = None if args.gap_dtype is None else getattr(torch, args.gap_dtype)
    net = inn.IntervalNetwork(model, layers=layers, gap_dtype=gap_dtype).to(args.device)
    tiled = args.case != "transformer"
    found: dict[str, Any] = {}
    small = sample(args, (32,) * len(size_of(args)) if tiled else (32, FEATURES)).to(args.device)
    net.predict(small)  # which says what the last layers are
    for name in net.names:
        gap = args.gap * float(model.get_parameter(name).detach().abs().mean())
        net.set_gaps(name, below=gap, above=2 * gap)
    if args.compile:
        net.compile(dynamic=False)
    if tiled:
        found["tiles_differ_by"] = difference_of_tiles(net, args)
    memory = int(args.memory * 2**30)
    run = (lambda: predict_tiled(net, x, memory=memory)) if tiled else (lambda: net.predict(x))
    found["seconds"], prediction = timed(run, args)
    check(prediction)
    point = torch.from_numpy(np.load(args.folder / "point.npy"))
    found["point_differs_by"] = relative(prediction.point.cpu(), point)
    found["mean_width"] = float(prediction.width.float().mean())
    return found


def timed(run: Callable[[], Any], args: argparse.Namespace) -> tuple[float, Any]:
    """Return the time of a call and what it returned: the least of a few, after one to warm up, where it is short."""
    results: list[Any] = []

    def call() -> None:
        results[:] = [run()]

    if args.case == "transformer":
        call()
        return min(seconds(call, args.device) for _ in range(5 if args.device == "cuda" else 2)), results[0]
    return seconds(call, args.device), results[0]


def difference_of_tiles(net: inn.IntervalNetwork, args: argparse.Namespace) -> float:
    """Return how far an input that fits as a whole differs when it is predicted in tiles."""
    x = sample(args, (512, *(32,) * (len(size_of(args)) - 1)))
    halo = Halo.measure(net, x, 0)
    tile = halo.before + halo.after + 6 * max(halo.stride, 16)
    tiled = predict_tiled(net, x, tile=tile, halo=halo, progress=False)
    whole = net.predict(x)
    return max(relative(tiled[part], whole[part]) for part in ("point", "below", "above"))


def relative(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max())


def check(prediction: Prediction) -> None:
    for name in ("point", "below", "above", "score"):
        assert bool(prediction[name].isfinite().all()), f"{name} is not finite"
    for name in ("below", "above"):
        assert bool((prediction[name] >= 0).all()), f"{name} is negative, so that the bounds do not contain the point"
    assert bool((prediction.width > 0).any()), "the bounds have no width"


def child(args: argparse.Namespace) -> None:
    if args.device == "cpu":
        keep_freed_memory()  # as in the commands
        resource.setrlimit(resource.RLIMIT_AS, (int(args.limit * 2**30),) * 2)
    else:
        torch.set_float32_matmul_precision("high")  # the point's products in TF32, as is usual there
    row = {"plain": plain, "intervals": intervals}[args.child](args)
    if args.device == "cuda":
        row["peak_mib"] = torch.cuda.max_memory_allocated() / 2**20
    else:
        row["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    (args.folder / f"{args.child}.json").write_text(json.dumps(row))


# --- all of them ---


def rows(args: argparse.Namespace) -> list[dict[str, Any]]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for variant in ("plain", "intervals"):
            command = [sys.executable, *sys.argv, "--child", variant, "--folder", folder]
            subprocess.run(command, check=True)
            row = json.loads((Path(folder) / f"{variant}.json").read_text())
            name = variant if variant == "plain" else f"intervals, {described(args)}"
            found.append({"variant": name, **row})
    for row in found:
        row["ratio"] = row["ratio_min"] = row["ratio_max"] = row["seconds"] / found[0]["seconds"]
        row["memory_ratio"] = row["peak_mib"] / found[0]["peak_mib"]
    return found


def described(args: argparse.Namespace) -> str:
    layers = "all layers" if args.layers == "all" else f"last {args.layers}"
    dtype = f", gaps in {args.gap_dtype}" if args.gap_dtype else ""
    return layers + dtype + ("" if args.case == "transformer" else ", tiled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=TITLES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", type=int, help="length of each axis, or of the sequence")
    parser.add_argument("--width", type=int, help="channels of the first level, or of the transformer")
    parser.add_argument("--depth", type=int, help="levels of the 3D U-Net, or blocks of the transformer")
    parser.add_argument("--layers", help="which layers get intervals: all, or the last so many")
    parser.add_argument("--gap", type=float, help="gaps, as a share of the mean weight of the layer")
    parser.add_argument("--gap-dtype", default=None)
    parser.add_argument("--batch", type=int, default=1, help="sequences at once, of the transformer")
    parser.add_argument("--compile", action="store_true", help="the transformer, which is seen whole")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB for the tensors of a tile")
    parser.add_argument("--limit", type=float, default=16.0, help="GiB that a process may take, on the CPU")
    parser.add_argument("--out", type=Path, default=None, help="where to write, without suffix")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case != "transformer" and (args.compile or args.batch != 1):
        parser.error("--batch and --compile are for the transformer; tiles differ in size")
    for name, value in DEFAULTS[args.case].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.child:
        child(args)
        return
    found = rows(args)
    hidden = ("out", "child", "folder")
    settings = {key: str(value) for key, value in vars(args).items() if key not in hidden}
    out = args.out or Path(__file__).parent / "results" / f"large-{args.case}-{args.device}"
    measure.write(out, TITLES[args.case], settings, args.device, found)


if __name__ == "__main__":
    main()
