"""Figure "Noise Behavior" (Sec. 4): mean uncertainty against the noise.

The published figure changed ``beta`` and the learning rate along with the noise, so that what it shows is in part
the schedule; the schedule itself is in neither the paper nor anything else that we have. Here both are
fixed, as Sec. 4 states them. Beside that stand the paper's advice, ``beta`` in proportion to the underlying
model's error, and our own default, which is asked for a coverage.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from intervalnn import methods
from intervalnn.experiments.deconvolution import BETA, COVERAGE, LAYERS, Setting, underlying
from intervalnn.experiments.scales import DeconvolutionScale
from intervalnn.network import IntervalNetwork
from intervalnn.training import fit

__all__ = ["run"]


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
            row = _row(setting, underlying(setting, folder / "work"), quiet)
            found["rows"].append(row)
            temporary = path.with_suffix(".part")
            temporary.write_text(json.dumps(found | {"scale": asdict(scale), "beta": BETA}, indent=1))
            temporary.replace(path)
        quiet = quiet or row["mae"]
    return path


def _row(setting: Setting, model: nn.Module, quiet: float) -> dict[str, Any]:
    train, _, test = setting.loaders()
    scale, seed = setting.scale, setting.seed
    with torch.no_grad():
        mae = float(torch.cat([(model(x) - y).abs() for x, y in train]).mean())
    published: dict[str, Any] = {
        "recipe": "paper",
        "epochs": scale.epochs,
        "lr": scale.published_lr,
        "seed": seed,
        "progress": False,
    }
    everywhere = [IntervalNetwork(model, layers="all") for _ in range(2)]
    fit(everywhere[0], train, beta=BETA, **published)
    fit(everywhere[1], train, beta=BETA * mae / (quiet or mae), **published)
    ours = IntervalNetwork(model, layers=LAYERS)
    fit(ours, train, coverage=COVERAGE, epochs=scale.fit_epochs, seed=seed, progress=False)
    prob_out = methods.ProbOut(model)
    fit(prob_out, train, recipe="paper", epochs=scale.epochs, seed=seed, progress=False)
    candidates = {
        "INN, published, fixed beta": everywhere[0],
        "INN, published, beta in proportion to the error": everywhere[1],
        "INN": ours,
        "MC dropout": methods.MCDropout(model, samples=scale.passes, seed=seed),
        "ProbOut, published": prob_out,
    }
    return {"noise": setting.noise, "mae": mae, "score": {k: _mean_score(m, test) for k, m in candidates.items()}}


def _mean_score(method: Any, loader: DataLoader[Any]) -> float:
    return float(torch.cat([method.predict(x).score for x, _ in loader]).double().mean())
