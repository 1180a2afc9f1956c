"""What the search for odd command lines has found, once each."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from fuzzing.lines import MODEL, NET
from fuzzing.project import project
from intervalnn.cli import main
from intervalnn.evaluation.records import Measured, Run
from intervalnn.paper.experiments.deconvolution import examples

Inn = Callable[..., Result]
FIT = ["fit", *(word for group in MODEL for word in group), "--data", "d", "--epochs", "1"]
USE = [word for group in NET for word in group]


@pytest.fixture
def inn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inn]:
    """Run a command in the folder of a user."""
    project(tmp_path / "home")
    monkeypatch.syspath_prepend(str(tmp_path / "home"))
    with contextlib.chdir(tmp_path / "home"):
        yield lambda *words: CliRunner().invoke(main, list(words))


def test_a_checkpoint_with_the_name_of_the_network_would_take_it_away(inn: Inn) -> None:
    shown = inn(*FIT, "--out", "o.safetensors", "--checkpoint", "./o.safetensors")

    assert shown.exit_code == 2 and "--checkpoint and --out are both o.safetensors" in shown.stderr


@pytest.mark.parametrize("name", ["w.safetensors", "x.npy", "net.safetensors", "p.npz", "run.json", "text.toml"])
def test_what_a_command_reads_is_not_replaced(name: str, inn: Inn) -> None:
    words = {
        "w.safetensors": [*FIT, "--out"],
        "x.npy": ["predict", *USE, "--input", "x.npy", "--out"],
        "net.safetensors": ["explain", *USE, "--data", "d", "--plot"],
        "p.npz": ["view", "p.npz", "--export"],
        "run.json": ["report", "run.json", "--out"],
        "text.toml": [*FIT, "--config", "text.toml", "--out"],
    }
    before = Path(name).read_bytes()

    shown = inn(*words[name], name, "--overwrite")

    assert shown.exit_code == 1 and f"{name} is what this command reads" in shown.stderr
    assert Path(name).read_bytes() == before


def test_calibrate_may_replace_its_network(inn: Inn) -> None:
    before = Path("net.safetensors").read_bytes()

    shown = inn("calibrate", *USE, "--data", "d", "--out", "net.safetensors", "--overwrite")

    assert shown.exit_code == 0 and Path("net.safetensors").read_bytes() != before


@pytest.mark.parametrize("name", ["pipe", "loop"])
def test_what_is_no_file_is_not_replaced(name: str, inn: Inn) -> None:
    """With --overwrite, root would have lost /dev/null."""
    shown = inn("calibrate", *USE, "--data", "d", "--out", name, "--overwrite")

    assert shown.exit_code == 1 and f"{name} is neither a file nor a folder" in shown.stderr
    assert not Path(name).is_file()


def test_a_folder_that_is_a_link_to_itself_is_refused(inn: Inn) -> None:
    shown = inn("calibrate", *USE, "--data", "d", "--out", "loop/x.safetensors")

    assert shown.exit_code == 1 and "loop is a file, not a folder" in shown.stderr


def test_a_name_that_cannot_be_shown_does_not_end_what_went_well(inn: Inn) -> None:
    name = os.fsdecode(b"\xfe.npz")

    shown = inn("predict", *USE, "--input", "x.npy", "--out", name)

    assert shown.exit_code == 0 and "Wrote \\udcfe.npz" in shown.stdout and Path(name).is_file()


@pytest.mark.parametrize(
    "words", [["view", "\udcff.npz", "--export"], ["report", "run\udcff", "--out"]], ids=["view", "report"]
)
def test_a_name_that_is_no_text_is_shown_on_a_page(words: list[str], inn: Inn) -> None:
    Path("run\udcff").mkdir()
    Path("run.json").rename("run\udcff/run.json")

    shown = inn(*words, "page\udcff.html")

    assert shown.exit_code == 0 and "\\udcff" in Path("page\udcff.html").read_text(encoding="utf-8")


@pytest.mark.rotating
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no output that is always full")
def test_an_output_that_is_full_is_told_in_one_line(inn: Inn) -> None:
    words = [sys.executable, "-m", "intervalnn.cli", "report", "run.json", "--json"]

    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")


def test_runs_that_differ_in_many_settings_have_short_names(inn: Inn) -> None:
    for seed in range(2):
        settings = {f"setting number {i}": f"{seed} of many" for i in range(40)}
        measured = {"INN": Measured({"mse": [1.0, 2.0]}, 0.1, 1.0)}
        Run(measured, 0.9, {"mse": "lower"}, seed, settings).save(Path(f"many/{seed}.json"))

    shown = inn("report", "many", "--out", "r.html")

    assert shown.exit_code == 0 and len({path.stem for path in Path("r-tables").iterdir()}) == 2


def test_a_plot_without_a_suffix_is_a_picture(inn: Inn) -> None:
    shown = inn("explain", *USE, "--data", "d", "--plot", "layers")

    assert shown.exit_code == 0 and Path("layers").read_bytes().startswith(b"\x89PNG")


def test_a_plot_of_no_known_kind_is_refused_and_leaves_nothing(inn: Inn) -> None:
    shown = inn("explain", *USE, "--data", "d", "--plot", "new/layers.npz")

    assert shown.exit_code == 1 and "new/layers.npz must end in one of" in shown.stderr and ".png" in shown.stderr
    assert not Path("new").exists()


@pytest.mark.parametrize("port", ["-1", "65536", str(2**62)])
def test_a_port_that_is_none_is_refused(port: str, inn: Inn) -> None:
    shown = inn("view", "p.npz", "--no-browser", "--port", port)

    assert shown.exit_code == 1 and f"port {port} of 127.0.0.1 cannot be used" in shown.stderr


@pytest.mark.parametrize("device", ["meta", "xla", "cuda"])
@pytest.mark.parametrize(
    "words", [["reproduce", "deconv"], ["reproduce", "ct"], [*FIT, "--out", "o.safetensors"]], ids=str
)
def test_a_device_that_is_not_there_is_refused(device: str, words: list[str], inn: Inn) -> None:
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one")

    shown = inn(*words, "--device", device)

    assert shown.exit_code == 1 and f"--device {device}" in shown.stderr and "leave --device out" in shown.stderr


@pytest.mark.parametrize("words", [["reproduce", "deconv"], [*FIT, "--out", "o.safetensors"]], ids=["reproduce", "fit"])
def test_a_seed_without_end_is_refused_before_anything_is_trained(words: list[str], inn: Inn) -> None:
    shown = inn(*words, "--seed", str(2**63))

    assert shown.exit_code == 2 and "'--seed'" in shown.stderr


@pytest.mark.parametrize("seed", [-(2**31), 2**31, 2**63 - 1])
def test_every_other_seed_can_be_trained_with(seed: int, inn: Inn) -> None:
    shown = inn(*FIT, "--out", "o.safetensors", "--seed", str(seed))

    assert shown.exit_code == 0


def test_no_patience_at_all_is_refused(inn: Inn) -> None:
    shown = inn(*FIT, "--val", "d", "--out", "o.safetensors", "--patience", "0")

    assert shown.exit_code == 1 and "patience must be at least 1, got 0" in shown.stderr
    assert not Path("o.safetensors").exists()


def test_figures_are_drawn_of_the_first_run_that_is_there(tmp_path: Path) -> None:
    for name in ("noise-0-seed-12.npz", "noise-0-seed-3.npz", "noise-0.05-seed-3.npz"):
        (tmp_path / name).touch()

    assert [path.name for path in examples(tmp_path)] == ["noise-0-seed-3.npz", "noise-0.05-seed-3.npz"]
    with pytest.raises(FileNotFoundError, match="no test signals in"):
        examples(tmp_path / "nowhere")


def test_a_config_that_is_no_text_is_refused(inn: Inn) -> None:
    Path("c.toml").write_bytes(b"[fit]\nepochs = \xff")

    shown = inn(*FIT, "--out", "o.safetensors", "--config", "c.toml")

    assert shown.exit_code == 2 and "c.toml is no TOML: it is not text in UTF-8, at byte 15" in shown.stderr


@pytest.mark.parametrize("key", ["fit.out", "fit.data", "model.weights", "evaluate.nets.a"])
def test_a_name_with_a_null_in_it_is_refused(key: str, inn: Inn) -> None:
    shown = inn(*FIT, "--out", "o.safetensors", "--set", f'{key}="a\\u0000"')

    assert shown.exit_code == 2 and f"'{key.removesuffix('.a')}' must be" in shown.stderr


def test_why_weights_cannot_be_read_is_always_said(inn: Inn) -> None:
    shown = inn(*FIT, "--out", "o.safetensors", "--weights", "empty.npz")

    assert shown.exit_code == 1 and "a torch file of weights (EOFError)" in shown.stderr
