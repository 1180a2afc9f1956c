"""Run time (Sec. 4): what a prediction and a training step cost, in multiples of the plain network's.

Measured by itself, with nothing else on the machine, on networks that were hardly trained: neither cost depends on
what the weights are.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from intervalnn import losses
from intervalnn.cost import seconds, versions
from intervalnn.experiments.deconvolution import Setting, methods_of
from intervalnn.experiments.scales import DeconvolutionScale
from intervalnn.models import DeconvNet
from intervalnn.training import fit

__all__ = ["run"]

REPEATS = 9


def run(scale: DeconvolutionScale, device: str, folder: Path, say: Callable[[str], None]) -> Path:
    """Measure every method, and write one file."""
    path = folder / "run-time.json"
    if path.exists():
        return path
    kind = torch.device(device).type
    setting = Setting(scale, scale.noises[-1], 0, device)
    train, _, test = setting.loaders()
    x = next(iter(test))[0]
    more = max(2, scale.epochs // 12)  # what two fits differ by is the cost of the epochs that one has more

    def cost(make: Callable[[int], Any], predict: Callable[[Any], Any]) -> dict[str, float]:
        """Return the seconds of a prediction of one batch, and of a training epoch, by the median of some."""
        made: list[Any] = []
        make(1)  # warms up
        short, long = (seconds(lambda epochs=epochs: made.append(make(epochs)), kind) for epochs in (1, 1 + more))  # type: ignore[misc]
        with torch.no_grad():
            predict(made[0])
            took = [seconds(lambda: predict(made[0]), kind) for _ in range(REPEATS)]
        return {"predict": statistics.median(took), "epoch": (long - short) / more}

    def plain(epochs: int) -> DeconvNet:
        model = DeconvNet(scale.channels).to(device)
        fit(model, train, loss=losses.mse, epochs=epochs, lr=scale.lr, progress=False)
        return model.eval()

    say("run time: the plain network")
    model = plain(1)
    found = {"plain": cost(plain, lambda model: model(x))}
    for name, _ in methods_of(model, train, scale, 0):
        say(f"run time: {name}")

        def make(epochs: int, name: str = name) -> Any:
            return dict(methods_of(model, train, replace(scale, epochs=epochs, fit_epochs=epochs), 0))[name]()

        found[name] = cost(make, lambda method: method.predict(x))
    about = {"batch": len(x), "scale": scale.name, "versions": versions(kind), "seconds": found}
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps(about, indent=1))
    return temporary.replace(path)
