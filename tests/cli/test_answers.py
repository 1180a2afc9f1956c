"""What commands answer to mistakes that many make: what was wanted, and what to type instead."""

from __future__ import annotations

import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
from click.testing import CliRunner

import intervalnn
from cli.conftest import MODEL, Inn
from data.readers.dicoms import pixels, save, slice_of
from intervalnn.cli import main

NET = ["--net", "net.safetensors", *MODEL]
METHODS = """
import torch
from torch import nn

import intervalnn as inn


def quantiles(model):
    x = torch.linspace(-1, 1, 64).reshape(4, 1, 16)
    method = inn.QuantileHeads(model)
    inn.fit(method, [(x, x)], epochs=1, progress=False)
    return method


def net3d():
    torch.manual_seed(0)
    return nn.Conv3d(1, 1, 3, padding=1)


def triples():
    yield torch.ones(4, 1, 16), torch.ones(4, 1, 16), torch.ones(4)
"""


@pytest.fixture(scope="session", autouse=True)
def methods(project: Path) -> None:
    """A module of the user's with methods of the user's own."""
    (project / "mymethods.py").write_text(METHODS)
    (project / "inside").mkdir()
    (project / "inside" / "nets.py").write_text(METHODS)


@pytest.fixture(scope="module")
def volume_net(project: Path, methods: None) -> list[str]:
    """Options for a network of three dimensions."""
    import sys

    sys.path.insert(0, str(project))
    try:
        import mymethods  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(project))
    net = intervalnn.IntervalNetwork(mymethods.net3d().eval(), layers="all")
    net.set_gaps("bias", below=0.1, above=0.2)
    net.save(project / "volume.safetensors")
    return ["--net", "volume.safetensors", "--model", "mymethods:net3d"]


def scan(path: Path, low: float = -900, high: float = 900) -> Path:
    stored = np.random.default_rng(0).uniform(low, high, (8, 8, 3)).astype(np.float32)
    nibabel.save(nibabel.Nifti1Image(stored, np.eye(4)), path)
    return path


# --- evaluate ---


@pytest.mark.parametrize("name", ["ErrorPredictor", "ProbOut", "QuantileHeads", "IntervalLossHeads", "Ensemble.like"])
def test_methods_that_were_never_fitted_are_refused_with_an_example(inn: Inn, tmp_path: Path, name: str) -> None:
    shown = inn("evaluate", "--method", f"q=intervalnn:{name}", *MODEL, "--data", "test", "--out", tmp_path / "r.json")

    assert shown.exit_code == 1 and "method 'q' was never fitted, and inn evaluate fits nothing" in shown.stderr
    assert "q=mymethods:quantiles" in shown.stderr and "    inn.fit(method, train)" in shown.stderr
    assert not (tmp_path / "r.json").exists()


def test_a_function_of_ones_own_gives_a_fitted_method(inn: Inn, tmp_path: Path) -> None:
    words = ["--data", "test", "--held-out", "held-out", "--out", tmp_path / "r.json", "--json"]

    shown = inn("evaluate", "--method", "q=mymethods:quantiles", *MODEL, *words)

    assert shown.exit_code == 0, shown.output
    assert "width at equal coverage" in json.loads(shown.stdout)["methods"]["q"]


# --- endings ---


