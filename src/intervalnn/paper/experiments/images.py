"""The experiments on images (Sec. 5): every method on one U-Net, for tomography, MRI or denoising."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from intervalnn import data, methods, metrics
from intervalnn.calibration.calibration import calibrate
from intervalnn.evaluation.records import Run
from intervalnn.files.limits import MAX_GIB
from intervalnn.network.network import IntervalNetwork
from intervalnn.paper.experiments import artefacts, photos, splits
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
from intervalnn.paper.experiments.inputs import inputs
from intervalnn.paper.experiments.scales import ImageScale
from intervalnn.paper.models import UNet
from intervalnn.tasks import MRI, Denoising, ImageTask, SuperResolution, Tomography
from intervalnn.training.loop import fit

__all__ = ["BETA", "LAYERS", "TASKS", "Data", "Setting", "methods_of", "new_network", "run", "underlying"]

BETA = 1e-4  # Sec. 5
LAYERS = 7  # "the last twelve layers" of Sec. 5 are the last seven convolutions
DELTA = 0.1  # of the promise per draw of the calibration images (RCPS)
OFFSET_IMAGES = 128  # of the training images, for the offsets of App. A
NOISE = 0.1  # of the denoising task
WITH_PROMISE = ("INN", "quantile heads")

TASKS = ("ct", "mri", "denoising", "photos")
PHOTO_FOLDS = 3  # where a scale has none


@dataclass(frozen=True)
class Setting:
    """One run: a task, a scale, a seed, a device, and where the images come from.

    Attributes:
        task: ``"ct"``, ``"mri"`` or ``"denoising"``; or ``"photos"``, super-resolution of photographs.
        scale: How large.
        seed: Seed of training, and the fold that is tested; without folds the data are the same for all.
        device: Where to train.
        source: Folder of CT data; without, the images are phantoms.
        values: What the numbers of arrays and images in it are (see :func:`intervalnn.data.read`).
        max_gib: How much a volume in it may unpack to.
    """

    task: str
    scale: ImageScale
    seed: int
    device: str = "cpu"
    source: Path | None = None
    values: Any = None
    max_gib: float = MAX_GIB

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"seed-{self.seed}"

    @property
    def problem(self) -> ImageTask:
        """The inverse problem."""
        made: dict[str, ImageTask] = {
            "ct": Tomography(self.scale.size),
            "mri": MRI(self.scale.size),
            "denoising": Denoising(NOISE),
            "photos": SuperResolution(),
        }
        return made[self.task]

    @property
    def images_of(self) -> str:
        """Where the images come from."""
        if self.task == "photos":
            return "photos of scikit-image"
        return "phantoms" if self.source is None else self.source.name

    @property
    def crossed(self) -> bool:
        """Whether each run tests other subjects."""
        return self.task == "photos" or (self.source is not None and self.scale.folds > 0)

    def images(self) -> dict[str, splits.Split]:
        """Return the images of each split: train, val and test, and whatever else a manifest has."""
        scale = self.scale
        if self.task == "photos":
            folds = scale.folds or PHOTO_FOLDS
            return splits.crossed(photos.patches(scale.size), fold=self.seed, folds=folds, each=scale.slices_each)
        if self.source is None:
            return splits.made_up(scale.size, scale.patients, scale.slices)
        volumes = data.read(self.source, values=self.values, max_gib=self.max_gib)
        if not self.crossed:
            return splits.of_folder(volumes, self.source, scale.size, most=scale.most)
        return splits.of_folds(
            volumes, self.source, scale.size, fold=self.seed, folds=scale.folds, each=scale.slices_each
        )


class Data:
    """Images and inputs of a setting, on its device.

    Attributes:
        splits: Inputs and images, by split.
        subjects: Whose they are, by split.
    """

    def __init__(self, setting: Setting, work: Path, say: Progress) -> None:
        self.setting = setting
        self.splits: dict[str, TensorDataset] = {}
        self.subjects: dict[str, tuple[str, ...]] = {}
        for number, (name, split) in enumerate(setting.images().items()):
            y = split.images.to(setting.device)
            x = inputs(setting.problem, y, work / "inputs", seed=number, say=say)
            self.splits[name], self.subjects[name] = TensorDataset(x, y), split.subjects

    def loader(self, split: str, *, batch: int | None = None, count: int | None = None) -> DataLoader[Any]:
        """Return a loader; that of the training images is shuffled."""
        x, y = self.splits[split].tensors
        part = TensorDataset(x[:count], y[:count])
        return DataLoader(part, batch or self.setting.scale.batch, shuffle=split == "train")

    @cached_property
    def loaders(self) -> Loaders:
        """Train, validation, test."""
        return self.loader("train"), self.loader("val"), self.loader("test")

    def some(self, split: str, count: int) -> Tensor:
        """Return the numbers of some images of a split, from its first to its last."""
        return splits.spread(len(self.splits[split]), count)


def new_network(scale: ImageScale, device: str) -> nn.Module:
    """Return the U-Net before it is trained, in the layout of memory that is fastest on a GPU."""
    model: nn.Module = UNet(scale.base, dropout=scale.dropout).to(device)
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def underlying(setting: Setting, found: Data, work: Path) -> nn.Module:
    """Return the trained network, read from ``work`` if it was trained before."""
    scale = setting.scale
    torch.manual_seed(setting.seed)
    model = new_network(scale, setting.device)
    return trained(
        model,
        found.loader("train"),
        work / f"{setting.name}.safetensors",
        epochs=scale.epochs,
        lr=scale.lr,
        seed=setting.seed,
    )


def methods_of(model: nn.Module, train: DataLoader[Any], scale: ImageScale, seed: int) -> Iterator[tuple[str, Make]]:
    """Yield how each method is made."""

    def fitted(method: Any, loader: DataLoader[Any] = train, **options: Any) -> Any:
        fit(method, loader, seed=seed, progress=False, **options)
        return method.eval()

    def in_batches(size: int) -> DataLoader[Any]:
        return DataLoader(train.dataset, size, shuffle=True)

    ours: dict[str, Any] = {"coverage": COVERAGE, "epochs": scale.fit_epochs}
    paper: dict[str, Any] = {"recipe": "paper", "lr": scale.published_lr, "epochs": scale.published_epochs}
    probout: dict[str, Any] = {"recipe": "paper", "lr": scale.probout_lr, "epochs": scale.probout_epochs}
    yield "INN", lambda: fitted(IntervalNetwork(model, layers=LAYERS), **ours)
    yield "INN with scout", lambda: fitted(IntervalNetwork(model), **ours)
    yield "scout alone", lambda: fitted(IntervalNetwork(model, layers=0, scout=True), **ours)
    if scale.published_epochs:
        yield (
            "INN, published",
            lambda: fitted(
                IntervalNetwork(model, layers=LAYERS), in_batches(scale.published_batch), beta=BETA, **paper
            ),
        )
    yield "MC dropout", lambda: methods.MCDropout(model, samples=scale.passes, seed=seed)
    if scale.probout_epochs:
        yield "ProbOut, published", lambda: fitted(methods.ProbOut(model), **probout)
    yield "ProbOut", lambda: fitted(methods.ProbOut(model), **ours)
    yield from learned(model, train, scale, seed, fitted)


def run(setting: Setting, found: Data, folder: Path, say: Progress, only: Collection[str] = ()) -> Path:
    """Measure every method, or only some, and write one file; what it holds already is not measured again."""
    path, work, scale = folder / f"{setting.name}.json", folder / "work", setting.scale
    say(f"{setting.name}: the underlying network")
    model = underlying(setting, found, work)
    whole = _begun(path, setting, model, found)
    whole.settings["subjects"] = list(found.subjects["test"])
    made = _artefacts(setting, model, found) if scale.artefacts else {}
    whole.settings["artefacts"] = {kind: each.about for kind, each in made.items()}

    def more(name: str, method: Any) -> dict[str, Any]:
        result: dict[str, Any] = {kind: artefacts.localised(method, each, scale.batch) for kind, each in made.items()}
        if name in WITH_PROMISE:
            result["promise"] = _promise(method, found)
        if "ood" in found.splits:
            result["ood"] = _measured(method, found.loader("ood"))
        return result

    measure(
        path,
        whole,
        methods_of(model, found.loader("train"), scale, setting.seed),
        (found.loader("train", count=OFFSET_IMAGES), *found.loaders[1:]),
        beta=BETA,
        examples=found.some("test", scale.examples),
        say=say,
        more=more,
        only=only,
    )
    return path


def _begun(path: Path, setting: Setting, model: nn.Module, found: Data) -> Run:
    """Return the run that a file holds, or a new one; refuse a file of other data or another scale."""
    about = {
        "task": setting.task,
        "problem": repr(setting.problem),
        "images": setting.images_of,
        "counts": {name: len(split) for name, split in found.splits.items()},
        "scale": json.loads(json.dumps(asdict(setting.scale))),
    }
    whole = Run.load(path) if path.exists() else started(model, found.loaders[-1], setting.seed, about)
    if not alike(whole.settings, about):
        raise ValueError(f"{path} was made of other data or at another scale; choose another folder, or move it away")
    return whole


def _artefacts(setting: Setting, model: nn.Module, found: Data) -> dict[str, artefacts.Artefacts]:
    scale = setting.scale
    some = found.some("test", scale.artefacts)
    x, y = (part[some] for part in found.splits["test"].tensors)
    painted = artefacts.adversarial(model, x, y, steps=scale.steps, batch=scale.batch, seed=setting.seed)
    unknown = artefacts.inserted(setting.problem, y, batch=scale.batch, seed=setting.seed)
    return {"painted": painted, "inserted": unknown}


def _promise(method: Any, found: Data) -> dict[str, Any]:
    """Return what calibration for a promise per draw (RCPS) gives on test images, or why there is none."""
    try:
        calibration = calibrate(method, found.loader("val"), coverage=COVERAGE, level="image", delta=DELTA)
        return {"delta": DELTA, "factor": float(calibration.factors.max())} | _measured(method, found.loader("test"))
    except ValueError as error:  # too few images, or risk that no factor takes away
        return {"refused": str(error)}
    finally:
        method.calibration = None


def _measured(method: Any, loader: DataLoader[Any]) -> dict[str, float]:
    names = {"coverage": metrics.coverage, "width": metrics.mean_width, "winkler": metrics.winkler, "mae": metrics.mae}
    values = [
        {name: metric(p, y) for name, metric in names.items()} for p, y in ((method.predict(x), y) for x, y in loader)
    ]
    return {name: float(torch.cat([each[name] for each in values]).double().mean()) for name in names}
