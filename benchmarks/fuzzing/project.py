"""Project: the folder of a user, with all that commands take, and with what they should not be given."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import nibabel
import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

import intervalnn as inn
from intervalnn.evaluation.records import Measured, Run
from intervalnn.prediction import Prediction
from intervalnn.view import save_npz

__all__ = ["PATHS", "project"]

CODE = """
import torch
from torch import nn

def net(width=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, min(width, 64)), nn.ReLU(), nn.Linear(min(width, 64), 4))

def image_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), nn.ReLU(), nn.Conv2d(1, 1, 1))

def batches(count=2):
    for _ in range(min(count, 64)):
        yield torch.ones(4, 4), torch.zeros(4, 4)

def broken():
    raise KeyError("nothing")

number = 3
"""
RUNS = Path(__file__).parents[2] / "results" / "denoising" / "quick"
WHOLE = ["x.npy", "d", "many", "v.nii.gz", "p.npz", "predictions", "w.safetensors", "w.pt", "net.safetensors"]
WHOLE += ["image.safetensors", "run.json", "runs", "with space.npy", "größe ✓", "link.npy", "\udcff.npz"]
ODD = ["", ".", "..", "~", "-", "--", "nowhere", "nowhere/x.npz", "x.npy/under", "x.npy/", "empty", "empty.npz"]
ODD += [
    "text.toml",
    "broken-link",
    "loop",
    "loop/x.npz",
    "pipe",
    "locked/x.npz",
    "/proc/nothing/x.npz",
    "new\nline.npz",
]
ODD += ["n" * 300, "long/" * 900 + "x.npz", " ", "out/ü ß.npz", "out/\udcff.npz", "abusedproject.py", "*.npy", "%s.npz"]
NEW = [f"out/z{suffix}" for suffix in ("", ".npz", ".json", ".html", ".png", ".pdf", ".pt2", ".onnx", ".safetensors")]
PATHS = (*WHOLE, *WHOLE, *NEW, *ODD)


@cache
def _made() -> Path:
    folder = Path(tempfile.mkdtemp())
    (folder / "abusedproject.py").write_text(CODE)
    for place in ("d", "many", "predictions", "empty", "größe ✓"):
        (folder / place).mkdir()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 4)).eval()
    save_file(model.state_dict(), folder / "w.safetensors")
    torch.save({"epoch": 3, "model": model.state_dict()}, folder / "w.pt")
    net = inn.IntervalNetwork(model, "all")
    net.set_gaps("0.weight", 0.1, 0.1)
    net.set_gaps("2.bias", 0.1, 0.1)
    net.save(folder / "net.safetensors")
    torch.manual_seed(0)
    images = nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), nn.ReLU(), nn.Conv2d(1, 1, 1)).eval()
    inn.IntervalNetwork(images, "all").save(folder / "image.safetensors", include_model=True)
    x = np.random.default_rng(0).normal(size=(16, 4))
    for name in ("x.npy", "with space.npy", "d/x.npy", "d/y.npy", "größe ✓/x.npy", "größe ✓/y.npy"):
        np.save(folder / name, x)
    for name in ("a.npy", "b.npy"):
        np.save(folder / "many" / name, x)
    nibabel.save(nibabel.Nifti1Image(np.zeros((5, 4, 3), np.int16), np.eye(4)), folder / "v.nii.gz")
    Run({"INN": Measured({"mse": [1.0, 2.0]}, 0.1, 1.0)}, 0.9, {"mse": "lower"}).save(folder / "run.json")
    if RUNS.is_dir():  # which the repository has, and the sdist has not
        shutil.copytree(RUNS, folder / "runs", ignore=shutil.ignore_patterns("figures"))
    point = torch.zeros(2, 1, 8)
    for name in ("p.npz", "predictions/a.npz", "predictions/b.npz", "\udcff.npz"):
        save_npz(folder / name, Prediction(point, point + 1, point + 1, point + 2))
    (folder / "empty.npz").touch()
    (folder / "text.toml").write_text("batch_size = 4\n[fit]\nepochs = 1\n")
    (folder / "link.npy").symlink_to("x.npy")
    (folder / "broken-link").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    return folder


def project(home: Path) -> None:
    """Make a folder with a user's code, weights, data, networks, results and predictions."""
    shutil.copytree(_made(), home, symlinks=True)
    os.mkfifo(home / "pipe")
    (home / "locked").mkdir(mode=0o555)  # which binds everyone but root
