"""What it costs never to be silently wrong: the check at the first call, and the look at the weights at every call.

    python benchmarks/checks.py

*At the first call* the program is compared with the model on two inputs: its time over that of ``torch.export.export``
and that of the whole first call. *At every call* what was prepared of the weights is compared with the weights as they
are: its time over that of a forward pass, plain and over intervals.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import intervalnn as inn
from intervalnn.evaluation.cost import seconds, versions
from intervalnn.network import search
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.faithful import Witness
from intervalnn.paper.models import UNet
from networks import zoo

NAMES = (
    "MLP, ReLU", "U-Net, transposed convolution, batch norm", "DeconvNet of the paper", "ResNet, batch norm",
    "3D net, instance norm, trilinear", "transformer encoder, GELU, norm first", "GRU", "MLP-Mixer",
    "vision transformer",
)  # fmt: skip


class Watched(Witness):
    """Adds up how long the check takes."""

    spent = 0.0

    def __init__(self, *args: Any) -> None:
        start = time.perf_counter()
        super().__init__(*args)
        Watched.spent += time.perf_counter() - start

    def refuse_other(self, program: Any) -> None:
        start = time.perf_counter()
        super().refuse_other(program)
        Watched.spent += time.perf_counter() - start


def cases(base: int, size: int) -> dict[str, tuple[torch.nn.Module, Any]]:
    """Return networks from small to large, with the arguments of a call."""
    found = {case.name: (case.build(), case.call()) for case in zoo.ZOO if case.name in NAMES}
    torch.manual_seed(0)
    return found | {f"U-Net of the paper, {size}x{size}": (UNet(base).eval(), ((torch.randn(1, 1, size, size),), {}))}


@torch.no_grad()
def first_call(model: torch.nn.Module, call: Any) -> tuple[float, float, float]:
    """Return the seconds of torch's export alone, of a first call, and of the check in it."""
    args, kwargs = call
    export = seconds(lambda: torch.export.export(model, args, kwargs, strict=False), "cpu")
    net, Watched.spent, search.Witness = inn.IntervalNetwork(model, layers="all"), 0.0, Watched
    try:
        whole = seconds(lambda: net(*args, **kwargs), "cpu")
    finally:
        search.Witness = Witness
    return export, whole, Watched.spent


@torch.no_grad()
def every_call(model: torch.nn.Module, call: Any, repeats: int) -> tuple[list[float], list[float]]:
    """Return the time of looking at the weights over that of a plain pass, and over that of one with intervals."""
    args, kwargs = call
    net = inn.IntervalNetwork(model, layers="all")
    net(*args, **kwargs)
    plan, _ = net._look_up(Call.of(args, kwargs))
    known = plan.current()
    plain, bounds = [], []
    calls = max(1, int(0.05 / max(1e-6, seconds(lambda: model(*args, **kwargs), "cpu"))))
    for _ in range(repeats):
        look = seconds(lambda: known.holds(plan.weights, static=False), "cpu", calls)
        plain.append(look / seconds(lambda: model(*args, **kwargs), "cpu", calls))
        bounds.append(look / seconds(lambda: net(*args, **kwargs), "cpu", calls))
    return plain, bounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=int, default=64)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "checks-cpu")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    lines = [
        "| network | check over export | check over the first call | look over a plain pass | over one with bounds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, (model, call) in cases(args.base, args.size).items():
        export, whole, check = first_call(model, call)
        plain, bounds = every_call(model, call, args.repeats)
        rows.append(
            {"network": name, "export": export, "first call": whole, "check": check, "plain": plain, "bounds": bounds}
        )
        middle = [statistics.median(each) for each in (plain, bounds)]
        shares = [check / export, check / whole, *middle]
        lines.append(f"| {name} | {' | '.join(f'{share:.1%}' for share in shares)} |")
        print(lines[-1], flush=True)
    command = " ".join(["python", *sys.argv])
    record = {"command": command, "threads": 1, **versions("cpu"), "rows": rows}
    args.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    args.out.with_suffix(".md").write_text(f"`{command}`\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
