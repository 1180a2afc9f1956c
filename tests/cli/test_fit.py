"""inn fit: the same as the library does, from options and files, and on after a stop."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import intervalnn
from cli.conftest import MODEL, Inn

FIT = ["fit", *MODEL, "--data", "train", "--epochs", "2"]


def userproject() -> Any:
    import userproject  # type: ignore[import-not-found]

    return userproject


def loaded(path: Path, model: nn.Module | None = None) -> intervalnn.IntervalNetwork:
    return intervalnn.load(path, model or userproject().net().eval())


def test_it_fits_as_the_library_does(inn: Inn, tmp_path: Path) -> None:
    shown = inn(*FIT, "--layers", 1, "--seed", 3, "--out", tmp_path / "o.safetensors")

    assert shown.exit_code == 0, shown.output
    net = loaded(tmp_path / "o.safetensors")
    data = torch.utils.data.TensorDataset(*(torch.from_numpy(np.load(f"train/{n}.npy")).float() for n in "xy"))
    own = intervalnn.IntervalNetwork(userproject().net().eval(), layers=1)
    history = intervalnn.fit(own, torch.utils.data.DataLoader(data, 16, shuffle=True), epochs=2, seed=3, progress=False)
    assert net.names == own.names == ["3.weight", "3.bias"]
    for name, value in own.state_dict().items():
        torch.testing.assert_close(net.state_dict()[name], value, rtol=0, atol=0)
    assert net.training_settings == history.settings


@pytest.mark.slow
def test_compiled_it_fits_the_same_gaps(inn: Inn, tmp_path: Path) -> None:
    for name, flags in {"plain": [], "compiled": ["--compile"]}.items():
        shown = inn(*FIT, *flags, "--out", tmp_path / f"{name}.safetensors")
        assert shown.exit_code == 0, shown.output

    plain, compiled = (loaded(tmp_path / f"{name}.safetensors").state_dict() for name in ("plain", "compiled"))
    torch.testing.assert_close(compiled, plain, rtol=1e-3, atol=1e-6)
    refused = inn(*FIT, "--compile", "--recompute", "--out", tmp_path / "o.safetensors")
    assert refused.exit_code == 2 and "leave out --recompute or --compile" in refused.stderr


def test_it_says_what_it_wrote_and_what_comes_next(inn: Inn, tmp_path: Path) -> None:
    shown = inn(*FIT, "--out", tmp_path / "o.safetensors")

    assert f"Wrote {tmp_path / 'o.safetensors'}" in shown.stdout.replace("\n", "")
    assert "in 2 epochs" in shown.stdout and "coverage 0." in shown.stdout
    assert f"Next: inn calibrate --net {tmp_path / 'o.safetensors'} --model userproject:net" in shown.stdout
    assert not (tmp_path / "o.safetensors.checkpoint").exists()


def test_nothing_is_overwritten_unless_told(inn: Inn, tmp_path: Path) -> None:
    out = tmp_path / "o.safetensors"
    out.write_text("mine")

    refused = inn(*FIT, "--out", out)

    assert refused.exit_code == 1 and "is there already" in refused.stderr and out.read_text() == "mine"
    assert inn(*FIT, "--out", out, "--overwrite").exit_code == 0 and loaded(out)


def test_options_come_from_a_file_unless_set_or_given(inn: Inn, tmp_path: Path) -> None:
    config = tmp_path / "inn.toml"
    config.write_text(f"""
        batch_size = 32
        [model]
        factory = "userproject:net"
        options = {{ width = 5 }}
        [network]
        layers = ["3"]
        [fit]
        data = "userproject:batches"
        data_options = {{ count = 3, seed = 7 }}
        coverage = 0.6
        epochs = 9
        seed = 9
        include_model = true
        out = "{tmp_path / "o.safetensors"}"
    """)

    shown = inn("fit", "--config", config, "--set", "fit.epochs=8", "--set", "fit.seed=8", "--epochs", 1, "--json")

    assert shown.exit_code == 0, shown.output
    net = loaded(tmp_path / "o.safetensors", userproject().net(5).eval())
    assert net.names == ["3.weight", "3.bias"] and net.training_settings is not None
    assert {"epochs": 1, "seed": 8, "coverage": 0.6}.items() <= net.training_settings.items()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[fit]\nepoch = 3", "unknown key 'fit.epoch'; did you mean 'epochs'?"),
        ("epochs = 3", "unknown key 'epochs'; did you mean 'fit.epochs'?"),
        ("[fitt]\nepochs = 3", "unknown key 'fitt'; did you mean 'fit'?"),
        ("[fit]\nepochs = 'many'", "'fit.epochs' must be a whole number, got 'many'"),
        ("[fit", "is no TOML"),
    ],
)
def test_what_a_file_gets_wrong_is_named_with_the_file(inn: Inn, tmp_path: Path, text: str, message: str) -> None:
    config = tmp_path / "wrong.toml"
    config.write_text(text)

    shown = inn(*FIT, "--out", tmp_path / "o.safetensors", "--config", config)

    assert shown.exit_code == 2
    assert str(config) in shown.stderr and message in shown.stderr


def test_what_is_missing_is_said_with_the_key_of_the_file(inn: Inn) -> None:
    shown = inn("fit", "--model", "userproject:net", "--out", "o.safetensors")

    assert shown.exit_code == 2 and "Missing option '--data', or fit.data in a config file" in shown.stderr


# --- models and weights ---


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "userproject:nett"], "userproject has no 'nett'; did you mean 'net'"),
        (["--model", "usersproject:net"], "there is no module 'usersproject'"),
        (["--model", "usersproject:net"], "did you mean 'userproject'?"),
        (["--model", "userproject"], "must be package.module:name"),
        (["--model", "userproject:not_a_model"], "must return a torch.nn.Module, got a int"),
        (["--model", "userproject:ready", "--set", "model.options.width=3"], "is a model already"),
        (["--model", "userproject:net", "--set", "model.options.wide=3"], "takes (width=4)"),
        (["--model", "userproject:net", "--set", "model.options.width=3"], "does not fit the model: it has '0.weight'"),
        (["--weights", "nowhere.pt"], "there is no file nowhere.pt"),
        (["--weights", "userproject.py"], "userproject.py is refused"),
        (["--weights-key", "best"], "w.safetensors has no key 'best'"),
        (["--device", "toaster"], "--device must be auto, cpu, cuda or the like, got 'toaster'"),
        (["--layers", "7"], "layers must be between 1 and 2"),
        (["--layers", "heads"], "no layer or parameter 'heads'"),
        (["--coverage", "1.5"], "coverage must lie between 0 and 1, got 1.5"),
        (["--data", "nowhere"], "there is no file or folder nowhere"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(inn: Inn, tmp_path: Path, words: list[str], message: str) -> None:
    shown = inn(*FIT, "--out", tmp_path / "o.safetensors", *words)

    assert shown.exit_code == 1 and message in shown.stderr
    assert "Traceback" not in shown.output and not (tmp_path / "o.safetensors").exists()


@pytest.mark.parametrize("wrapped", [False, True])
def test_weights_in_a_torch_file_are_found_where_they_are(inn: Inn, tmp_path: Path, wrapped: bool) -> None:
    state = userproject().net().state_dict()
    state = {f"module.{name}": value for name, value in state.items()} if wrapped else state
    torch.save({"epoch": 7, "optimizer": {"lr": 0.1}, "state_dict": state}, tmp_path / "w.pt")
    torch.save({"a": state, "b": state}, tmp_path / "two.pt")

    found = inn(*FIT, "--out", tmp_path / "o.safetensors", "--weights", tmp_path / "w.pt")
    two = inn(*FIT, "--out", tmp_path / "p.safetensors", "--weights", tmp_path / "two.pt")
    chosen = inn(*FIT, "--out", tmp_path / "p.safetensors", "--weights", tmp_path / "two.pt", "--weights-key", "b")

    assert found.exit_code == chosen.exit_code == 0 and loaded(tmp_path / "o.safetensors")
    assert two.exit_code == 1 and "several state dicts: say which with --weights-key, a or b" in two.stderr


class Harmful:
    def __reduce__(self) -> Any:
        return os.system, ("touch harm-was-done",)


@pytest.mark.parametrize("write", [torch.save, lambda content, path: path.write_bytes(pickle.dumps(content))])
def test_a_file_with_code_in_it_is_refused_and_not_run(inn: Inn, tmp_path: Path, project: Path, write: Any) -> None:
    write({"0.weight": Harmful()}, tmp_path / "w.pt")

    shown = inn(*FIT, "--out", tmp_path / "o.safetensors", "--weights", tmp_path / "w.pt")

    assert shown.exit_code == 1 and "w.pt is refused" in shown.stderr and "never code" in shown.stderr
    assert not (project / "harm-was-done").exists()


def test_a_pickled_model_is_refused_with_what_to_do(inn: Inn, tmp_path: Path) -> None:
    torch.save(userproject().net(), tmp_path / "w.pt")

    shown = inn(*FIT, "--out", tmp_path / "o.safetensors", "--weights", tmp_path / "w.pt")

    assert "torch.nn.modules.container.Sequential would have to be run" in shown.stderr
    assert "torch.save(model.state_dict(), path)" in shown.stderr


def test_a_file_with_the_model_in_it_needs_no_weights(inn: Inn, tmp_path: Path) -> None:
    other = {name: value + 1 for name, value in userproject().net().state_dict().items()}
    save_file(other, tmp_path / "other.safetensors")
    words = ["--weights", tmp_path / "other.safetensors"]
    alone, whole = tmp_path / "alone.safetensors", tmp_path / "whole.safetensors"
    assert (
        inn(*FIT, *words, "--out", alone).exit_code
        == inn(*FIT, *words, "--out", whole, "--include-model").exit_code
        == 0
    )
    calibrate = ["calibrate", "--data", "held-out", "--model", "userproject:net"]

    without = inn(*calibrate, "--net", alone, "--out", tmp_path / "a.safetensors")
    held = inn(*calibrate, "--net", whole, "--out", tmp_path / "b.safetensors")
    again = inn(*calibrate, "--net", tmp_path / "b.safetensors", "--out", tmp_path / "c.safetensors")
    wrong = inn(*calibrate, "--net", whole, "--out", tmp_path / "d.safetensors", "--weights", "w.safetensors")

    assert without.exit_code == 1 and "give them as --weights" in without.stderr
    assert held.exit_code == again.exit_code == 0
    assert wrong.exit_code == 1 and "belongs to another model" in wrong.stderr


# --- Ctrl-C ---

STOPPED = ["fit", "--model", "userproject:net", "--data", "userproject:batches", "--epochs", "4", "--layers", "1"]


def test_stopped_it_goes_on_by_the_same_command_to_the_same_file(inn: Inn, tmp_path: Path, project: Path) -> None:
    out, whole = tmp_path / "o.safetensors", tmp_path / "whole.safetensors"
    (project / "stop").write_text("22")  # some way into the third epoch

    stopped = inn(*STOPPED, "--out", out)
    was_there = out.exists()
    resumed = inn(*STOPPED, "--out", out)

    assert stopped.exit_code == 130 and not was_there
    assert "the same command goes on from there" in stopped.stderr
    assert resumed.exit_code == 0 and f"Going on from {out}.checkpoint" in resumed.stdout.replace("\n", "")
    assert inn(*STOPPED, "--out", whole).exit_code == 0
    assert out.read_bytes() == whole.read_bytes()
    assert not (tmp_path / "o.safetensors.checkpoint").exists()


def test_stopped_before_anything_is_done_it_says_so(inn: Inn, tmp_path: Path, project: Path) -> None:
    (project / "stop").write_text("12")

    stopped = inn(*STOPPED, "--out", tmp_path / "o.safetensors")

    assert stopped.exit_code == 130 and "the same command starts anew" in stopped.stderr


def test_it_does_not_go_on_with_other_options(inn: Inn, tmp_path: Path, project: Path) -> None:
    out = tmp_path / "o.safetensors"
    (project / "stop").write_text("22")
    inn(*STOPPED, "--out", out)

    other_epochs = inn(*STOPPED, "--out", out, "--epochs", 5)
    other_layers = inn(*STOPPED, "--out", out, "--layers", "all")

    assert other_epochs.exit_code == 1 and "was written with epochs=4, now it is 5" in other_epochs.stderr
    assert other_layers.exit_code == 1 and "a network with other layers" in other_layers.stderr


@pytest.mark.slow
def test_a_real_ctrl_c_leaves_a_run_that_goes_on(project: Path, tmp_path: Path) -> None:
    out, whole = tmp_path / "o.safetensors", tmp_path / "whole.safetensors"
    command = [sys.executable, "-m", "intervalnn.cli", *FIT[:-1], "60", "--quiet", "--out"]
    process = subprocess.Popen([*command, out], cwd=project, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 120
        while not out.with_name("o.safetensors.checkpoint").exists() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()

    for path in (out, whole):
        subprocess.run([*command, path], cwd=project, check=True, timeout=300)

    assert process.returncode == 130 and "the same command goes on from there" in errors
    assert "Traceback" not in errors
    assert out.read_bytes() == whole.read_bytes()
