"""The 1D experiment (Sec. 4): every method on one underlying network, and what is measured of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from intervalnn import guarantee, losses, methods, metrics
from intervalnn.evaluation import evaluate
from intervalnn.experiments.scales import DeconvolutionScale
from intervalnn.models import DeconvNet
from intervalnn.network import IntervalNetwork
from intervalnn.prediction import Prediction
from intervalnn.results import Measured, Run
from intervalnn.tasks import Deconvolution
from intervalnn.training import fit

__all__ = ["COVERAGE", "Setting", "methods_of", "run", "underlying"]

COVERAGE = 0.9
BETA = 2e-3  # Sec. 4
LAYERS = 4  # the last four convolutions: nearly as tight as any, at a fraction of the cost
WITH_DIRECTION = ("INN", "INN, published", "quantile heads")
Progress = Callable[[str], None]


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

    def loaders(self) -> tuple[DataLoader[Any], ...]:
        """Return train (shuffled), validation and test, on the device."""
        task = Deconvolution(noise=self.noise, size=self.scale.size, samples=self.scale.samples, seed=self.seed)
        splits = [TensorDataset(x.to(self.device), y.to(self.device)) for x, y in task.tensors()]
        return tuple(DataLoader(split, self.scale.batch, shuffle=i == 0) for i, split in enumerate(splits))


def underlying(setting: Setting, work: Path) -> nn.Module:
    """Return the trained network, read from ``work`` if it was trained before."""
    torch.manual_seed(setting.seed)
    model = DeconvNet(setting.scale.channels).to(setting.device)
    path = work / f"{setting.scale.name}-{setting.name}.safetensors"
    if path.exists():
        model.load_state_dict(load_file(path, device=setting.device))
        return model.eval()
    train, *_ = setting.loaders()
    fit(
        model,
        train,
        loss=losses.mse,
        epochs=setting.scale.epochs,
        lr=setting.scale.lr,
        seed=setting.seed,
        progress=False,
    )
    work.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".part")
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, temporary)
    temporary.replace(path)
    return model.eval()


def methods_of(
    model: nn.Module, train: DataLoader[Any], scale: DeconvolutionScale, seed: int
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield how each method is made."""

    def fitted(method: Any, **options: Any) -> Any:
        fit(method, train, seed=seed, progress=False, **options)
        return method.eval()

    ours = {"coverage": COVERAGE, "epochs": scale.fit_epochs}
    paper = {"recipe": "paper", "epochs": scale.epochs}
    yield "INN", lambda: fitted(IntervalNetwork(model, layers=LAYERS), **ours)
    yield (
        "INN, published",
        lambda: fitted(IntervalNetwork(model, layers="all"), beta=BETA, lr=scale.published_lr, **paper),
    )
    yield "MC dropout", lambda: methods.MCDropout(model, samples=scale.passes, seed=seed)
    yield "ProbOut, published", lambda: fitted(methods.ProbOut(model), **paper)
    yield "ProbOut", lambda: fitted(methods.ProbOut(model), **ours)
    yield "quantile heads", lambda: fitted(methods.QuantileHeads(model), **ours)
    yield "interval-loss heads", lambda: fitted(methods.IntervalLossHeads(model), **ours)
    yield "error predictor", lambda: fitted(methods.ErrorPredictor(model), **ours)
    yield (
        "ensemble",
        lambda: fitted(methods.Ensemble.like(model, scale.members, seed=seed + 1), epochs=scale.epochs, lr=scale.lr),
    )
    yield "constant width", lambda: methods.ConstantWidth(model)


METRICS = {
    "mse": metrics.mse,
    "mae": metrics.mae,
    "centre_mae": lambda p, y: ((p.lower + p.upper) / 2 - y).abs().double().flatten(1).mean(1),
    "coverage": metrics.coverage,
    "paper_coverage": metrics.paper_coverage,
    "width": metrics.mean_width,
    "score": lambda p, _: p.score.double().flatten(1).mean(1),
    "winkler": metrics.winkler,
    "pearson": metrics.pearson,
    "pwcc": metrics.pwcc,
    "paper_pwcc": metrics.paper_pwcc,
    "ause": metrics.ause,
}


