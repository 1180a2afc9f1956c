"""How the cost of bounds grows with the image, the batch, the channels and the depth, next to the plain forward.

    python benchmarks/growth.py
    python benchmarks/growth.py --device cuda --compile --gap-dtype bfloat16 --channels-last

Every row is a ratio to the plain forward at the same setting: where ratios stay, the cost grows as the plain forward's.
"""

from __future__ import annotations

import argparse
import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import measure
import torch
from propagation import widened
from torch import nn

from intervalnn.models import UNet

NETS: dict[str, dict[str, Any]] = {
    "all layers": {"layers": "all"},
    "all layers, a gap per input": {"layers": "all", "kind": "input"},
    "last 7": {"layers": 7},
    "last 7, a gap per input": {"layers": 7, "kind": "input"},
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A U-Net, or for a given depth a plain stack of convolutions, and its inputs."""

    size: int = 128
    batch: int = 1
    base: int = 16
    depth: int | None = None

    def model(self) -> nn.Module:
        torch.manual_seed(0)
        if self.depth is None:
            return UNet(self.base)
        widths = [1] + [self.base] * (self.depth - 1) + [1]
        layers = [(nn.Conv2d(a, b, 3, padding=1), nn.ReLU()) for a, b in itertools.pairwise(widths)]
        return nn.Sequential(*(module for pair in layers for module in pair))


def settings(first: Setting, large: bool) -> Iterator[tuple[str, Setting]]:
    """Vary one number at a time."""
    for size in (128, 256, 512, 1024):
        yield f"size {size}", replace(first, size=size)
    for batch in (1, 4, 16, 64):
        yield f"batch {batch}", replace(first, batch=batch)
    for base in (8, 16, 32, 64):
        yield f"base {base}", replace(first, base=base)
    for depth in (8, 16, 32, 64) if large else (8, 16, 32):
        yield f"depth {depth}", replace(first, depth=depth)


def rows_of(name: str, setting: Setting, args: argparse.Namespace) -> list[dict[str, Any]]:
    model = setting.model().eval().to(args.device)
    x = torch.randn(setting.batch, 1, setting.size, setting.size, device=args.device)
    if args.channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    plain = torch.compile(copy.deepcopy(model), dynamic=False) if args.compile else model
    gap_dtype = getattr(torch, args.gap_dtype) if args.gap_dtype else None
    runs: dict[str, Any] = {"plain": lambda: plain(x)}
    for label, options in NETS.items():
        net = widened(model, x, gap_dtype=gap_dtype, **options)
        if args.compile:
            net.compile(dynamic=False)
        runs[label] = lambda net=net: net(x)
    found = measure.compare(runs, "plain", args.device, args.repeats, args.calls)
    return [row | {"variant": f"{name}, {row['variant']}"} for row in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--base", type=int, default=16)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--calls", type=int, default=1, help="calls per timing")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--gap-dtype", default=None)
    parser.add_argument("--only", default="", help="size, batch, base or depth; by default all of them")
    parser.add_argument("--out", type=Path, default=None, help="where to write, without suffix")
    args = parser.parse_args()
    torch.set_float32_matmul_precision("high" if args.device == "cuda" else "highest")
    about = {key: str(value) for key, value in vars(args).items() if key != "out"}
    out = args.out or Path(__file__).parent / "results" / f"growth-{args.device}"
    rows = []
    with torch.no_grad():
        for name, setting in settings(Setting(args.size, 1, args.base), args.device == "cuda"):
            if name.startswith(args.only):
                torch.compiler.reset()
                rows += rows_of(name, setting, args)
                measure.write(out, "How the cost of bounds grows", about, args.device, rows)  # it takes long


if __name__ == "__main__":
    main()
