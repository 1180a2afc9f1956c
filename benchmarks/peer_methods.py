"""Baselines of other libraries next to ours, on one small task, as JSON.

    python -m venv peers && peers/bin/pip install torch==2.13.0
    peers/bin/pip install numpy scipy rich click safetensors lightning torchmetrics einops seaborn matplotlib pandas \
        scikit-learn gpytorch uncertainty-toolbox ema-pytorch h5py opt-einsum backpack-for-pytorch \
        curvlinops-for-pytorch asdfghjkl==0.1a4
    peers/bin/pip install --no-deps laplace-torch lightning-uq-box==0.2.0 torch-uncertainty==0.13.0 \
        torchvision timm torchseg kornia kornia-rs huggingface_hub httpx2 httpcore2
    PYTHONPATH=src peers/bin/python benchmarks/peer_methods.py --out benchmarks/results/peer-methods.json

The peers need an environment of their own: torchvision has no build for CPU torch here, and is imported by all
three after its operators are declared. A peer that is not installed is left out, and the table says why.

The task is a line whose noise grows with the input, and a small network with batch norm and dropout. Every method is
scaled on held-out data to the same coverage, and compared by the interval (Winkler) score over the mean absolute
error; one seed. ``untouched`` says whether the model that the method was given is the same afterwards, bit for bit.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import intervalnn as inn
from intervalnn import Prediction, losses
from intervalnn.evaluation.cost import versions
from intervalnn.methods import (
    ConstantWidth,
    Ensemble,
    ErrorPredictor,
    IntervalLossHeads,
    MCDropout,
    ProbOut,
    QuantileHeads,
)

COVERAGE = 0.9
SAMPLES = 64
SEED = 0  # of model and training; the data have 0 for training, 1 for calibration, 2 for the test
PACKAGES = ("laplace-torch", "torch-uncertainty", "lightning-uq-box", "lightning", "numpy")


# --- the peers, each with predict(x) -> Prediction ---


class LaplaceAdapter:
    """laplace-torch: a normal posterior of the last layer's weights, and noise of one size."""

    def __init__(self, model: nn.Module, loader: Any) -> None:
        from laplace import Laplace

        self.laplace = Laplace(model, "regression", subset_of_weights="last_layer", hessian_structure="full")
        self.laplace.fit(loader)
        log_prior, log_noise = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        optimizer = torch.optim.Adam([log_prior, log_noise], lr=0.1)
        for _ in range(100):  # as in its own regression example: the marginal likelihood chooses prior and noise
            optimizer.zero_grad()
            (-self.laplace.log_marginal_likelihood(log_prior.exp(), log_noise.exp())).backward()
            optimizer.step()

    def predict(self, x: Tensor) -> Prediction:
        mean, variance = self.laplace(x)
        variance = variance.diagonal(dim1=-2, dim2=-1) + self.laplace.sigma_noise.detach() ** 2
        return Prediction.symmetric(mean.detach(), variance.sqrt().detach(), coverage=COVERAGE)


class TorchUncertaintyAdapter:
    """TorchUncertainty's MC dropout."""

    def __init__(self, model: nn.Module, _: Any) -> None:
        from torch_uncertainty.methods.mc_dropout import mc_dropout

        self.method = mc_dropout(model, SAMPLES, task="regression", probabilistic=False).eval()

    @torch.no_grad()
    def predict(self, x: Tensor) -> Prediction:
        passes = self.method(x).unflatten(0, (SAMPLES, len(x)))
        return Prediction.symmetric(passes.mean(0), passes.std(0), coverage=COVERAGE)


class LightningUQBoxAdapter:
    """Lightning-UQ-Box's MC dropout."""

    def __init__(self, model: nn.Module, _: Any) -> None:
        from lightning_uq_box.uq_methods import MCDropoutRegression

        self.method = MCDropoutRegression(model, SAMPLES, nn.MSELoss())

    def predict(self, x: Tensor) -> Prediction:
        found = self.method.predict_step(x)
        return Prediction.symmetric(found["pred"], found["pred_uct"].view_as(found["pred"]), coverage=COVERAGE)


PEERS: dict[str, Callable[[nn.Module, Any], Any]] = {
    "laplace-torch, last layer": LaplaceAdapter,
    "TorchUncertainty, MC dropout": TorchUncertaintyAdapter,
    "Lightning-UQ-Box, MC dropout": LightningUQBoxAdapter,
}


