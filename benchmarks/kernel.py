"""A kernel of our own against what is compiled: the products of a layer's gaps, and the pass behind them, in one.

    python benchmarks/kernel.py

For an NVIDIA GPU of compute capability 9 or later. A layer is a 3x3 convolution of non-negative inputs and a ReLU.
Compiled, it is a call of the vendor's library for each product and a pass over memory, as between two layers of an
interval network (whose products are joined besides, which is faster yet); the model's own product is in neither. The
kernel, in Triton, loads inputs through the tensor memory accelerator, and computes the pass on what it has accumulated.
The best of its settings counts.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional
from triton.tools.tensor_descriptor import TensorDescriptor

import measure
from intervalnn.evaluation.cost import seconds
from intervalnn.network.network import _FUSED

CASES = ((64, 64, 512), (128, 64, 512), (128, 128, 256))  # channels in, channels out, height and width
BATCH = 4
LAST = {"memory_format": torch.channels_last}


@dataclass(frozen=True)
class Setting:
    """How the kernel cuts its work: pixels of a row, channels in and out at a time; programs per processor.

    Without a number of programs each takes one part of the work, else as many as come, loading what is next meanwhile.
    """

    row: int
    inputs: int
    outputs: int
    warps: int
    stages: int
    programs: int = 0


SETTINGS = (
    Setting(128, 32, 64, 4, 2),
    Setting(128, 32, 64, 4, 3),
    Setting(128, 64, 64, 8, 2),
    Setting(256, 32, 64, 8, 3),
    Setting(128, 32, 128, 8, 4),
    Setting(128, 32, 64, 4, 2, programs=2),
    Setting(128, 32, 64, 4, 3, programs=2),
    Setting(128, 32, 64, 8, 4, programs=1),
    Setting(256, 32, 64, 8, 3, programs=1),
    Setting(128, 32, 128, 8, 4, programs=1),
)


@triton.jit
def kernel(
    sums, uppers, differences, weights, point, bias, point_out, upper_out, sum_out, difference_out,
    height, width, tiles,
    CIN: tl.constexpr, COUT: tl.constexpr, ROW: tl.constexpr, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr,
    SYMMETRIC: tl.constexpr, WITH_PASS: tl.constexpr, PROGRAMS: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    steps: tl.constexpr = CIN // INPUTS
    parts: tl.constexpr = COUT // OUTPUTS
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=FLATTEN):
        first = (tile % parts) * OUTPUTS
        rows = width // ROW
        left = (tile // parts) % rows * ROW
        line = tile // parts // rows
        even = tl.zeros((ROW, OUTPUTS), dtype=tl.float32)
        odd = tl.zeros((ROW, OUTPUTS), dtype=tl.float32)
        for k in range(9 * steps):
            place = k // steps
            channel = (k % steps) * INPUTS
            y = line % height + place // 3 - 1  # outside of the image, zeros are loaded
            x = left + place % 3 - 1
            at = k * INPUTS
            s = sums.load([line // height, y, x, channel]).reshape(ROW, INPUTS)
            u = uppers.load([line // height, y, x, channel]).reshape(ROW, INPUTS)
            d = differences.load([line // height, y, x, channel]).reshape(ROW, INPUTS)
            even = tl.dot(s, weights.load([at, first]), even)
            even = tl.dot(u, weights.load([9 * CIN + at, first]), even)
            odd = tl.dot(d, weights.load([18 * CIN + at, first]), odd)
            if not SYMMETRIC:
                odd = tl.dot(u, weights.load([27 * CIN + at, first]), odd)
        channels = first + tl.arange(0, OUTPUTS)
        pixels = line.to(tl.int64) * width + left + tl.arange(0, ROW)
        to = pixels[:, None] * COUT + channels[None, :]
        if WITH_PASS:
            p = tl.load(point + to) + tl.load(bias + channels)[None, :]
            lost = 0.01 * tl.abs(odd)
            above = tl.maximum(even + odd + lost, 0.0)
            below = tl.maximum(even - odd + lost, 0.0)
            c = tl.maximum(p, 0.0)
            above = tl.minimum(tl.maximum(p + above, 0.0) - c, above)
            below = tl.minimum(c - tl.maximum(p - below, 0.0), below)
            tl.store(point_out + to, c)
            tl.store(upper_out + to, (c + above).to(tl.bfloat16))
            tl.store(sum_out + to, (above + below).to(tl.bfloat16))
            tl.store(difference_out + to, (above - below).to(tl.bfloat16))
        else:
            tl.store(sum_out + to, even.to(tl.bfloat16))
            tl.store(difference_out + to, odd.to(tl.bfloat16))


@dataclass(frozen=True)
class Layer:
    """Inputs of a layer (sums of gaps, upper ends, differences of gaps), its weights, and its own product."""

    inputs: tuple[Tensor, Tensor, Tensor]
    weights: tuple[Tensor, ...]  # |W| / 2, (U + D) / 2, W / 2, and (U - D) / 2 unless symmetric
    point: Tensor
    bias: Tensor

    @property
    def operations(self) -> int:
        return sum(2 * w[0].numel() * self.point.numel() for w in self.weights)


def make(channels: int, outputs: int, size: int, symmetric: bool) -> Layer:
    torch.manual_seed(0)
    shape = (BATCH, channels, size, size)
    below, above = 0.01 * torch.rand(2, *shape, device="cuda")
    upper = torch.rand(shape, device="cuda") + above
    w = torch.randn(outputs, channels, 3, 3, device="cuda") / channels**0.5 / 3
    down, up = w.abs() * 1e-3 * torch.rand(2, *w.shape, device="cuda")
    weights = (w.abs() / 2, (up + down) / 2, w / 2, (up - down) / 2)[: 3 if symmetric else 4]
    point = torch.randn(BATCH, outputs, size, size, device="cuda").contiguous(**LAST)
    gaps = [x.bfloat16().contiguous(**LAST) for x in (above + below, upper, above - below, *weights)]
    return Layer((gaps[0], gaps[1], gaps[2]), tuple(gaps[3:]), point, torch.randn(outputs, device="cuda"))


@torch.compile(dynamic=False, options=_FUSED)
def compiled(layer: Layer, stacked: Tensor) -> tuple[Tensor, ...]:
    """Return the points behind the ReLU, and what the next layer multiplies: upper ends, sums, differences of gaps."""
    (s, u, d), w = layer.inputs, layer.weights
    even, odd, reach = (functional.conv2d(x, k, padding=1).float() for x, k in ((s, w[0]), (d, w[2]), (u, stacked)))
    even = even + reach[:, : w[0].size(0)]
    odd = odd + reach[:, w[0].size(0) :] if len(w) > 3 else odd
    p = layer.point + layer.bias[:, None, None]
    lost = 0.01 * odd.abs()
    above, below = (even + odd + lost).clamp(min=0.0), (even - odd + lost).clamp(min=0.0)
    c = p.clamp(min=0.0)
    above = torch.minimum((p + above).clamp(min=0.0) - c, above)
    below = torch.minimum(c - (p - below).clamp(min=0.0), below)
    return c, *(x.bfloat16() for x in (c + above, above + below, above - below))


def launcher(layer: Layer, how: Setting, with_pass: bool) -> Callable[[], tuple[Tensor, ...]]:
    channels, (batch, outputs, height, width) = layer.inputs[0].size(1), layer.point.shape
    flat = torch.cat([w.permute(2, 3, 1, 0).reshape(9 * channels, outputs) for w in layer.weights])
    out = torch.empty_like(layer.point), *(torch.empty_like(layer.point, dtype=torch.bfloat16) for _ in range(3))
    block = [1, 1, how.row, how.inputs]
    inputs = [TensorDescriptor.from_tensor(x.permute(0, 2, 3, 1), block) for x in layer.inputs]
    weights = TensorDescriptor.from_tensor(flat, [how.inputs, how.outputs])
    tiles = batch * height * (width // how.row) * (outputs // how.outputs)
    processors = torch.cuda.get_device_properties("cuda").multi_processor_count
    programs = how.programs * processors or tiles
    symmetric = len(layer.weights) == 3

    def run() -> tuple[Tensor, ...]:
        kernel[(programs,)](
            *inputs, weights, layer.point, layer.bias, *out, height, width, tiles, channels, outputs, how.row,
            how.inputs, how.outputs, symmetric, with_pass, programs, how.programs > 0,
            num_warps=how.warps, num_stages=how.stages,
        )  # fmt: skip
        return out

    return run


def best(layer: Layer, with_pass: bool) -> tuple[Setting, Callable[[], Any]]:
    """Return the fastest setting that runs."""
    found = []
    for how in SETTINGS:
        if how.outputs > layer.point.size(1):
            continue
        run = launcher(layer, how, with_pass)
        try:
            seconds(run, "cuda", 3)
        except triton.runtime.errors.OutOfResources:
            continue
        found.append((min(seconds(run, "cuda", 5) for _ in range(3)), len(found), how, run))
    return min(found)[2:]


def check(found: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    """Raise unless both are the same, up to the rounding of products to bfloat16."""
    for got, want in zip(found, expected, strict=True):
        torch.testing.assert_close(got.float(), want.float(), rtol=2e-2, atol=1e-2 * want.abs().max().item())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--out", type=Path, default=None, help="where to write, without suffix")
    args = parser.parse_args()
    rows = []
    with torch.no_grad():
        for *case, symmetric in [(*case, symmetric) for case in CASES for symmetric in (False, True)]:
            layer = make(*case, symmetric=symmetric)
            (how, fused), (alone, products) = best(layer, True), best(layer, False)
            stacked = torch.cat((layer.weights[1], *layer.weights[3:])).contiguous(**LAST)
            check(fused(), compiled(layer, stacked))
            name = f"{case[0]} to {case[1]} channels, {case[2]}x{case[2]}, {'symmetric' if symmetric else 'two-sided'}"
            runs = {
                f"{name}: compiled": lambda layer=layer, stacked=stacked: compiled(layer, stacked),
                f"{name}: kernel, {how}": fused,
                f"{name}: its products alone, {alone}": products,
            }
            found = measure.compare(runs, f"{name}: compiled", "cuda", args.repeats, args.calls)
            for row in found:
                row["variant"] += f" ({layer.operations / row['seconds'] / 1e12:.0f} TFLOP/s)"
            rows += found
    out = args.out or Path(__file__).parent / "results" / "kernel-cuda"
    settings = {"repeats": args.repeats, "calls": args.calls, "batch": BATCH}
    measure.write(out, "A kernel of our own against the compiled layer", settings, "cuda", rows, baseline="compiled")


if __name__ == "__main__":
    main()
