"""Saved: what the library itself writes, damaged, and what must come of reading it."""

from __future__ import annotations

import io
import json
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import nibabel
import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

import intervalnn as inn
from fuzzing.mutations import changed, mutated
from fuzzing.readers import Mutation, gzipped, zipped
from intervalnn.calibration.calibration import calibrate
from intervalnn.calibration.guarantee import Offsets
from intervalnn.cli.samples import samples_in
from intervalnn.cli.weights import read_weights
from intervalnn.data import Volume
from intervalnn.data import read as read_data
from intervalnn.evaluation.records import Measured, Run
from intervalnn.evaluation.results import Results
from intervalnn.files import container
from intervalnn.prediction import Prediction
from intervalnn.saving import hub
from intervalnn.training.engine import TorchEngine
from intervalnn.training.history import Epoch, History, State
from intervalnn.view import load_npz, save_npz
from intervalnn.view.nifti import load_nifti

__all__ = ["SAVED", "Saved"]


@dataclass(frozen=True, eq=False)
class Saved:
    """A kind of file that the library writes, or takes from users.

    Attributes:
        name: Of the file.
        make: Writes it, and what belongs to it, to a folder.
        load: Reads it, given the folder, and returns plain values, arrays and tensors.
        mutations: How to damage it.
        sealed: Whether a checksum tells damage to the plain bytes.
    """

    name: str
    make: Callable[[Path], object]
    load: Callable[[Path], Any]
    mutations: tuple[Mutation, ...] = (mutated,)
    sealed: bool = True

    @cache  # noqa: B019 - there are a dozen of them, for the whole run
    def original(self) -> tuple[dict[str, bytes], Any]:
        """Return the bytes of all files, and what is loaded from them."""
        with tempfile.TemporaryDirectory() as folder:
            self.make(Path(folder))
            return {path.name: path.read_bytes() for path in Path(folder).iterdir()}, self.load(Path(folder))

    def case(self, random: Random, folder: Path) -> None:
        """Damage a file and load it; fails if anything else comes of it than its contents or a clear error."""
        mutation = random.choice(self.mutations)
        self.check(mutation(self.original()[0][self.name], random), folder, plain=mutation is mutated)

    def check(self, content: bytes, folder: Path, *, plain: bool = True) -> None:
        """Load a file of these bytes."""
        files, whole = self.original()
        for name, stored in (files | {self.name: content}).items():
            (folder / name).write_bytes(stored)
        found, refusal = whole, str(folder)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those of the libraries beneath
                found = self.load(folder)
        except (ValueError, OSError) as error:
            refusal = f"{type(error).__name__}: {error}"
        assert str(folder) in refusal, f"does not name the file: {refusal}"
        assert not (plain and self.sealed) or _same(found, whole), "damage that a checksum tells"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, torch.Tensor | np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    return bool(a == b)


# --- networks and what they are resumed from ---


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()


def _net() -> inn.IntervalNetwork:
    net = inn.IntervalNetwork(_model(), ["2"], cap=2.0)
    net.set_gaps("2.weight", 0.1, 0.2)
    net.offsets = Offsets(below=0.1, above=0.2)
    x = torch.randn(400, 3, generator=torch.Generator().manual_seed(1))
    y = net.model(x).detach() + 0.1 * torch.randn(400, 2, generator=torch.Generator().manual_seed(2))
    calibrate(net, [(x[:200], y[:200]), (x[200:], y[200:])], coverage=0.5, groups="width")
    return net


def _contents(net: inn.IntervalNetwork) -> Any:
    calibration = None if net.calibration is None else net.calibration.settings()  # type: ignore[union-attr]
    settings = [net.names, net.kind, net.cap, str(net.form), str(net.offsets), calibration, net.training_settings]
    return {"settings": settings, "tensors": dict(net.state_dict()), "model": dict(net.model.state_dict())}


