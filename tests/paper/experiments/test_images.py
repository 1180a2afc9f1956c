from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from intervalnn.cli import main
from intervalnn.evaluation.records import Run
from intervalnn.paper.experiments import images, photos, reproduce, run_time, scales
from intervalnn.prediction import Prediction

TINY = replace(
    scales.IMAGES["quick"],
    size=32,
    base=2,
    epochs=2,
    fit_epochs=2,
    published_epochs=1,
    probout_epochs=1,
    passes=16,
    members=2,
    patients=(4, 6, 3),
    slices=4,
    artefacts=3,
    steps=3,
    examples=1,
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scales.IMAGES, "quick", TINY)


@pytest.mark.rotating
@pytest.mark.parametrize("task", ["ct", *(pytest.param(task, marks=pytest.mark.slow) for task in ("mri", "denoising"))])
def test_a_task_runs_from_phantoms_to_the_page_and_goes_on(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(1.0)
    monkeypatch.setattr(run_time, "seconds", lambda *_: next(clock))  # or each method would be fitted three times
    shown = CliRunner().invoke(main, ["reproduce", task, "--out", str(tmp_path)], catch_exceptions=False)

    page = (tmp_path / "README.md").read_text()
    names = [name for name, _ in images.methods_of(None, None, TINY, 0)]  # type: ignore[arg-type]
    assert shown.exit_code == 0 and "README.md" in shown.output.replace("\n", "")
    assert all(page.count(f"| {name} |") >= 3 for name in names)
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert drawn == {"images-1", "profile", "direction", "markov"}
    run = Run.load(tmp_path / "seed-0.json")
    run_without = replace(run, methods={k: v for k, v in run.methods.items() if k != "constant width"})
    run_without.save(tmp_path / "seed-0.json", overwrite=True)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").rglob("*") if path.is_file()}

    monkeypatch.setattr(reproduce, "draw_images", lambda *_, **__: [])
    CliRunner().invoke(main, ["reproduce", task, "--out", str(tmp_path)], catch_exceptions=False)

    again = Run.load(tmp_path / "seed-0.json")
    assert again.methods["constant width"].values == run.methods["constant width"].values
    assert again.methods["INN"] == run.methods["INN"]
    assert {path: path.stat().st_mtime_ns for path in before} == before  # nothing was made again


def test_real_volumes_are_split_by_patient(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for patient in range(10):
        np.save(data / f"p{patient}.npy", np.full((3, 32, 32), 100.0 * patient, np.float32))

    setting = images.Setting("ct", TINY, 0, source=data, values="hu")
    splits = setting.images()

    values = {name: set(np.unique(part.images.numpy()).tolist()) for name, part in splits.items()}
    assert [len(values[name]) for name in ("train", "val", "test")] == [8, 1, 1]
    assert not values["train"] & values["val"] and not values["train"] & values["test"]


def test_folds_test_every_subject_once_and_keep_other_anatomy_apart(tmp_path: Path) -> None:
    counts = {**{f"p{i}": 3 + 5 * (i % 2) for i in range(12)}, "head": 2}
    for name, count in counts.items():
        np.save(tmp_path / f"{name}.npy", np.zeros((count, 32, 32), np.float32))
    volumes = [
        {"file": f"{name}.npy", "subject": name, "split": "ood" if name == "head" else "train"} for name in counts
    ]
    volumes[0]["split"], volumes[1]["split"] = "val", "test"
    (tmp_path / "manifest.json").write_text(json.dumps({"volumes": volumes}))
    scale = replace(TINY, folds=3, slices_each=4)

    folds = [images.Setting("ct", scale, seed, source=tmp_path, values="hu").images() for seed in range(3)]

    tested = [set(fold["test"].subjects) for fold in folds]
    assert sorted(name for names in tested for name in names) == sorted(counts.keys() - {"head"})
    for fold in folds:
        subjects = {name: set(split.subjects) for name, split in fold.items()}
        assert not subjects["train"] & (subjects["val"] | subjects["test"]) and not subjects["val"] & subjects["test"]
        assert subjects["ood"] == {"head"} and set().union(*subjects.values()) == counts.keys()
        assert Counter(fold["test"].subjects) == {name: min(counts[name], 4) for name in subjects["test"]}
        assert Counter(fold["train"].subjects) == {name: counts[name] for name in subjects["train"]}
        assert all(len(split.images) == len(split.subjects) for split in fold.values())


@pytest.mark.slow
def test_a_run_over_folds_says_what_scouts_gain_by_subject(tmp_path: Path) -> None:
    rng, data = np.random.default_rng(0), tmp_path / "data"
    data.mkdir()
    for patient in range(9):
        np.save(data / f"p{patient}.npy", rng.normal(0.0, 300.0, (8, 32, 32)).astype(np.float32))
    scale = replace(TINY, folds=3, seeds=2, timed=False, artefacts=0, published_epochs=0, probout_epochs=0, members=0)
    monkey = pytest.MonkeyPatch()
    monkey.setitem(scales.IMAGES, "quick", scale)
    chosen = ("INN", "INN with scout", "quantile heads, 4x steps")
    try:
        reproduce.reproduce_images(
            tmp_path, task="denoising", source=data, values="hu", methods=[*chosen, "scout alone", "constant width"]
        )
        with pytest.raises(ValueError, match=r"there is no method 'INN, published' at this scale; there are INN, INN"):
            reproduce.reproduce_images(tmp_path, task="denoising", source=data, values="hu", methods=["INN, published"])
    finally:
        monkey.undo()

    runs = [Run.load(tmp_path / f"seed-{seed}.json") for seed in (0, 1)]
    tested = [set(run.settings["subjects"]) for run in runs]
    page = (tmp_path / "README.md").read_text()
    trained = {name: each["fit"]["parameters"] for name, each in runs[0].settings["curves"].items()}
    assert all(len(names) == 3 for names in tested) and not tested[0] & tested[1]
    assert all(f"| {name} |" in page.partition("## Scouts")[2] for name in chosen)
    assert "times that of quantile heads, 4x steps" in page and "on 6 subjects" in page
    assert trained["constant width"] == 0 < trained["INN"] < trained["INN with scout"]
    assert "## Artefacts" not in page and not (tmp_path / "run-time.json").exists()


def test_photos_are_split_by_photo_or_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = images.Setting("photos", TINY, 1)
    with monkeypatch.context() as patch:
        patch.setattr(photos, "find_spec", lambda _: None)
        with pytest.raises(ValueError, match=r"pip install \"intervalnn\[photos\]\""):
            setting.images()
    pytest.importorskip("skimage")

    found = setting.images()

    assert set().union(*(split.subjects for split in found.values())) == set(photos.NAMES)
    assert not set(found["test"].subjects) & {*found["train"].subjects, *found["val"].subjects}
    for split in found.values():
        assert split.images.shape[1:] == (1, 32, 32) and 0 <= split.images.min() < split.images.max() <= 1


def test_runs_of_other_data_are_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "methods_of", lambda *_: iter(()))
    first = images.Setting("denoising", TINY, 0)
    images.run(first, images.Data(first, tmp_path / "work", print), tmp_path, print)
    run = Run.load(tmp_path / "seed-0.json") if (tmp_path / "seed-0.json").exists() else None
    assert run is None  # nothing is written before a method was measured

    monkeypatch.undo()
    monkeypatch.setattr(
        images, "methods_of", lambda model, *_: iter([("flat", lambda: images.methods.ConstantWidth(model))])
    )
    images.run(first, images.Data(first, tmp_path / "work", print), tmp_path, print)
    other = replace(first, task="mri")

    with pytest.raises(ValueError, match="made of other data or at another scale"):
        images.run(other, images.Data(other, tmp_path / "work", print), tmp_path, print)


def test_a_promise_that_cannot_be_made_is_said_not_raised(tmp_path: Path) -> None:
    setting = replace(images.Setting("denoising", TINY, 0), scale=replace(TINY, patients=(4, 3, 3)))
    found = images.Data(setting, tmp_path, print)
    method = images.methods.ConstantWidth(images.underlying(setting, found, tmp_path))

    assert "refused" in images._promise(method, found)
    assert method.calibration is None


class Flat(images.methods.ConstantWidth):
    """A method without gaps, so that no scaling covers anything."""

    def _predict(self, *args: Any, **_: Any) -> Prediction:
        point = self.point(*args)
        return Prediction(point, *(torch.zeros_like(point) for _ in range(3)))


def test_a_method_that_no_scaling_brings_to_coverage_is_listed_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        images,
        "methods_of",
        lambda model, *_: iter([("flat", lambda: Flat(model)), ("wide", lambda: images.methods.ConstantWidth(model))]),
    )
    setting = images.Setting("denoising", TINY, 0)

    images.run(setting, images.Data(setting, tmp_path / "work", print), tmp_path, print)
    (tmp_path / "seed-0.npz").unlink()  # a run that was passed on without its pictures
    reproduce.draw_images(tmp_path)

    run = Run.load(tmp_path / "seed-0.json")
    assert "no factor keeps this promise" in run.settings["curves"]["flat"]["refused"]
    page = (tmp_path / "README.md").read_text()
    assert "| no scaling of its bounds has it |" in page and page.count("| wide |") >= 3
    assert not list((tmp_path / "figures").glob("images-*"))
