"""Commands: command lines that nobody should type, and what must come of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from random import Random

import click
import numpy as np
import torch
from click.testing import CliRunner
from safetensors.torch import save_file
from torch import nn

import intervalnn as inn
from abuse.mutations import TEXTS
from intervalnn.cli import main
from intervalnn.prediction import Prediction
from intervalnn.results import Measured, Run
from intervalnn.view import save_npz

__all__ = ["arguments", "case", "check"]

CODE = """
import torch
from torch import nn

def net(width=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 4))

def broken():
    raise KeyError("nothing")

number = 3
"""
MODEL = ["--model", "abusedproject:net", "--weights", "w.safetensors"]
NET = ["--net", "net.safetensors", *MODEL]
RIGHT: dict[str, list[str]] = {
    "fit": [*MODEL, "--data", "d", "--out", "out/new.safetensors", "--epochs", "1"],
    "calibrate": [*NET, "--data", "d", "--out", "out/new.safetensors"],
    "predict": [*NET, "--input", "x.npy", "--out", "out/p.npz"],
    "evaluate": ["--net", "a=net.safetensors", *MODEL, "--data", "d", "--out", "out/run.json"],
    "explain": [*NET, "--data", "d"],
    "export": [*NET, "--data", "d", "--out", "out/net.pt2", "--no-verify"],
    "report": ["run.json", "--out", "out/r.html"],
    "view": ["p.npz", "--export", "out/v.html"],
    "reproduce": ["deconv", "--draw-only", "--out", "out"],
    "demo": ["--out", "x.npy"],
    "doctor": [],
}
COMMANDS = [*("fit", "calibrate", "predict", "evaluate", "explain", "report", "view", "reproduce") * 4, *RIGHT]
WRITTEN = ("--out", "--export", "--plot", "--checkpoint")
WORDS = (
    *(text for text in TEXTS if "\x00" not in text),
    *(
        "0",
        "-1",
        "1",
        "2",
        "0.5",
        "1e400",
        "9" * 30,
        "1,2",
        "1,,",
        "1:2:0",
        "::",
        "x.npy",
        "d",
        "p.npz",
        "w.safetensors",
    ),
    *("net.safetensors", "run.json", "abusedproject:broken", "abusedproject:number", "abusedproject:nothing", "os:"),
    *(
        "json:loads",
        "a=b",
        "=",
        "fit.lr=x",
        "model.options.width=0",
        "network.layers=99",
        "cuda:7",
        "meta",
        "out/z.npz",
    ),
)
SLOW = ("--epochs", "--set", "--debug", "--config")  # what would take its time, or is meant to show a traceback


@cache
def project() -> Path:
    """Return a folder with a user's code, weights, data, a network, results and a prediction."""
    folder = Path(tempfile.mkdtemp())
    (folder / "abusedproject.py").write_text(CODE)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 4)).eval()
    save_file(model.state_dict(), folder / "w.safetensors")
    net = inn.IntervalNetwork(model, "all")
    net.set_gaps("0.weight", 0.1, 0.1)
    net.save(folder / "net.safetensors")
    x = np.random.default_rng(0).normal(size=(8, 4))
    (folder / "d").mkdir()
    for path in (folder / "x.npy", folder / "d" / "x.npy", folder / "d" / "y.npy"):
        np.save(path, x)
    Run({"INN": Measured({"mse": [1.0, 2.0]}, 0.1, 1.0)}, 0.9, {"mse": "lower"}).save(folder / "run.json")
    point = torch.zeros(2, 1, 8)
    save_npz(folder / "p.npz", Prediction(point, point + 1, point + 1, point + 2))
    return folder


def arguments(random: Random) -> list[str]:
    """Return a command line that is right but for a few places."""
    name = random.choice(COMMANDS)
    words = list(RIGHT[name])
    for _ in range(random.randrange(4)):
        what, at = random.randrange(4), random.randrange(len(words) + 1)
        if what == 0 and words:
            del words[min(at, len(words) - 1)]
        elif what == 1 and words:
            words[min(at, len(words) - 1)] = random.choice(WORDS)
        elif what == 2:
            words.insert(at, random.choice(WORDS))
        else:
            words += _option(name, random)
    return [name, *words, *_ends(name, words)]


def _option(name: str, random: Random) -> list[str]:
    command = main.commands[name]
    command = command.commands["deconv"] if isinstance(command, click.Group) else command
    options = [each for each in command.params if isinstance(each, click.Option)]
    chosen = random.choice([each for each in options if not set(each.opts) & set(SLOW)] or options)
    flag = random.choice([*chosen.opts, *chosen.secondary_opts])
    kind = chosen.type
    if chosen.is_flag:
        return [flag]
    if isinstance(kind, click.Choice) and random.random() < 0.5:
        return [flag, random.choice(list(kind.choices))]
    return [flag, random.choice(WORDS)]


def _ends(name: str, words: list[str]) -> list[str]:
    """Return what keeps a command from running for minutes, or for ever."""
    if name == "fit":
        return ["--epochs", "1"]
    if name == "view":
        return ["--export", "out/last.html"] if "--export" not in words else []
    return {"reproduce": ["--draw-only"] * 2, "demo": ["too-much"] * 2}.get(name, [])  # an option may take the first


def case(random: Random, folder: Path) -> None:
    """Run a command line that is odd somewhere."""
    check(arguments(random), folder)


def check(words: list[str], folder: Path) -> None:
    """Run a command in a project of its own; fails unless it ends as commands do, and wrote where it was told to."""
    home = folder / "a" / "b" / "project"  # so that ../.. is still ours
    shutil.copytree(project(), home)
    before = _files(folder)
    path = list(sys.path)
    with contextlib.chdir(home):
        os.environ.setdefault("COLUMNS", "200")
        try:
            shown = CliRunner().invoke(main, words)
        finally:
            sys.path[:] = path
    text = f"inn {' '.join(words)[:500]}: exit code {shown.exit_code}\n{shown.output[-1500:]}"
    assert shown.exit_code in (0, 1, 2), text
    assert shown.exception is None or isinstance(shown.exception, SystemExit), text
    assert shown.exit_code == 0 or "Error" in shown.output or "Usage" in shown.output, f"says nothing: {text}"
    assert "Traceback" not in shown.output and "With --debug it says where" not in shown.output, text
    told = _told(words, home)
    after = _files(folder)
    touched = [path for path in after if after[path] != before.get(path)] + [
        path for path in before if path not in after
    ]
    strays = [path for path in touched if not any(str(path).startswith(str(each)) for each in told)]
    assert not strays, f"wrote {strays}: {text}"
    lost = [path for path in touched if path in before]
    assert not lost or "--overwrite" in words, f"replaced {lost}: {text}"


def _told(words: list[str], home: Path) -> list[Path]:
    """Return where a command was told to write, or writes where it is not."""
    outs = [words[i + 1] for i, word in enumerate(words[:-1]) if word in WRITTEN]
    outs += [word.partition("=")[2] for word in words if word.startswith(WRITTEN) and "=" in word]
    places = [Path(os.path.normpath(home / out)) for out in (*outs, "report", "results", "__pycache__") if out]
    return places + [place.with_suffix("") for place in places if place.name]  # what lies beside it bears its name


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(folder.rglob("*")) if p.is_file()}
