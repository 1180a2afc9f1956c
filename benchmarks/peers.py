"""Interval propagation next to a peer's, where a peer can do the job.

    pip install --no-deps bound-propagation==0.4.7
    python benchmarks/peers.py

No peer bounds the paper's U-Net: bound_propagation has no convolution, and the released auto_LiRPA (0.3) does not
import beside a current NumPy. So the peer is compared where it works: a multilayer perceptron with point weights and
an interval input. Ours also gives the prediction itself, which the peer's result does not contain.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import intervalnn as inn
import measure


def variants(batch: int, radius: float) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    ).eval()  # fmt: skip
    x = torch.rand(batch, 784)
    gap = torch.full_like(x, radius)
    net = inn.IntervalNetwork(model, layers=[])
    box = inn.Interval(x, gap, gap)
    runs: dict[str, Callable[[], Any]] = {"plain": lambda: model(x), "intervalnn": lambda: net(box)}
    facts: dict[str, Any] = {"mean width, intervalnn": float(net(box).width.mean())}
    try:
        from bound_propagation import BoundModelFactory, HyperRectangle
    except ImportError as error:
        facts["bound_propagation"] = f"not installed: {error}"
        return runs, facts
    peer = BoundModelFactory().build(model)
    rectangle = HyperRectangle.from_eps(x, radius)
    bounds = peer.ibp(rectangle)
    facts["mean width, bound_propagation"] = float((bounds.upper - bounds.lower).mean())
    runs["bound_propagation"] = lambda: peer.ibp(rectangle)
    return runs, facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--radius", type=float, default=0.01)
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    with torch.no_grad():
        runs, facts = variants(args.batch, args.radius)
        rows = measure.compare(runs, "plain", "cpu", args.repeats, calls=20)
    out = Path(__file__).parent / "results" / "peers-cpu"
    measure.write(out, "Interval propagation next to a peer's, on an MLP", vars(args) | facts, "cpu", rows)


if __name__ == "__main__":
    main()