def declare_torchvision() -> torch.library.Library:
    """Declare the operators that torchvision's compiled part would bring, so that it can be imported without it."""
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


# --- ours ---


def fitted(make: Callable[[nn.Module], Any]) -> Callable[[nn.Module, Any], Any]:
    def build(model: nn.Module, loader: Any) -> Any:
        method = make(model)
        inn.fit(method, loader, coverage=COVERAGE, progress=False)
        return method

    return build


OURS: dict[str, Callable[[nn.Module, Any], Any]] = {
    "ConstantWidth": lambda model, _: ConstantWidth(model),
    "MCDropout": lambda model, _: MCDropout(model, samples=SAMPLES),
    "Ensemble of 5": fitted(lambda model: Ensemble.like(model, 5)),
    "ProbOut": fitted(ProbOut),
    "QuantileHeads": fitted(QuantileHeads),
    "IntervalLossHeads": fitted(IntervalLossHeads),
    "ErrorPredictor": fitted(ErrorPredictor),
    "IntervalNetwork": fitted(inn.IntervalNetwork),
}


# --- the comparison ---


def data(samples: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(samples, 1, generator=generator) * 2 - 1
    return x, x.sin() + (0.05 + 0.3 * x.abs()) * torch.randn(samples, 1, generator=generator)


def loader(samples: int, seed: int) -> DataLoader[Any]:
    return DataLoader(TensorDataset(*data(samples, seed)), 128, shuffle=True)


def trained() -> nn.Module:
    torch.manual_seed(SEED)
    layers = (nn.Linear(1, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 64), nn.ReLU())
    model = nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(64, 1))
    inn.fit(model, loader(2048, 0), loss=losses.mse, progress=False)
    return model.eval()


def winkler(p: Prediction, y: Tensor) -> float:
    missed = (y - p.upper).clamp(min=0) + (p.lower - y).clamp(min=0)
    return float((p.width + 2 / (1 - COVERAGE) * missed).mean())


class Scaled:
    """Any method, with the calibration applied that peers know nothing of."""

    def __init__(self, method: Any) -> None:
        self.method, self.calibration = method, None

    def predict(self, x: Tensor) -> Prediction:
        prediction = self.method.predict(x)
        return prediction if self.calibration is None else self.calibration(prediction)


def measured(build: Callable[[nn.Module, Any], Any], underlying: nn.Module) -> dict[str, Any]:
    model, (x, y) = copy.deepcopy(underlying), data(8000, 2)
    mae = float((underlying(x).detach() - y).abs().mean())
    torch.manual_seed(SEED)  # for peers that draw from the global state
    start = time.perf_counter()
    method = Scaled(build(model, loader(2048, 0)))
    built = time.perf_counter()
    before = method.predict(x)
    predicted = time.perf_counter()
    inn.calibrate(method, loader(2000, 1), coverage=COVERAGE)
    after = method.predict(x)
    states = zip(model.state_dict().values(), underlying.state_dict().values(), strict=True)
    return {
        "coverage": round(float(before.bounds.contains(y).float().mean()), 3),
        "coverage calibrated": round(float(after.bounds.contains(y).float().mean()), 3),
        "winkler / mae": round(winkler(before, y) / mae, 2),
        "winkler / mae, calibrated": round(winkler(after, y) / mae, 2),
        "seconds to fit": round(built - start, 2),
        "seconds to predict 8000": round(predicted - built, 3),
        "untouched": all(torch.equal(a, b) for a, b in states) and not any(m.training for m in model.modules()),
    }


def installed() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file to write the JSON to, beside printing it")
    out: Path | None = parser.parse_args().out
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    library = declare_torchvision()
    underlying, table = trained(), {}
    for name, build in (OURS | PEERS).items():
        try:
            table[name] = measured(build, underlying)
        except ImportError as error:
            table[name] = {"not installed": str(error)}
        print(f"{name}: done", flush=True)
    del library
    record = {
        "title": "Baselines of other libraries next to ours, on one small task",
        "command": "python benchmarks/peer_methods.py",
        "settings": {"coverage": COVERAGE, "samples": SAMPLES, "seed": SEED, "data seeds": [0, 1, 2]},
        "versions": versions("cpu") | installed(),
        "methods": table,
    }
    text = json.dumps(record, indent=1)
    print(text)
    if out is not None:
        out.write_text(text + "\n")


if __name__ == "__main__":
    main()
