"""What all experiments share: the underlying model, trained once, and methods measured and written down one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader

from intervalnn import metrics
from intervalnn.calibration import guarantee
from intervalnn.data.readers.npy import Npz
from intervalnn.evaluation.evaluation import evaluate
from intervalnn.evaluation.examples import curves_of
from intervalnn.evaluation.records import Run
from intervalnn.files.arrays_written import write_npz
from intervalnn.files.whole import replacing
from intervalnn.network.network import IntervalNetwork
from intervalnn.prediction import Prediction
from intervalnn.training import losses
from intervalnn.training.loop import fit
from intervalnn.training.recipe import default_epochs

__all__ = [
    "COVERAGE",
    "METRICS",
    "WITH_DIRECTION",
    "Loaders",
    "Make",
    "Progress",
    "alike",
    "longer_fit",
    "longer_heads",
    "measure",
    "started",
    "trained",
]

COVERAGE = 0.9
WITH_DIRECTION = ("INN", "INN with scout", "INN, published", "quantile heads")
Progress = Callable[[str], None]
Make = Callable[[], Any]
Loaders = tuple[DataLoader[Any], DataLoader[Any], DataLoader[Any]]

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


def trained(model: nn.Module, train: DataLoader[Any], path: Path, *, epochs: int, lr: float, seed: int) -> nn.Module:
    """Return the model trained by the squared error, read from ``path`` if it was trained before."""
    if path.exists():
        device = next(model.parameters()).device
        model.load_state_dict(load_file(path, device=str(device)))
        return model.eval()
    path.parent.mkdir(parents=True, exist_ok=True)
    checkpoint = path.with_suffix(".checkpoint")
    fit(model, train, loss=losses.mse, epochs=epochs, lr=lr, seed=seed, progress=False, checkpoint=checkpoint)
    with replacing(path) as temporary:
        save_file({name: value.contiguous() for name, value in model.state_dict().items()}, temporary)
    checkpoint.unlink(missing_ok=True)
    return model.eval()


@torch.no_grad()
def started(model: nn.Module, test: DataLoader[Any], seed: int, about: dict[str, Any]) -> Run:
    """Return a run without methods yet."""
    errors = torch.cat([(model(x) - y).abs().flatten(1).mean(1) for x, y in test])
    about = about | {
        "mae": float(errors.double().mean()),
        "parameters": sum(p.numel() for p in model.parameters()),
        "curves": {},
    }
    return Run({}, COVERAGE, {}, seed, about)


def alike(saved: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Say whether a run was made by the settings of now; those that the file is too old for do not count."""
    return all(
        alike(saved[key], now[key]) if isinstance(now[key], Mapping) else saved[key] == now[key]
        for key in saved.keys() & now.keys()
    )


def longer_heads(times: int) -> str:
    """Return what quantile heads with so many times the steps of all others are called."""
    return f"quantile heads, {times}x steps"


def longer_fit(fit_epochs: int | None, train: DataLoader[Any], times: int) -> int:
    """Return the epochs of a fit that takes so many times the steps of the others."""
    return times * (fit_epochs or default_epochs(len(train)))


def measure(
    path: Path,
    whole: Run,
    methods: Iterable[tuple[str, Make]],
    loaders: Loaders,
    *,
    beta: float,
    examples: Tensor,
    say: Progress,
    more: Callable[[str, Any], dict[str, Any]] = lambda *_: {},
    only: Collection[str] = (),
) -> Run:
    """Fit and measure each method that the file does not hold yet, and write it after each.

    Args:
        path: File of the run; the examples go to an npz beside it.
        whole: The run as it stands.
        methods: Names, and how each is made.
        loaders: Train, or a part of it (to solve the offsets of App. A on), validation (to calibrate on) and test.
        beta: That of the published recipe, for the bound of App. A.
        examples: Which test samples to keep the prediction of.
        say: Is told what is going on.
        more: Further curves of a fitted method.
        only: The methods to measure; all, if there are none here.
    """
    _, val, test = loaders
    named = dict(methods)
    if unknown := sorted(set(only) - named.keys()):
        raise ValueError(f"there is no method {unknown[0]!r} at this scale; there are {', '.join(named)}")
    for name, make in named.items():
        if name in whole.methods or (only and name not in only):
            continue
        say(f"{path.stem}: {name}")
        method, fitting = _fitted(make)
        one, refused = _evaluated(name, method, val, test, whole.seed or 0)
        curves = _curves(method, loaders, beta) | more(name, method) | refused | {"fit": fitting}
        settings = whole.settings | {"curves": whole.settings["curves"] | {name: curves}}
        whole = replace(one, methods=whole.methods | one.methods, seed=whole.seed, settings=settings)
        _keep(path.with_suffix(".npz"), name, method, test, examples)
        whole.save(path, overwrite=True)
    return whole


def _fitted(make: Make) -> tuple[Any, dict[str, float]]:
    """Return a method, and what its fit took: by the clock, by the CPU, and how many numbers were trained."""
    start, cpu = time.perf_counter(), time.process_time()
    method = make()
    took = {"seconds": time.perf_counter() - start, "CPU seconds": time.process_time() - cpu}
    return method, took | {"parameters": sum(parameter.numel() for parameter in method.parameters())}


def _evaluated(
    name: str, method: Any, val: DataLoader[Any], test: DataLoader[Any], seed: int
) -> tuple[Run, dict[str, str]]:
    """Return what was measured; where no scaling of the bounds has the coverage, not at equal coverage, and why."""
    measured = partial(evaluate, {name: method}, test, METRICS, coverage=COVERAGE, seed=seed, progress=False)
    try:
        return measured(held_out=val).runs[0], {}
    except ValueError as error:
        return measured().runs[0], {"refused": str(error)}


def _curves(method: Any, loaders: Loaders, beta: float) -> dict[str, Any]:
    """Return the curves of a method; of an interval network, those of App. A too."""
    curves = curves_of(method, loaders[-1], coverage=COVERAGE)
    if not isinstance(method, IntervalNetwork):
        return curves
    offsets = guarantee.solve_offsets(method, loaders[0], beta=beta)
    curves["offsets"] = {"below": float(offsets.below), "above": float(offsets.above)}
    for label, split in zip(("train", "validation", "test"), loaders, strict=True):
        for kind, moved in (("markov", None), ("markov with offsets", offsets)):
            curve = guarantee.markov_curve(method, split, beta=beta, offsets=moved)
            curves[f"{kind}, {label}"] = {
                key: getattr(curve, key).tolist()
                for key in ("factors", "promised", "inside", "promised_inputs", "inputs")
            }
    return curves


def _keep(path: Path, name: str, method: Any, test: DataLoader[Any], examples: Tensor) -> None:
    """Add what the method predicts for some test samples to a file of arrays."""
    x, y = (torch.stack(parts) for parts in zip(*(test.dataset[i] for i in examples.tolist()), strict=True))
    prediction: Prediction = method.predict(x).cpu()
    arrays: dict[str, Any] = dict(Npz(path)) if path.exists() else {}
    arrays |= {"x": x.cpu().numpy(), "y": y.cpu().numpy()}
    arrays |= {f"{name}/{part}": prediction[part].float().numpy() for part in ("point", "below", "above", "score")}
    write_npz(path, arrays, compressed=True)