def run(setting: Setting, folder: Path, say: Progress) -> Path:
    """Measure every method, and write one file; what it holds already is not measured again."""
    path = folder / f"{setting.name}.json"
    model = underlying(setting, folder / "work")
    train, val, test = setting.loaders()
    known = Run.load(path) if path.exists() else None
    whole = _started(setting, model, test) if known is None else known
    _refuse_others(path, whole, setting)
    for name, make in methods_of(model, train, setting.scale, setting.seed):
        if name in whole.methods:
            continue
        say(f"{setting.name}: {name}")
        method = make()
        one = evaluate({name: method}, test, METRICS, held_out=val, coverage=COVERAGE, seed=setting.seed).runs[0]
        whole = _with(whole, name, one, _curves(name, method, train, val, test))
        if name == "INN":
            method.save(folder / "work" / f"{setting.name}-{name}.safetensors", include_model=True)
        _keep_examples(folder / f"{setting.name}.npz", name, method, test, setting.scale.examples)
        whole.save(path, overwrite=True)
    return path


def _started(setting: Setting, model: nn.Module, test: DataLoader[Any]) -> Run:
    with torch.no_grad():
        errors = torch.cat([(model(x) - y).abs() for x, y in test])
    about = {
        "noise": setting.noise,
        "scale": _as_json(asdict(setting.scale)),
        "mae": float(errors.mean()),
        "parameters": sum(p.numel() for p in model.parameters()),
        "curves": {},
    }
    return Run({}, COVERAGE, {}, setting.seed, about)


def _refuse_others(path: Path, whole: Run, setting: Setting) -> None:
    how_many = {"seeds": 0, "sweep_seeds": 0}  # the numbers of runs may differ
    if whole.settings["scale"] | how_many != _as_json(asdict(setting.scale)) | how_many:
        raise ValueError(f"{path} was made at another scale; choose another folder, or move it away")


def _as_json(values: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def _with(whole: Run, name: str, one: Run, curves: dict[str, Any]) -> Run:
    settings = whole.settings | {"curves": whole.settings["curves"] | ({name: curves} if curves else {})}
    measured: dict[str, Measured] = whole.methods | one.methods
    return Run(measured, COVERAGE, one.better, whole.seed, settings, one.versions)


def _curves(name: str, method: Any, *splits: DataLoader[Any]) -> dict[str, Any]:
    """Return the curves of a method whose bounds have a direction."""
    if name not in WITH_DIRECTION:
        return {}
    prediction, target = _whole(method, splits[-1])
    found = metrics.direction_curve(prediction, target)
    curves = {"direction": {key: value.tolist() for key, value in found._asdict().items()}}
    if not isinstance(method, IntervalNetwork):
        return curves
    offsets = guarantee.solve_offsets(method, splits[0], beta=BETA)
    curves["offsets"] = {"below": float(offsets.below), "above": float(offsets.above)}
    for label, split in zip(("train", "validation", "test"), splits, strict=True):
        for kind, moved in (("markov", None), ("markov with offsets", offsets)):
            curve = guarantee.markov_curve(method, split, beta=BETA, offsets=moved)
            curves[f"{kind}, {label}"] = {
                key: getattr(curve, key).tolist()
                for key in ("factors", "promised", "inside", "promised_inputs", "inputs")
            }
    return curves


def _whole(method: Any, loader: DataLoader[Any]) -> tuple[Prediction, Tensor]:
    pairs = [(method.predict(x), y) for x, y in loader]
    return Prediction.cat([p for p, _ in pairs]), torch.cat([y for _, y in pairs])


def _keep_examples(path: Path, name: str, method: Any, test: DataLoader[Any], count: int) -> None:
    """Add what the method predicts for the first test signals to a file of arrays."""
    x, y = (part[:count] for part in next(iter(test)))
    prediction = method.predict(x).cpu()
    arrays = dict(np.load(path)) if path.exists() else {}
    arrays |= {"x": x.cpu().numpy(), "y": y.cpu().numpy()}
    arrays |= {f"{name}/{part}": prediction[part].float().numpy() for part in ("point", "below", "above", "score")}
    temporary = path.with_name(path.stem + ".part.npz")
    np.savez_compressed(temporary, **arrays)
    temporary.replace(path)
