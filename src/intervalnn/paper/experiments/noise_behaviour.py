"""Figure "Noise Behavior" (Sec. 4): mean uncertainty against the noise.

The published figure changed ``beta`` and the learning rate along with the noise, so that what it shows is in part
the schedule; the schedule itself is in neither the paper nor anything else that we have. Here both are
fixed, as Sec. 4 states them. Beside that stand the paper's advice, ``beta`` in proportion to the underlying
model's error, and our own default, which is asked for a coverage.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from intervalnn.evaluation.records import Run
from intervalnn.files.whole import replacing
from intervalnn.network.network import IntervalNetwork
from intervalnn.paper.experiments.deconvolution import BETA, Setting, methods_of, underlying
from intervalnn.paper.experiments.scales import DeconvolutionScale
from intervalnn.training.loop import fit

__all__ = ["run"]

METHODS = ("INN, published", "INN", "MC dropout", "ProbOut, published")
PROPORTIONAL = "INN, published, beta in proportion to the error"


def run(scale: DeconvolutionScale, seed: int, device: str, folder: Path, say: Callable[[str], None]) -> Path:
    """Measure the mean score of each method at each noise, and write one file; go on where an earlier run stopped."""
    path = folder / f"noise-behaviour-seed-{seed}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"seed": seed, "rows": []}
    quiet = 0.0
    for noise in scale.sweep:
        setting = Setting(scale, noise, seed, device)
        row = next((row for row in found["rows"] if row["noise"] == noise), None)
        if row is None:
            say(f"noise behaviour: noise {noise:g}, seed {seed}")
            row = _row(setting, underlying(setting, folder / "work"), quiet, folder / f"{setting.name}.json")
            found["rows"].append(row)
            with replacing(path) as temporary:
                temporary.write_text(json.dumps(found | {"scale": asdict(scale), "beta": BETA}, indent=1))
        quiet = quiet or row["mae"]
    return path


def _row(setting: Setting, model: nn.Module, quiet: float, known: Path) -> dict[str, Any]:
    """Return the mean scores at one noise; those that a run has measured already are taken from its file."""
    train, _, test = setting.loaders()
    scale, seed = setting.scale, setting.seed
    with torch.no_grad():
        mae = float(torch.cat([(model(x) - y).abs() for x, y in train]).mean())
    beta = BETA * mae / (quiet or mae)

    def published(beta: float) -> IntervalNetwork:
        net = IntervalNetwork(model, layers="all")
        fit(
            net, train, beta=beta, recipe="paper", epochs=scale.epochs, lr=scale.published_lr, seed=seed, progress=False
        )
        return net

    measured = Run.load(known).methods if known.exists() else {}
    candidates = dict(methods_of(model, train, scale, seed))
    score = {
        name: statistics.fmean(measured[name].values["score"]) if name in measured else _score(candidates[name](), test)
        for name in METHODS
    }
    proportional = score["INN, published"] if beta == BETA else _score(published(beta), test)
    return {"noise": setting.noise, "mae": mae, "score": score | {PROPORTIONAL: proportional}}


def _score(method: Any, loader: DataLoader[Any]) -> float:
    return float(torch.cat([method.predict(x).score for x, _ in loader]).double().mean())
