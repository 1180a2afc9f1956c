"""What training the gaps holds in memory: one step, next to one of the plain model on the same batch.

    python benchmarks/memory.py                             # CPU
    python benchmarks/memory.py --device cuda --base 64 --size 256 --compile --gap-dtype bfloat16 --channels-last

A step is forward, backward and Adam; counted is what is made in it and alive at once, on top of parameters and moments.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import intervalnn as inn
import measure
import prepare
from intervalnn import losses
from intervalnn.paper.models import UNet


def step(module: nn.Module, loss: losses.Loss, x: Tensor, y: Tensor) -> Callable[[], None]:
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-6)

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(module(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return run


def interval_step(
    args: argparse.Namespace, model: nn.Module, x: Tensor, y: Tensor, recompute: bool, **options: Any
) -> Callable[[], None]:
    net = inn.IntervalNetwork(model, gap_dtype=prepare.gap_dtype(args), **({"layers": "all"} | options))
    net.balance(x)
    prepare.compile_intervals(args, net)
    run = step(net, losses.pinball(coverage=0.9), x, y)
    if not recompute:
        return run

    def again() -> None:
        with net.recomputing():
            run()

    return again


def variants(args: argparse.Namespace) -> dict[str, Callable[[], None]]:
    torch.manual_seed(0)
    x, y = torch.randn(2, args.batch, 1, args.size, args.size)
    model, x = prepare.place(args, UNet(args.base, dropout=0.0), x)
    y = y.to(args.device)
    runs = {"plain": step(prepare.compiled(args, model), losses.mse, x, y)}
    for label, options in prepare.NETS.items():
        for recompute in (False,) if args.compile else (False, True):  # a compiler chooses itself
            name = f"intervals, {label}" + (", recomputing" if recompute else "")
            runs[name] = interval_step(args, model, x, y, recompute, **options)
    return runs


def main() -> None:
    args = prepare.parse(prepare.parser(__doc__, base=16, size=64, batch=2))
    rows = measure.compare(variants(args), "plain", args.device, args.repeats, args.calls)
    for row in rows:
        row["memory_ratio"] = row["peak_mib"] / rows[0]["peak_mib"]
        row["variant"] += f" (memory x{row['memory_ratio']:.2f})"
    prepare.write(args, "memory", "Memory of a training step on the paper's U-Net", rows)


if __name__ == "__main__":
    main()
