"""How the cost of bounds grows with the image, the batch, the channels and the depth, next to the plain forward.

    python benchmarks/growth.py
    python benchmarks/growth.py --device cuda --compile --gap-dtype bfloat16 --channels-last --base 64 --together

Every row is a ratio to the plain forward at the same setting: where ratios stay, the cost grows as the plain forward's.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

import measure
import prepare
from intervalnn.paper.models import UNet


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


def rows_of(name: str, setting: Setting, args: argparse.Namespace, turn: Any = None) -> list[dict[str, Any]]:
    model, x = prepare.place(args, setting.model(), torch.randn(setting.batch, 1, setting.size, setting.size))
    plain = prepare.compiled(args, model)
    runs: dict[str, Any] = {"plain": lambda: plain(x)}
    for label, options in prepare.NETS.items():
        net = prepare.widen(model, x, gap_dtype=prepare.gap_dtype(args), **options)
        prepare.compile_intervals(args, net)
        runs[label] = lambda net=net: net(x)
    found = measure.compare(runs, "plain", args.device, args.repeats, args.calls, turn)
    return [row | {"variant": f"{name}, {row['variant']}"} for row in found]


# --- all settings side by side until they are to be timed ---

_SHARED: list[Any] = []  # what the processes share: a barrier and a lock


def _share(*shared: Any) -> None:
    _SHARED.extend(shared)


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until all are ready, and then for one's turn."""
    barrier, lock = _SHARED
    barrier.wait()
    with lock:
        yield


def _in_process(name: str, setting: Setting, args: argparse.Namespace) -> list[dict[str, Any]]:
    prepare.apply(args)
    try:
        with torch.no_grad():
            return rows_of(name, setting, args, _alone())
    except Exception:
        _SHARED[0].abort()  # lest the others wait for ever
        raise


def together(chosen: list[tuple[str, Setting]], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Compile all settings at once, a process each, and time them one after the other."""
    context = multiprocessing.get_context("spawn")
    shared = context.Barrier(len(chosen)), context.Lock()
    with ProcessPoolExecutor(len(chosen), context, _share, shared) as pool:
        found = [pool.submit(_in_process, name, setting, args) for name, setting in chosen]
        return [row for rows in found for row in rows.result()]


def main() -> None:
    parser = prepare.parser(__doc__, base=16)
    parser.add_argument("--only", default="", help="size, batch, base or depth; by default all of them")
    parser.add_argument("--together", action="store_true", help="compile all settings side by side")
    args = prepare.parse(parser)
    first = Setting(args.size, args.batch, args.base)
    chosen = [each for each in settings(first, args.device == "cuda") if each[0].startswith(args.only)]
    title = "How the cost of bounds grows"
    if args.together:
        prepare.write(args, "growth", title, together(chosen, args))
        return
    rows = []
    with torch.no_grad():
        for name, setting in chosen:
            torch.compiler.reset()
            rows += rows_of(name, setting, args)
            prepare.write(args, "growth", title, rows)  # after each, since all take long


if __name__ == "__main__":
    main()
