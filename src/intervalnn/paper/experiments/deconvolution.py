"""The 1D experiment (Sec. 4): every method on one underlying network, and what is measured of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from intervalnn import methods
from intervalnn.evaluation.records import Run
from intervalnn.network.network import IntervalNetwork
from intervalnn.paper.experiments.baselines import learned
from intervalnn.paper.experiments.comparison import (
    COVERAGE,
    Loaders,
    Make,
    Progress,
    alike,
    measure,
    started,
    trained,
)
from intervalnn.paper.experiments.scales import DeconvolutionScale
from intervalnn.paper.models import DeconvNet
from intervalnn.tasks import Deconvolution
from intervalnn.training.loop import fit

__all__ = ["BETA", "Setting", "examples", "methods_of", "run", "underlying"]

BETA = 2e-3  # Sec. 4
LAYERS = 4  # the last four convolutions: nearly as tight as any, at a fraction of the cost


@dataclass(frozen=True, slots=True)
class Setting:
    """One run: a scale, a noise, a seed and a device."""

    scale: DeconvolutionScale
    noise: float
    seed: int
    device: str = "cpu"

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"noise-{self.noise:g}-seed-{self.seed}"

    def loaders(self) -> Loaders:
        """Return train (shuffled), validation and test, on the device."""
        task = Deconvolution(noise=self.noise, size=self.scale.size, samples=self.scale.samples, seed=self.seed)
        splits = [TensorDataset(x.to(self.device), y.to(self.device)) for x, y in task.tensors()]
        train, val, test = (DataLoader(split, self.scale.batch, shuffle=i == 0) for i, split in enumerate(splits))
        return train, val, test


def underlying(setting: Setting, work: Path) -> nn.Module:
    """Return the trained network, read from ``work`` if it was trained before."""
    torch.manual_seed(setting.seed)
    model = DeconvNet(setting.scale.channels).to(setting.device)
    path = work / f"{setting.scale.name}-{setting.name}.safetensors"
    train, *_ = setting.loaders()
    return trained(model, train, path, epochs=setting.scale.epochs, lr=setting.scale.lr, seed=setting.seed)


def methods_of(
    model: nn.Module, train: DataLoader[Any], scale: DeconvolutionScale, seed: int
) -> Iterator[tuple[str, Make]]:
    """Yield how each method is made."""

    def fitted(method: Any, **options: Any) -> Any:
        fit(method, train, seed=seed, progress=False, **options)
        return method.eval()

    ours = {"coverage": COVERAGE, "epochs": scale.fit_epochs}
    paper = {"recipe": "paper", "epochs": scale.epochs}
    yield "INN", lambda: fitted(IntervalNetwork(model, layers=LAYERS), **ours)
    yield "INN with scout", lambda: fitted(IntervalNetwork(model), **ours)
    yield "scout alone", lambda: fitted(IntervalNetwork(model, layers=0, scout=True), **ours)
    if scale.published_lr is not None:
        yield (
            "INN, published",
            lambda: fitted(IntervalNetwork(model, layers="all"), beta=BETA, lr=scale.published_lr, **paper),
        )
    yield "MC dropout", lambda: methods.MCDropout(model, samples=scale.passes, seed=seed)
    if scale.published_lr is not None:
        yield "ProbOut, published", lambda: fitted(methods.ProbOut(model), **paper)
    yield "ProbOut", lambda: fitted(methods.ProbOut(model), **ours)
    yield from learned(model, train, scale, seed, fitted)


def run(setting: Setting, folder: Path, say: Progress, only: Collection[str] = ()) -> Path:
    """Measure every method, or only some, and write one file; what it holds already is not measured again."""
    path = folder / f"{setting.name}.json"
    model = underlying(setting, folder / "work")
    loaders = setting.loaders()
    about = {"noise": setting.noise, "scale": _as_json(asdict(setting.scale))}
    whole = Run.load(path) if path.exists() else started(model, loaders[-1], setting.seed, about)
    _refuse_others(path, whole, setting)
    methods = methods_of(model, loaders[0], setting.scale, setting.seed)
    examples = torch.arange(setting.scale.examples)
    measure(path, whole, methods, loaders, beta=BETA, examples=examples, say=say, only=only)
    return path


def _refuse_others(path: Path, whole: Run, setting: Setting) -> None:
    how_many = {"seeds": 0, "sweep_seeds": 0}  # the numbers of runs may differ
    if not alike(whole.settings["scale"] | how_many, _as_json(asdict(setting.scale)) | how_many):
        raise ValueError(f"{path} was made at another scale; choose another folder, or move it away")


def _as_json(values: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def examples(folder: Path) -> list[Path]:
    """Return the files of the test signals that the first run in a folder has kept, one for each noise."""
    seeds = {path: int(path.stem.rpartition("seed-")[2]) for path in sorted(folder.glob("noise-*-seed-*.npz"))}
    if not seeds:
        raise FileNotFoundError(f"no test signals in {folder}, which inn reproduce deconv keeps beside its runs")
    return [path for path, seed in seeds.items() if seed == min(seeds.values())]
