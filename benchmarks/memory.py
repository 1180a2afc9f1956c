"""What training the gaps holds in memory: one step, next to one of the plain model on the same batch.

    python benchmarks/memory.py                             # CPU
    python benchmarks/memory.py --device cuda --base 64 --size 256 --compile --gap-dtype bfloat16 --channels-last

A step is forward, backward and Adam; counted is what is made in it and alive at once, on top of parameters and moments.
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
from intervalnn import losses
from intervalnn.models import UNet


def step(module: nn.Module, loss: losses.Loss, x: Tensor, y: Tensor) -> Callable[[], None]:
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-6)

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(module(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return run


def interval_step(
    model: nn.Module, x: Tensor, y: Tensor, layers: Any, recompute: bool, compiled: bool, **options: Any
) -> Callable[[], None]:
    net = inn.IntervalNetwork(model, layers=layers, **options)
    net.balance(x)
    if compiled:
        net.compile(dynamic=False)
    run = step(net, losses.pinball(coverage=0.9), x, y)
    if not recompute:
        return run

    def again() -> None:
        with net.recomputing():
            run()

    return again


def variants(args: argparse.Namespace) -> dict[str, Callable[[], None]]:
    torch.manual_seed(0)
    model = UNet(args.base, dropout=0.0).to(args.device).eval()
    x, y = torch.randn(2, args.batch, 1, args.size, args.size, device=args.device)
    if args.channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    # A copy: the step of the plain model moves its weights, around which the others have their intervals.
    plain = copy.deepcopy(model)
    runs = {"plain": step(torch.compile(plain, dynamic=False) if args.compile else plain, losses.mse, x, y)}
    gap_dtype = getattr(torch, args.gap_dtype) if args.gap_dtype else None
    for label, layers in (("last 7", 7), ("all layers", "all")):
        for kind in ("weight", "input"):
            for recompute in (False,) if args.compile else (False, True):  # a compiler chooses itself
                name = f"intervals, {label}, a gap per {kind}" + (", recomputing" if recompute else "")
                runs[name] = interval_step(model, x, y, layers, recompute, args.compile, kind=kind, gap_dtype=gap_dtype)
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--base", type=int, default=16)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--gap-dtype", default=None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None, help="where to write, without suffix")
    args = parser.parse_args()
    torch.set_float32_matmul_precision("high" if args.device == "cuda" else "highest")
    rows = measure.compare(variants(args), "plain", args.device, args.repeats)
    for row in rows:
        row["memory_ratio"] = row["peak_mib"] / rows[0]["peak_mib"]
        row["variant"] += f" (memory x{row['memory_ratio']:.2f})"
    settings = {key: str(value) for key, value in vars(args).items() if key != "out"}
    out = args.out or Path(__file__).parent / "results" / f"memory-{args.device}-{args.size}"
    measure.write(out, "Memory of a training step on the paper's U-Net", settings, args.device, rows)


if __name__ == "__main__":
    main()
