"""Runs for the tests of reports: small ones made of numbers, and one that was really measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import intervalnn as inn
from intervalnn import metrics
from intervalnn.evaluation.examples import curves_of, save_examples
from intervalnn.evaluation.records import Better, Measured, Run

BETTER: dict[str, Better] = {"winkler at equal coverage": "lower", "mae": "lower", "pearson": "higher"}


def numbers(mean: float, spread: float = 0.1, n: int = 40, seed: int = 0) -> list[float]:
    """Return values of so many samples, with just this mean."""
    drawn = np.random.default_rng(seed).normal(size=n)
    return (mean + spread * (drawn - drawn.mean())).tolist()  # type: ignore[no-any-return]


def run(values: dict[str, dict[str, list[float]]], *, seed: int = 0, coverage: float = 0.9, **settings: Any) -> Run:
    """Return a run of methods with these values, by method and metric."""
    methods = {name: Measured(each, 0.001 * (i + 1), 10.0 + i) for i, (name, each) in enumerate(values.items())}
    return Run(methods, coverage, BETTER, seed, settings, {"torch": "2.0", "device": "a machine"})


def scored(**means: float) -> dict[str, dict[str, list[float]]]:
    """Return methods of these mean interval scores, each with noise of its own."""
    return {name: {"winkler at equal coverage": numbers(mean, seed=i)} for i, (name, mean) in enumerate(means.items())}


class Leaning(nn.Module):
    """Predicts zero, with bounds that reach further up than down, and further for large inputs."""

    def __init__(self, size: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.calibration: inn.Calibration | None = None

    def predict(self, x: Tensor) -> inn.Prediction:
        gap = self.size * (0.5 + x.abs())
        p = inn.Prediction(torch.zeros_like(x), gap, 2 * gap, 3 * gap)
        return p if self.calibration is None else self.calibration(p)


def pairs(n: int, shape: tuple[int, ...] = (1, 24), seed: int = 0) -> list[tuple[Tensor, Tensor]]:
    """Return two batches whose errors grow with the input."""
    noise = torch.Generator().manual_seed(seed)
    x, e = torch.randn(2, n, *shape, generator=noise)
    return list(zip(x.chunk(2), ((0.5 + x.abs()) * e).chunk(2), strict=True))


def measured(folder: Path, shape: tuple[int, ...] = (1, 24), seeds: tuple[int, ...] = (0, 1)) -> list[Path]:
    """Write runs that were really measured, with all that a report can show."""
    torch.manual_seed(0)
    width = shape[-1]
    net = inn.IntervalNetwork(nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, width)), layers="all")
    net.set_gaps("0.weight", 0.1, 0.2)
    net.set_gaps("2.weight", 0.2, 0.1)
    net.set_gaps("2.bias", 0.4, 0.5)
    methods = {"INN": net, "leaning": Leaning(), "constant": inn.ConstantWidth(nn.Identity())}
    written = []
    for seed in seeds:
        test, held_out = pairs(30, shape, seed), pairs(40, shape, seed + 10)
        results = inn.evaluate(
            methods,
            test,
            [metrics.mae, metrics.coverage, metrics.winkler, metrics.pearson, metrics.ause],
            held_out=held_out,
            seed=seed,
            settings={"curves": {name: curves_of(method, test) for name, method in methods.items()}},
        )
        written.append(results.runs[0].save(folder / f"run-{seed}.json"))
        save_examples(written[-1], methods, test)
    return written