@pytest.mark.parametrize(
    ("words", "wrong", "end"),
    [
        (["fit", *MODEL, "--data", "train", "--epochs", 1], "k4.pt", ".safetensors"),
        (["calibrate", *NET, "--data", "held-out"], "k4", ".safetensors"),
        (["evaluate", *NET, "--data", "test"], "r4", ".json"),
        (["report", "."], "x.pdf", ".html"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else given,
)
def test_a_file_is_named_for_what_it_holds(inn: Inn, tmp_path: Path, words: list[str], wrong: str, end: str) -> None:
    shown = inn(*words, "--out", tmp_path / wrong)

    assert shown.exit_code == 2 and f"--out must end in {end}, got" in shown.stderr
    assert not list(tmp_path.iterdir())


# --- fit ---


def test_a_checkpoint_of_other_settings_is_named_with_what_to_do(inn: Inn, tmp_path: Path, project: Path) -> None:
    words = ["fit", "--model", "userproject:net", "--data", "userproject:batches", "--layers", 1]
    words += ["--out", tmp_path / "o.safetensors"]
    (project / "stop").write_text("22")
    stopped = inn(*words, "--epochs", 4)
    checkpoint = tmp_path / "o.safetensors.checkpoint"

    refused = inn(*words, "--epochs", 2, "--overwrite")
    elsewhere = inn(*words, "--epochs", 2, "--checkpoint", tmp_path / "other.checkpoint")

    assert stopped.exit_code == 130 and refused.exit_code == 1
    assert f"the checkpoint {checkpoint} was written with epochs=4, now it is 2" in refused.stderr
    assert "delete it or name another checkpoint (--checkpoint FILE) to start anew" in refused.stderr
    assert elsewhere.exit_code == 0 and checkpoint.exists()


def test_one_epoch_is_one(inn: Inn, tmp_path: Path) -> None:
    shown = inn("fit", *MODEL, "--data", "train", "--epochs", 1, "--out", tmp_path / "o.safetensors")

    assert "in 1 epoch, " in " ".join(shown.stdout.split())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("userproject.py:net", "did you mean 'userproject'?"),
        ("./userproject:net", "there is no module './userproject', "),
        ("./userproject:net", "did you mean 'userproject'?"),
        ("./userproject.py:net", "did you mean 'userproject'?"),
        ("inside/nets:net3d", "did you mean 'inside.nets'?"),
        ("../nowhere:net", "there is no module '../nowhere', "),
    ],
)
def test_a_path_in_the_place_of_a_module_is_answered_with_the_module(
    inn: Inn, tmp_path: Path, model: str, message: str
) -> None:
    shown = inn("fit", "--model", model, "--data", "train", "--out", tmp_path / "o.safetensors")

    assert shown.exit_code == 1 and message in shown.stderr and "TypeError" not in shown.stderr


def test_batches_that_are_no_pairs_are_told_by_their_length(inn: Inn, tmp_path: Path) -> None:
    shown = inn("fit", *MODEL, "--data", "mymethods:triples", "--out", tmp_path / "o.safetensors")

    assert (
        shown.exit_code == 1
        and "a pair (x, y) or a mapping with 'input' and 'target', got a tuple of 3" in shown.stderr
    )


# --- volumes ---


def test_a_model_of_three_dimensions_is_told_of_patches(inn: Inn, tmp_path: Path, volume_net: list[str]) -> None:
    words = ["predict", *volume_net, "--input", scan(tmp_path / "scan.nii.gz"), "--out", tmp_path / "out"]

    refused = inn(*words)
    shown = inn(*words, "--patch", "8,8,8")

    assert refused.exit_code == 1 and "predicted slice by slice" in refused.stderr
    assert "--patch D,H,W" in refused.stderr
    assert shown.exit_code == 0, shown.output
    assert nibabel.load(tmp_path / "out" / "upper.nii.gz").shape == (8, 8, 3)


def test_patches_that_are_too_small_are_told_of_an_overlap(inn: Inn, tmp_path: Path, volume_net: list[str]) -> None:
    words = ["predict", *volume_net, "--input", scan(tmp_path / "scan.nii.gz"), "--out", tmp_path / "out"]

    refused = inn(*words, "--patch", "8,2,8")
    shown = inn(*words, "--patch", "8,2,8", "--overlap", 0.25)

    assert refused.exit_code == 1 and "a tile must have at least" in refused.stderr
    assert "--overlap 0.25" in refused.stderr
    assert shown.exit_code == 0, shown.output


