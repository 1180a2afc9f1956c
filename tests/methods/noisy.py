"""Small tasks whose noise is known, and models trained on them, for the tests of the baselines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import intervalnn as inn
from intervalnn import losses
from intervalnn.methods import (
    ConstantWidth,
    Ensemble,
    ErrorPredictor,
    IntervalLossHeads,
    MCDropout,
    ProbOut,
    QuantileHeads,
)
from intervalnn.methods.baseline import Baseline
from intervalnn.methods.copies import own_copy
from intervalnn.training.loop import History

MAKERS: dict[str, Callable[[nn.Module], Baseline]] = {
    "MCDropout": lambda model: MCDropout(model, samples=8),
    "ProbOut": ProbOut,
    "Ensemble": lambda model: Ensemble([model, model, own_copy(model).apply(_shifted)]),
    "Ensemble.like": lambda model: Ensemble.like(model, 2),
    "QuantileHeads": QuantileHeads,
    "QuantileHeads, copies": lambda model: QuantileHeads(model, heads="copy"),
    "IntervalLossHeads": IntervalLossHeads,
    "ErrorPredictor": ErrorPredictor,
    "ConstantWidth": ConstantWidth,
}


@torch.no_grad()
def _shifted(module: nn.Module) -> None:
    for parameter in module.parameters(recurse=False):
        parameter += 0.01


TRAINED = [name for name in MAKERS if name not in ("MCDropout", "Ensemble", "ConstantWidth")]


def noise(x: Tensor) -> Tensor:
    """The standard deviation of the targets, which grows with the input."""
    return 0.05 + 0.3 * x.abs()


def line(samples: int = 2048, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(samples, 1, generator=generator) * 2 - 1
    return x, x.sin() + noise(x) * torch.randn(samples, 1, generator=generator)


@functools.cache
def line_model() -> nn.Module:
    """A model that has found the middle of the line."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    quiet(model, loader(*line()), loss=losses.mse, epochs=20, lr=3e-3)
    return model.eval()


def image_model() -> nn.Module:
    """Batch norm, two kinds of dropout, and parts in several modes."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Dropout2d(0.3),
            nn.Conv2d(4, 4, 3, padding=1),
            nn.Dropout(0.2),
            nn.Conv2d(4, 2, 1),
        )
        model(torch.randn(8, 1, 6, 6))
    return model.eval()


def images(samples: int = 48) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(samples, 1, 6, 6, generator=generator), torch.randn(samples, 2, 6, 6, generator=generator)


def loader(x: Tensor, y: Tensor, batch_size: int = 128) -> DataLoader[Any]:
    return DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)


def quiet(method: nn.Module, data: Any, **options: Any) -> History:
    return inn.fit(method, data, progress=False, **options)


def raw(model: nn.Module) -> dict[str, bytes]:
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: t.detach().reshape(-1).view(torch.uint8).numpy().tobytes() for name, t in tensors.items()}


def flags(model: nn.Module) -> list[Any]:
    return [m.training for m in model.modules()] + [(p.requires_grad, p.grad is None) for p in model.parameters()]


def covered(method: Baseline, x: Tensor, y: Tensor) -> float:
    return float(method.predict(x).bounds.contains(y).float().mean())


def correlation(a: Tensor, b: Tensor) -> float:
    return float(torch.corrcoef(torch.stack((a.flatten(), b.flatten())))[0, 1])
