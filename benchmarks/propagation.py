"""What bounds cost: the interval forward next to the plain one, on a U-Net of the paper's shape.

    python benchmarks/propagation.py                        # CPU, eager
    python benchmarks/propagation.py --device cuda --compile --gap-dtype bfloat16 --size 512 --batch 4

Ratios are to the plain forward of the same run (compiled where the others are).
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import torch
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.models import UNet


def widened(model: nn.Module, x: Tensor, layers: Any, relative: float = 1e-3, **options: Any) -> inn.IntervalNetwork:
    """Return an interval network whose gaps are a fixed share of each weight."""
    net = inn.IntervalNetwork(model, layers=layers, **options)
    with torch.no_grad():
        net(x)
        for name in net.names:
            gaps = net.gaps.get_submodule(name)
            size = relative if gaps.relative else relative * model.get_parameter(name).abs()
            gaps.below.copy_(torch.as_tensor(size))
            gaps.above.copy_(torch.as_tensor(size))
    return net


def dropout_passes(model: nn.Module, x: Tensor, passes: int, compiled: Callable[[Any], Any]) -> Callable[[], Tensor]:
    """Return mean and deviation of several passes with only the dropout layers active."""
    active = copy.deepcopy(model)
    for module in active.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    forward = compiled(active)

    def run() -> Tensor:
        samples = torch.stack([forward(x).clone() for _ in range(passes)])  # a CUDA graph reuses its outputs
        return samples.std(0)

    return run


def variants(args: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    torch.manual_seed(0)
    model = UNet(args.base).eval().to(args.device)
    x = torch.randn(args.batch, 1, args.size, args.size, device=args.device)
    if args.channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)

    def compiled(fn: Any) -> Any:
        return torch.compile(fn, dynamic=False, mode=args.mode) if args.compile else fn

    plain = compiled(copy.deepcopy(model))
    gap_dtype = getattr(torch, args.gap_dtype) if args.gap_dtype else None
    runs: dict[str, Callable[[], Any]] = {"plain": lambda: plain(x)}
    for label, layers, options in (
        ("all layers", "all", {}),
        ("all layers, a gap per input", "all", {"kind": "input"}),
        ("all layers, exact form", "all", {"exact": True}),
        ("last 7", 7, {}),
        ("last 7, a gap per input", 7, {"kind": "input"}),
        ("last 7, exact form", 7, {"exact": True}),
        ("last 1", 1, {}),
    ):
        if "exact" in options and args.skip_exact:
            continue
        net = widened(model, x, layers, gap_dtype=gap_dtype, **options)
        if args.compile:
            net.compile(dynamic=False, **({"mode": args.mode} if args.mode else {}))
        runs[f"intervals, {label}"] = lambda net=net: net(x)
    runs["MC dropout, 10 passes"] = dropout_passes(model, x, 10, compiled)
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--base", type=int, default=64)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--calls", type=int, default=1, help="calls per timing")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--mode", default=None, help="torch.compile's mode; reduce-overhead uses CUDA graphs")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--skip-exact", action="store_true")
    parser.add_argument("--gap-dtype", default=None)
    parser.add_argument("--out", type=Path, default=None, help="where to write, without suffix")
    args = parser.parse_args()
    torch.set_float32_matmul_precision("high" if args.device == "cuda" else "highest")
    if args.device == "cuda":
        torch.backends.cudnn.allow_tf32 = True
    with torch.no_grad():
        rows = measure.compare(variants(args), "plain", args.device, args.repeats, args.calls)
    settings = {key: str(value) for key, value in vars(args).items() if key != "out"}
    out = args.out or Path(__file__).parent / "results" / f"propagation-{args.device}"
    measure.write(out, "Interval propagation on the paper's U-Net", settings, args.device, rows)


if __name__ == "__main__":
    main()