def _resettled(content: bytes, random: Random) -> bytes:
    """Change a setting of a network, under a checksum that is right."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net"
        path.write_bytes(content)
        settings, tensors = container.read(path)
        if random.random() < 0.2:
            tensors = {random.choice([name, f"{name}x"]): tensor.flatten()[:1] for name, tensor in tensors.items()}
        container.write(path, changed(settings, random), tensors)
        return path.read_bytes()


def _state() -> State:
    model = _model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state = State(History({"lr": 0.1, "recipe": "paper", "steps": 3}), model, optimizer)
    state.add(Epoch(0.5, 0.9, 0.1, 0.4, 1.0))
    return state


def _resumed(folder: Path) -> Any:
    state = _state()
    state.history.epochs.clear()
    assert state.load(folder / "run.checkpoint", TorchEngine(), torch.device("cpu"))
    optimizer = state.optimizer.state_dict()["state"]
    return {"history": state.history.as_dict(), "method": state.method.state_dict(), "best": state.best, "o": optimizer}


def _repickled(content: bytes, random: Random) -> bytes:
    whole = torch.load(io.BytesIO(content), weights_only=True)
    part = random.choice(("history", "history", "optimizer", "best", "method"))
    made = io.BytesIO()
    torch.save(whole | {part: changed(whole[part], random)}, made)
    return made.getvalue()


# --- results and predictions ---


def _run() -> Run:
    values = {"mse": [1.0, 2.0, float("nan")], "coverage": [0.9, 0.8, float("inf")]}
    methods = {"INN": Measured(values, 0.1, 2.0, [1.5]), "other": Measured(values, 0.2, 3.0)}
    return Run(methods, 0.9, {"mse": "lower"}, seed=3, settings={"data": "x"}, versions={"torch": "2"})


def _tabled(folder: Path) -> Any:
    results = Results.load(folder / "run.json")
    if not results.methods:  # such as a run that drew curves alone
        return str(results.runs[0].settings)
    return [results.table(), results.table(style="latex"), str(results.runs[0].settings)]


def _rejson(content: bytes, random: Random) -> bytes:
    return json.dumps(changed(json.loads(content), random)).encode()


def _prediction() -> Prediction:
    point = torch.randn(2, 1, 4, 5, generator=torch.Generator().manual_seed(0))
    below, above = torch.rand(2, 1, 4, 5), torch.rand(2, 1, 4, 5)
    return Prediction(point, below, above, below + above)


def _shown(record: Any) -> Any:
    record.prediction()
    return {"slices": [record.at(i) for i in range(record.slices)][:3], "unit": record.unit, "spacing": record.spacing}


def _write_set(folder: Path) -> None:
    point = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    for name, array in (("point", point), ("lower", point - 1), ("upper", point + 1)):
        nibabel.save(nibabel.Nifti1Image(array, np.diag([0.5, 0.75, 2.0, 1.0])), folder / f"{name}.nii.gz")


# --- what users give ---


def _write_samples(folder: Path, suffix: str) -> None:
    x, y = (np.random.default_rng(seed).normal(size=(4, 3)) for seed in range(2))
    if suffix == "npz":
        np.savez(folder / "d.npz", x=x, y=y)
    else:
        np.save(folder / "x.npy", x)
        np.save(folder / "y.npy", y)


def _samples(folder: Path) -> Any:
    samples = samples_in(folder, torch.float32)
    return {str(i): {"x": samples[i][0], "y": samples[i][1]} for i in range(len(samples))}


def _write_listed(folder: Path) -> None:
    volumes = [{"file": "a.npy", "subject": "a", "split": "train"}, {"file": "b.npy", "subject_ids": ["b"]}]
    content = {"array": "images", "value": "HU + 1024", "volumes": volumes}
    (folder / "manifest.json").write_text(json.dumps(content))
    for name in "ab":
        np.save(folder / f"{name}.npy", np.ones((2, 3, 3), np.int16))


def _listed(folder: Path) -> list[Volume]:
    return list(read_data(folder))


SAVED: dict[str, Saved] = {
    "network": Saved(
        "net.safetensors",
        lambda folder: _net().save(folder / "net.safetensors", include_model=True),
        lambda folder: _contents(inn.load(folder / "net.safetensors", _model())),
        (mutated, _resettled),
    ),
    "network in a folder": Saved(
        hub.WEIGHTS,
        lambda folder: hub.save_pretrained(folder, _net()),
        lambda folder: _contents(hub.from_pretrained(folder, _model())),
        (mutated, _resettled),
    ),
    "checkpoint": Saved(
        "run.checkpoint", lambda folder: _state().save(folder / "run.checkpoint"), _resumed, (mutated, _repickled)
    ),
    "weights, safetensors": Saved(
        "w.safetensors",
        lambda folder: save_file(_model().state_dict(), folder / "w.safetensors"),
        lambda folder: read_weights(folder / "w.safetensors"),
        sealed=False,
    ),
    "weights, torch": Saved(
        "w.pt",
        lambda folder: torch.save(_model().state_dict(), folder / "w.pt"),
        lambda folder: read_weights(folder / "w.pt"),
        (mutated, zipped),
    ),
    "results": Saved(
        "run.json", lambda folder: _run().save(folder / "run.json"), _tabled, (mutated, _rejson), sealed=False
    ),
    "prediction, NPZ": Saved(
        "p.npz",
        lambda folder: save_npz(folder / "p.npz", _prediction(), unit="HU", spacing=(1.0, 2.0), dims=2),
        lambda folder: _shown(load_npz(folder / "p.npz")),
        (mutated, zipped),
    ),
    "prediction, NIfTI": Saved(
        "lower.nii.gz", _write_set, lambda folder: _shown(load_nifti(folder / "point.nii.gz")), (mutated, gzipped)
    ),
    "samples, NPY": Saved("x.npy", lambda folder: _write_samples(folder, "npy"), _samples, sealed=False),
    "samples, NPZ": Saved("d.npz", lambda folder: _write_samples(folder, "npz"), _samples, (mutated, zipped)),
    "manifest": Saved("manifest.json", _write_listed, _listed, (mutated, _rejson), sealed=False),
}