@pytest.mark.filterwarnings("default:scan.nii.gz holds values")
def test_images_on_a_scale_from_0_to_1_are_warned_of(inn: Inn, tmp_path: Path, volume_net: list[str]) -> None:
    path = scan(tmp_path / "scan.nii.gz", 0, 1)
    words = ["predict", *volume_net, "--input", path, "--patch", "8,8,8", "--out"]

    warned, told = inn(*words, tmp_path / "a"), inn(*words, tmp_path / "b", "--values", "unit")

    assert warned.exit_code == told.exit_code == 0
    assert "Warning: scan.nii.gz holds values from" in warned.stderr and "--values unit" in warned.stderr
    assert "Warning" not in told.stderr


def test_images_that_are_no_ct_are_refused_by_their_modality(inn: Inn, tmp_path: Path, volume_net: list[str]) -> None:
    save(tmp_path / "mr" / "1.dcm", slice_of(pixels(0), Modality="MR"))

    shown = inn("predict", *volume_net, "--input", tmp_path / "mr", "--out", tmp_path / "out")

    assert shown.exit_code == 1 and "no volume that could be read" in shown.stderr
    assert "1.dcm is no CT, its modality is MR" in shown.stderr


# --- export ---


@pytest.mark.rotating
@pytest.mark.parametrize("kind", ["file", "folder", "one file each", "npz"])
def test_an_export_needs_no_targets(inn: Inn, tmp_path: Path, kind: str) -> None:
    x = np.load("test/x.npy")
    (tmp_path / "d" / "x").mkdir(parents=True)
    if kind == "one file each":
        np.save(tmp_path / "d" / "x" / "1.npy", x[0])
    elif kind == "npz":
        np.savez(tmp_path / "d.npz", x=x)
    else:
        np.save(tmp_path / "d" / "x.npy", x)
    data = {"file": tmp_path / "d" / "x.npy", "npz": tmp_path / "d.npz"}.get(kind, tmp_path / "d")

    shown = inn("export", *NET, "--data", data, "--out", tmp_path / "n.pt2", "--no-verify", "--json")

    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["card"]["inputs"] == [
        {"name": "input", "shape": ["batch", 1, "length"], "dtype": "float32"}
    ]


def test_an_export_returns_what_is_asked_for(inn: Inn, tmp_path: Path) -> None:
    words = ["export", *NET, "--data", "test/x.npy", "--out", tmp_path / "n.pt2", "--no-verify"]

    shown = inn(*words, "--outputs", "point,score, direction", "--json")
    wrong = inn(*words, "--outputs", "point,width", "--overwrite")

    outputs = [each["name"] for each in json.loads(shown.stdout)["card"]["outputs"]]
    assert outputs == ["point", "score", "direction"]
    assert wrong.exit_code == 1 and "outputs must be some of point, lower, upper" in wrong.stderr


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("nowhere", "there is no file or folder nowhere"),
        ("w.safetensors", "data is a folder, an npz file or package.module:loader"),
        ("empty.npy", "empty.npy holds no samples"),
        ("wide.npy", "the model cannot take a batch of shape (2, 2, 16) from wide.npy"),
    ],
)
def test_an_example_that_does_not_fit_is_named(
    inn: Inn, tmp_path: Path, project: Path, data: str, message: str
) -> None:
    np.save(project / "empty.npy", np.zeros((0, 1, 16)))
    np.save(project / "wide.npy", np.zeros((2, 2, 16)))

    shown = inn("export", *NET, "--data", data, "--out", tmp_path / "n.pt2")

    assert shown.exit_code == 1 and message in shown.stderr


# --- doctor ---


def test_doctor_names_extras_as_the_page_on_installation_does() -> None:
    shown = CliRunner().invoke(main, ["doctor"])

    page = (Path(__file__).parents[2] / "docs" / "install.md").read_text()
    assert 'pip install ".[NAME]"' in shown.stdout and 'pip install ".[' in page
