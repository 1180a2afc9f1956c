"""Run time (Sec. 4): what a prediction and a training epoch cost, in multiples of the plain network's.

Measured by itself, with nothing else on the machine, on networks that were hardly trained: neither cost depends on
what the weights are.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn.evaluation.cost import seconds, versions
from intervalnn.files.whole import replacing
from intervalnn.paper.experiments.comparison import Make, Progress

__all__ = ["run", "table"]

REPEATS = 9
UNTRAINED = ("MC dropout", "constant width")


def run(
    path: Path,
    x: Tensor,
    plain: Callable[[int], nn.Module],
    methods: Callable[[nn.Module, int], Iterator[tuple[str, Make]]],
    *,
    more: int,
    say: Progress,
) -> Path:
    """Measure every method, and write one file.

    Args:
        path: The file; where it is there, nothing is measured.
        x: One batch.
        plain: Returns the plain network, trained for so many epochs.
        methods: Yields names, and how each is made and fitted for so many epochs.
        more: How many epochs the longer of two fits has more; what they differ by is their cost.
        say: Is told what is going on.
    """
    if path.exists():
        return path
    kind = x.device.type

    def cost(make: Callable[[int], Any], predict: Callable[[Any], Any]) -> dict[str, float]:
        """Return the seconds of a prediction of one batch, by the median of some, and of a training epoch."""
        method = make(1)  # warms up
        short, long = (seconds(lambda epochs=epochs: make(epochs), kind) for epochs in (1, 1 + more))  # type: ignore[misc]
        with torch.no_grad():
            predict(method)
            took = [seconds(lambda: predict(method), kind) for _ in range(REPEATS)]
        return {"predict": statistics.median(took), "epoch": (long - short) / more}

    say("run time: the plain network")
    found = {"plain": cost(plain, lambda model: model(x))}
    model = plain(1)
    for name, _ in methods(model, 1):
        say(f"run time: {name}")

        def make(epochs: int, name: str = name) -> Any:
            return dict(methods(model, epochs))[name]()

        found[name] = cost(make, lambda method: method.predict(x))
    about = {"batch": len(x), "versions": versions(kind), "seconds": found}
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(about, indent=1))
    return path


def table(path: Path, samples: str) -> str:
    """Return what the file says as Markdown."""
    found = json.loads(path.read_text())
    plain = found["seconds"].pop("plain")
    lines = [
        f"\n## Run time\n\nA prediction of {found['batch']} {samples} in multiples of K, the plain forward pass "
        f"({plain['predict'] * 1e3:.2g} ms), and a training epoch in multiples of one of the plain network "
        f"({plain['epoch']:.2g} s), on {found['versions']['device']}, uncompiled, with nothing beside:\n",
        "| method | prediction, x K | training epoch, x plain |",
        "| --- | --- | --- |",
    ]
    for name, took in found["seconds"].items():
        trained = f"{took['epoch'] / plain['epoch']:.1f}" if name not in UNTRAINED else "none"
        lines.append(f"| {name} | {took['predict'] / plain['predict']:.1f} | {trained} |")
    return "\n".join(lines)
