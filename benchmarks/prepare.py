"""What the benchmarks of speed share: their arguments, and networks made ready as these say."""

from __future__ import annotations

import argparse
import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import intervalnn as inn
import measure
from intervalnn.cli.allocation import keep_freed_memory

# Which layers have gaps, and which kind of them.
NETS: dict[str, dict[str, Any]] = {
    "all layers": {"layers": "all"},
    "all layers, symmetric": {"layers": "all", "kind": "symmetric"},
    "all layers, a gap per input": {"layers": "all", "kind": "input"},
    "last 7": {"layers": 7},
    "last 7, symmetric": {"layers": 7, "kind": "symmetric"},
    "last 7, a gap per input": {"layers": 7, "kind": "input"},
}


def parser(about: str | None, base: int = 64, size: int = 128, batch: int = 1) -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--device", default="cpu")
    found.add_argument("--base", type=int, default=base, help="channels of the U-Net's first level")
    found.add_argument("--size", type=int, default=size, help="height and width of an image")
    found.add_argument("--batch", type=int, default=batch)
    found.add_argument("--repeats", type=int, default=5)
    found.add_argument("--calls", type=int, default=1, help="calls per timing")
    found.add_argument("--compile", action="store_true")
    found.add_argument("--mode", default=None, help="torch.compile's mode; reduce-overhead uses CUDA graphs")
    found.add_argument("--autotune", action="store_true", help="let cuDNN try its algorithms")
    found.add_argument("--channels-last", action="store_true")
    found.add_argument("--gap-dtype", default=None)
    found.add_argument("--keep-memory", action="store_true", help="keep freed memory, as the commands do")
    found.add_argument("--out", type=Path, default=None, help="where to write, without suffix")
    return found


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the arguments, and do as they say."""
    args = parser.parse_args()
    apply(args)
    return args


def apply(args: argparse.Namespace) -> None:
    """Set how products are computed: on a GPU the point's in TF32, as is usual there."""
    if args.keep_memory:
        assert keep_freed_memory(), "this C library cannot keep memory"
    torch.set_float32_matmul_precision("high" if args.device == "cuda" else "highest")
    torch.backends.cudnn.allow_tf32 = args.device == "cuda"
    torch.backends.cudnn.benchmark = args.autotune


def place(args: argparse.Namespace, model: nn.Module, x: Tensor) -> tuple[nn.Module, Tensor]:
    """Put a network and its inputs on the device, in the layout asked for."""
    layout = torch.channels_last if args.channels_last else torch.contiguous_format
    return model.eval().to(args.device, memory_format=layout), x.to(args.device, memory_format=layout)


def compiled(args: argparse.Namespace, model: nn.Module) -> nn.Module:
    """Return a copy of the network, compiled where asked for."""
    own = copy.deepcopy(model)
    return torch.compile(own, dynamic=False, mode=args.mode) if args.compile else own


def compile_intervals(args: argparse.Namespace, net: inn.IntervalNetwork) -> None:
    if args.compile:
        net.compile(dynamic=False, **({"mode": args.mode} if args.mode else {}))


def widen(model: nn.Module, x: Tensor, share: float = 1e-3, **options: Any) -> inn.IntervalNetwork:
    """Return an interval network whose gaps are a fixed share of each weight."""
    net = inn.IntervalNetwork(model, **({"layers": "all"} | options))
    with torch.no_grad():
        net(x)
        for name in net.names:
            gaps = net.gaps.get_submodule(name)
            size = torch.as_tensor(share if gaps.by_input else share * model.get_parameter(name).abs())
            for side in gaps.sides:
                side.copy_(size)
    return net


def gap_dtype(args: argparse.Namespace) -> torch.dtype | None:
    return getattr(torch, args.gap_dtype) if args.gap_dtype else None


def write(args: argparse.Namespace, name: str, title: str, rows: list[dict[str, Any]], **more: str) -> None:
    settings = {key: str(value) for key, value in vars(args).items() if key != "out"} | more
    out = args.out or Path(__file__).parent / "results" / f"{name}-{args.device}"
    measure.write(out, title, settings, args.device, rows)
