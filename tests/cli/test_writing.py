"""Commands that cannot write say so before the work, and what was to be written where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import MODEL, Inn
from files.places import no_larger_files, read_only
from intervalnn.training import loop as training

NET = ["--net", "net.safetensors", *MODEL]
COMMANDS = {
    "fit": ["fit", *MODEL, "--data", "train", "--epochs", 2, "--out"],
    "calibrate": ["calibrate", *NET, "--data", "held-out", "--out"],
    "predict": ["predict", *NET, "--input", "test/x.npy", "--out"],
    "evaluate": ["evaluate", *NET, "--data", "test", "--out"],
    "export": ["export", *NET, "--data", "test", "--out"],
    "explain": ["explain", *NET, "--data", "test", "--plot"],
}
ENDS = {"predict": ".npz", "evaluate": ".json", "export": ".pt2", "explain": ".png"}


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unwritable_out_is_refused_before_anything_is_loaded(
    name: str, inn: Inn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from intervalnn.cli import models

    monkeypatch.setattr(models, "device_of", lambda _: pytest.fail("it has begun"))
    with read_only(tmp_path / "locked") as folder:
        out = folder / "new" / f"out{ENDS.get(name, '.safetensors')}"
        shown = inn(*COMMANDS[name], out)

    assert shown.exit_code == 1
    assert f"could not write {out}: " in shown.output and "choose a place that can be written to" in shown.output
    assert "Errno" not in shown.output


@pytest.mark.parametrize("name", ["demo", "reproduce deconv", "reproduce ct"])
def test_experiments_refuse_an_unwritable_folder_at_once(name: str, inn: Inn, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    shown = inn(*name.split(), "--out", tmp_path / "file" / "out")

    assert shown.exit_code == 1 and f"{tmp_path / 'file'} is a file, not a folder" in shown.output


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_in_the_place_of_a_file_is_refused_at_once(name: str, inn: Inn, tmp_path: Path) -> None:
    out = tmp_path / f"out{ENDS.get(name, '.safetensors')}"
    out.mkdir()

    shown = inn(*COMMANDS[name], out, "--overwrite")

    assert shown.exit_code == 1 and f"{out} is a folder; give the name of a file in it" in shown.output
    assert not list(out.iterdir())


def test_a_checkpoint_that_cannot_be_written_is_refused_before_training(
    inn: Inn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "fit", lambda *_, **__: pytest.fail("it has begun"))
    (tmp_path / "file").write_text("")

    shown = inn(*COMMANDS["fit"], tmp_path / "o.safetensors", "--checkpoint", tmp_path / "file" / "c.pt")

    assert shown.exit_code == 1 and "is a file, not a folder" in shown.output


@pytest.mark.parametrize("name", ["fit", "calibrate", "predict", "evaluate"])
def test_a_disk_that_is_full_by_then_is_named_too(name: str, inn: Inn, tmp_path: Path) -> None:
    out = tmp_path / f"out{ENDS.get(name, '.safetensors')}"

    with no_larger_files(700):
        shown = inn(*COMMANDS[name], out, "--json")

    told = json.loads(shown.stdout)["error"]
    assert shown.exit_code == 1 and "could not write" in told and "make room on the disk" in told
    assert not list(tmp_path.iterdir())
