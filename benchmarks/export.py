"""What bounds cost in another runtime: networks in onnxruntime, compiled ahead of time, and in eager torch, on the CPU.

    python benchmarks/export.py

Ratios are to the plain model in onnxruntime of the same run. Memory of onnxruntime is not counted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn

import measure
import prepare
from intervalnn.network.capture.quiet import quiet
from intervalnn.paper.models import UNet
from intervalnn.saving.exporting import export


def session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def plain(model: nn.Module, x: Tensor, path: Path) -> None:
    sizes = ({0: "batch", 2: "height", 3: "width"},)  # as many as the interval network's
    with quiet():
        torch.onnx.export(model, (x.repeat(2, 1, 1, 1),), path, input_names=["x"], dynamic_shapes=sizes, dynamo=True,
                          external_data=False)  # fmt: skip


def variants(args: argparse.Namespace, folder: Path) -> dict[str, Callable[[], Any]]:
    torch.manual_seed(0)
    model = UNet(args.base).eval()
    x = torch.randn(args.batch, 1, args.size, args.size)
    given: dict[str, np.ndarray[Any, Any]] = {"x": x.numpy()}
    plain(model, x, folder / "plain.onnx")
    first = session(folder / "plain.onnx", args.threads)
    runs: dict[str, Callable[[], Any]] = {"plain, onnxruntime": lambda: first.run(None, given)}
    runs["plain, eager"] = lambda: model(x)
    for label, layers in (("all layers", "all"), ("last 7", 7), ("last 1", 1)):
        net = prepare.widen(model, x, share=1e-6, layers=layers)
        path = folder / f"{label}.onnx".replace(" ", "-")
        export(net, x, path)
        own = session(path, args.threads)
        runs[f"intervals, {label}, onnxruntime"] = lambda own=own: own.run(None, given)
        export(net, x, path.with_suffix(".aoti.pt2"))
        package = torch._inductor.aoti_load_package(str(path.with_suffix(".aoti.pt2")))
        runs[f"intervals, {label}, compiled"] = lambda package=package: package(x)
        runs[f"intervals, {label}, eager"] = lambda net=net: net.predict(x)
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=int, default=64)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=None, help="where to write, without suffix")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        runs = variants(args, Path(folder))
        before = os.getloadavg()[0]
        rows = measure.compare(runs, "plain, onnxruntime", "cpu", args.repeats)
    settings = {key: str(value) for key, value in vars(args).items() if key != "out"}
    settings |= {"onnxruntime": onnxruntime.__version__, "load before": f"{before:.1f} on {os.cpu_count()} cores"}
    settings["peak memory"] = "that of torch; onnxruntime's is not counted"
    out = args.out or Path(__file__).parent / "results" / "export-cpu"
    measure.write(out, "Plain and interval networks in onnxruntime, on the paper's U-Net", settings, "cpu", rows)


if __name__ == "__main__":
    main()
