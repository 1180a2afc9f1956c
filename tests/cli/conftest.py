"""A user's project: a model, its weights and data, in a folder of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from safetensors.torch import save_file

from intervalnn.cli import main

CODE = '''
import signal
from pathlib import Path

import torch
from torch import nn


batches_list = [(torch.ones(4, 1, 16), torch.ones(4, 1, 16))]


def net(width=4):
    print("the user's code says something on the standard output", flush=True)
    torch.manual_seed(0)
    first, last = nn.Conv1d(1, width, 3, padding=1), nn.Conv1d(width, 1, 3, padding=1)
    return nn.Sequential(first, nn.ReLU(), nn.Dropout(0.1), last)


def image_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.Conv2d(2, 1, 3, padding=1))


ready = net()


def not_a_model():
    return 3


def batches(count=4, seed=0):
    """Yield batches; Ctrl-C comes while the one is read whose number stands in the file "stop"."""
    stop, generator = Path("stop"), torch.Generator().manual_seed(seed)
    for _ in range(count):
        if stop.exists():
            left = int(stop.read_text()) - 1
            stop.write_text(str(left))
            if left == 0:
                stop.unlink()
                signal.raise_signal(signal.SIGINT)
        y = torch.randn(8, 1, 16, generator=generator)
        yield y + 0.1 * torch.randn(8, 1, 16, generator=generator), y


def dataset():
    return torch.utils.data.TensorDataset(torch.zeros(10, 1, 16), torch.ones(10, 1, 16))


def unchanged(model):
    return model


def broken(model):
    return model % 3


def flat(model):
    from intervalnn import ConstantWidth

    return ConstantWidth(model)
'''

Inn = Callable[..., Result]


def pairs(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    y = generator.normal(size=(samples, 1, 16))
    return y + 0.1 * generator.normal(size=y.shape), y


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``userproject.py``, ``w.safetensors``, data, and a fitted network in ``net.safetensors``."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "userproject.py").write_text(CODE)
    for name, samples, seed in (("train", 64, 1), ("held-out", 60, 2), ("test", 24, 3)):
        x, y = pairs(samples, seed)
        (folder / name).mkdir()
        np.save(folder / name / "x.npy", x)
        np.save(folder / name / "y.npy", y)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        save_file(_module(folder).net().state_dict(), folder / "w.safetensors")
        shown = CliRunner().invoke(
            main, ["fit", *MODEL, "--data", "train", "--epochs", "3", "--out", "net.safetensors"]
        )
    assert shown.exit_code == 0, shown.output
    return folder


MODEL = ["--model", "userproject:net", "--weights", "w.safetensors"]


def _module(folder: Path) -> object:
    sys.path.insert(0, str(folder))
    try:
        import userproject  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(folder))
    return userproject


@pytest.fixture
def inn(project: Path, monkeypatch: pytest.MonkeyPatch) -> Inn:
    """Run a command in the user's folder."""
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run(*words: object) -> Result:
        return CliRunner().invoke(main, [str(word) for word in words])

    return run
