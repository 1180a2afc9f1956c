"""What bounds cost: the interval forward next to the plain one, on a U-Net of the paper's shape.

    python benchmarks/propagation.py                        # CPU, eager
    python benchmarks/propagation.py --device cuda --compile --gap-dtype bfloat16 --size 512 --batch 4

Ratios are to the plain forward of the same run (compiled where the others are).
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import measure
import prepare
from intervalnn.paper.models import UNet


def dropout_passes(args: argparse.Namespace, model: nn.Module, x: Tensor, passes: int) -> Callable[[], Tensor]:
    """Return mean and deviation of several passes with only the dropout layers active."""
    active = copy.deepcopy(model)
    for module in active.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    forward = prepare.compiled(args, active)

    def run() -> Tensor:
        samples = torch.stack([forward(x).clone() for _ in range(passes)])  # a CUDA graph reuses its outputs
        return samples.std(0)

    return run


def variants(args: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    torch.manual_seed(0)
    model, x = prepare.place(args, UNet(args.base), torch.randn(args.batch, 1, args.size, args.size))
    plain = prepare.compiled(args, model)
    runs: dict[str, Callable[[], Any]] = {"plain": lambda: plain(x)}
    exact = {"all layers, exact form": {"layers": "all"}, "last 7, exact form": {"layers": 7}}
    nets = prepare.NETS | {name: options | {"exact": True} for name, options in exact.items() if not args.skip_exact}
    nets |= {"last 1": {"layers": 1}, "last 1 and a scout": {"layers": 1, "scout": True}}
    for label, options in (nets | {"a scout alone": {"layers": 0, "scout": True}}).items():
        net = prepare.widen(model, x, gap_dtype=prepare.gap_dtype(args), **options)
        prepare.compile_intervals(args, net)
        runs[f"intervals, {label}"] = lambda net=net: net(x)
    runs["MC dropout, 10 passes"] = dropout_passes(args, model, x, 10)
    return runs


def main() -> None:
    parser = prepare.parser(__doc__)
    parser.add_argument("--skip-exact", action="store_true")
    args = prepare.parse(parser)
    with torch.no_grad():
        rows = measure.compare(variants(args), "plain", args.device, args.repeats, args.calls)
    prepare.write(args, "propagation", "Interval propagation on the paper's U-Net", rows)


if __name__ == "__main__":
    main()
