"""How far the interval forward is from the least that the machine allows: operations over the measured matrix rate,
and one pass over memory between products, over the measured bandwidth.

    python benchmarks/floor.py
    python benchmarks/floor.py --device cuda --compile --gap-dtype bfloat16 --size 512 --batch 4 --channels-last

The pass between two products reads what the one wrote and writes what the next reads; a convolution of the vendor's
library does neither itself.
"""

from __future__ import annotations

import argparse
import copy
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import torch
from growth import NETS
from propagation import widened
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from intervalnn.cost import seconds
from intervalnn.models import UNet


class Products(TorchDispatchMode):
    """Counts the operations of convolutions by data type, and the bytes that they read of inputs and write."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: Counter[torch.dtype] = Counter()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.convolution.default:
            x, weight = args[:2]
            self.operations[x.dtype] += 2 * result.numel() * math.prod(weight.shape[1:])
            self.bytes += x.nbytes + result.nbytes
        return result


def rate(dtype: torch.dtype, device: str) -> float:
    """Return operations per second of a large matrix product."""
    size = 8192 if device == "cuda" else 2048
    a, b = torch.randn(2, size, size, device=device).to(dtype)
    calls = 10 if device == "cuda" else 3
    seconds(lambda: a @ b, device, calls)
    return 2 * size**3 / min(seconds(lambda: a @ b, device, calls) for _ in range(5))


def bandwidth(device: str) -> float:
    """Return bytes per second of a copy, read and written."""
    source = torch.randn(2**29 if device == "cuda" else 2**26, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    return 2 * source.nbytes / min(seconds(lambda: target.copy_(source), device, 3) for _ in range(5))


def counted(run: Callable[[], Any]) -> Products:
    with Products() as found:
        run()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--base", type=int, default=64)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--calls", type=int, default=1, help="calls per timing")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--gap-dtype", default=None)
    parser.add_argument("--out", type=Path, default=None, help="where to write, without suffix")
    args = parser.parse_args()
    torch.set_float32_matmul_precision("high" if args.device == "cuda" else "highest")
    torch.manual_seed(0)
    model = UNet(args.base).eval().to(args.device)
    x = torch.randn(args.batch, 1, args.size, args.size, device=args.device)
    if args.channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    gap_dtype = getattr(torch, args.gap_dtype) if args.gap_dtype else None
    with torch.no_grad():
        plain = torch.compile(copy.deepcopy(model), dynamic=False) if args.compile else model
        runs: dict[str, Callable[[], Tensor]] = {"plain": lambda: plain(x)}
        counts = {"plain": counted(lambda: model(x))}
        for label, options in NETS.items():
            net = widened(model, x, gap_dtype=gap_dtype, **options)
            counts[label] = counted(lambda net=net: net(x))
            if args.compile:
                net.compile(dynamic=False)
            runs[label] = lambda net=net: net(x)
        rows = measure.compare(runs, "plain", args.device, args.repeats, args.calls)
    rates = {dtype: rate(dtype, args.device) for dtype in {d for c in counts.values() for d in c.operations}}
    speed = bandwidth(args.device)
    for row in rows:
        found = counts[row["variant"]]
        products = sum(count / rates[dtype] for dtype, count in found.operations.items())
        row |= {"products": products, "passes": found.bytes / speed}
        row["floor"] = row["products"] + row["passes"]
        row["x floor"] = row["seconds"] / row["floor"]
        row["variant"] += (
            f" (products {1e3 * products:.2f} ms, passes {1e3 * row['passes']:.2f} ms, {row['x floor']:.2f} x floor; "
            f"floor's ratio {row['floor'] / rows[0]['floor']:.2f})"
        )
    about = {key: str(value) for key, value in vars(args).items() if key != "out"}
    about |= {f"{dtype}, TFLOP/s": f"{value / 1e12:.3g}" for dtype, value in rates.items()}
    about["copy, GB/s"] = f"{speed / 1e9:.3g}"
    out = args.out or Path(__file__).parent / "results" / f"floor-{args.device}"
    measure.write(out, "The interval forward against the least that the machine allows", about, args.device, rows)


if __name__ == "__main__":
    main()
