"""How far the interval forward is from the least that the machine allows: operations over the measured matrix rate,
and one pass over memory between products, over the measured bandwidth. Beside it stands what the products take where
each is called by itself, as the vendor's library has them and as they are without compiling, which joins some.

    python benchmarks/floor.py
    python benchmarks/floor.py --device cuda --compile --gap-dtype bfloat16 --size 512 --batch 4 --channels-last

The pass between two products reads what the one wrote and writes what the next reads; a convolution of the vendor's
library does neither itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import measure
import prepare
from intervalnn.evaluation.cost import seconds
from intervalnn.paper.models import UNet


class Products(TorchDispatchMode):
    """Counts convolutions, their operations by data type, and the bytes that they read of inputs and write."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[tuple[Any, ...]] = Counter()
        self.operations: Counter[torch.dtype] = Counter()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.convolution.default:
            x, weight, transposed = *args[:2], args[6]
            self.operations[x.dtype] += 2 * (x if transposed else result).numel() * math.prod(weight.shape[1:])
            self.bytes += x.nbytes + result.nbytes
            settings = (tuple(setting) if isinstance(setting, list) else setting for setting in args[3:])
            self.calls[x.dtype, x.shape, weight.shape, *settings] += 1
        return result


def rate(dtype: torch.dtype, device: str) -> float:
    """Return operations per second of a large matrix product."""
    size = 8192 if device == "cuda" else 2048
    a, b = torch.randn(2, size, size, device=device).to(dtype)
    calls = 10 if device == "cuda" else 3
    seconds(lambda: a @ b, device, calls)
    return 2 * size**3 / min(seconds(lambda: a @ b, device, calls) for _ in range(5))


def alone(call: tuple[Any, ...], device: str, layout: torch.memory_format) -> float:
    """Return seconds of one convolution, called by itself and without its bias."""
    dtype, inputs, weights, *settings = call
    x, w = (torch.randn(shape, device=device).to(dtype, memory_format=layout) for shape in (inputs, weights))
    calls = 10 if device == "cuda" else 1

    def run() -> Tensor:
        return torch.convolution(x, w, None, *settings)

    seconds(run, device, calls)
    return min(seconds(run, device, calls) for _ in range(3))


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
    args = prepare.parse(prepare.parser(__doc__))
    torch.manual_seed(0)
    model, x = prepare.place(args, UNet(args.base), torch.randn(args.batch, 1, args.size, args.size))
    with torch.no_grad():
        plain = prepare.compiled(args, model)
        runs: dict[str, Callable[[], Tensor]] = {"plain": lambda: plain(x)}
        counts = {"plain": counted(lambda: model(x))}
        for label, options in prepare.NETS.items():
            net = prepare.widen(model, x, gap_dtype=prepare.gap_dtype(args), **options)
            counts[label] = counted(lambda net=net: net(x))
            prepare.compile_intervals(args, net)
            runs[label] = lambda net=net: net(x)
        rows = measure.compare(runs, "plain", args.device, args.repeats, args.calls)
    rates = {dtype: rate(dtype, args.device) for dtype in {d for c in counts.values() for d in c.operations}}
    speed = bandwidth(args.device)
    layout = torch.channels_last if args.channels_last else torch.contiguous_format
    with torch.no_grad():
        times = {
            call: alone(call, args.device, layout) for call in {c for found in counts.values() for c in found.calls}
        }
    for row in rows:
        found = counts[row["variant"]]
        products = sum(count / rates[dtype] for dtype, count in found.operations.items())
        row |= {"products": products, "passes": found.bytes / speed}
        row["products alone"] = sum(number * times[call] for call, number in found.calls.items())
        row["floor"] = row["products"] + row["passes"]
        row["x floor"] = row["seconds"] / row["floor"]
        row["variant"] += (
            f" (products {1e3 * products:.2f} ms, by themselves {1e3 * row['products alone']:.2f} ms, "
            f"passes {1e3 * row['passes']:.2f} ms, {row['x floor']:.2f} x floor; "
            f"floor's ratio {row['floor'] / rows[0]['floor']:.2f})"
        )
    about = {f"{dtype}, TFLOP/s": f"{value / 1e12:.3g}" for dtype, value in rates.items()}
    about["copy, GB/s"] = f"{speed / 1e9:.3g}"
    prepare.write(args, "floor", "The interval forward against the least that the machine allows", rows, **about)


if __name__ == "__main__":
    main()
