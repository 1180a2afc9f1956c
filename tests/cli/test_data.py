"""Data: every layout gives the same samples, and what does not fit is said before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from cli.conftest import MODEL, Inn, pairs
from intervalnn.cli.samples import samples_in

X, Y = pairs(6, seed=5)


def two_arrays(folder: Path) -> Path:
    np.save(folder / "x.npy", X)
    np.save(folder / "target.npy", Y.astype(">f4"))
    return folder


def archives(folder: Path) -> Path:
    np.savez(folder / "a.npz", x=X[:4], y=Y[:4])
    np.savez_compressed(folder / "b.npz", input=X[4:].astype(np.float32), target=Y[4:])
    return folder


def one_archive(folder: Path) -> Path:
    np.savez(folder / "all.npz", x=X, y=Y, more=np.zeros(3))
    return folder / "all.npz"


def two_folders(folder: Path) -> Path:
    for name, arrays in (("input", X), ("y", Y)):
        (folder / name).mkdir()
        for i, array in enumerate(arrays):
            np.save(folder / name / f"{i:03d}.npy", array)
    return folder


@pytest.mark.parametrize("write", [two_arrays, archives, one_archive, two_folders])
def test_every_layout_gives_the_same_samples(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    samples = samples_in(write(tmp_path), torch.float32)

    x, y = zip(*(samples[i] for i in range(len(samples))), strict=True)
    torch.testing.assert_close(torch.stack(x), torch.tensor(X, dtype=torch.float32))
    torch.testing.assert_close(torch.stack(y), torch.tensor(Y, dtype=torch.float32))


def test_numbers_come_as_the_model_computes(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.arange(6, dtype=np.int32), y=Y.astype(np.float16))

    x, y = samples_in(tmp_path, torch.float64)[2]

    assert (x.dtype, int(x)) == (torch.int64, 2) and y.dtype == torch.float64


def unequal(folder: Path) -> str:
    np.savez(folder / "d.npz", x=X, y=Y[:3])
    return "must have as many samples along their first axis, got (6, 1, 16) and (3, 1, 16)"


def unequal_arrays(folder: Path) -> str:
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y[:3])
    return "must have a target for each input, got 6 of x and 3 of y"


def other_shapes(folder: Path) -> str:
    np.savez(folder / "a.npz", x=X, y=Y)
    np.savez(folder / "b.npz", x=X[..., :8], y=Y[..., :8])
    return "all samples must have one shape, and x of"


def other_names(folder: Path) -> str:
    np.savez(folder / "d.npz", image=X, label=Y)
    return "must have arrays x and y, or input and target; it has image, label"


def alone(folder: Path) -> str:
    two_folders(folder)
    (folder / "y" / "003.npy").unlink()
    return "003.npy is in one of them only"


def other_size(folder: Path) -> str:
    two_folders(folder)
    np.save(folder / "input" / "003.npy", X[3, :, :8])
    return "003.npy has (1, 8), where"


def bytes_(folder: Path) -> str:
    np.savez(folder / "d.npz", x=np.zeros((6, 1, 16), np.uint8), y=Y)
    return "holds uint8; store it as float32, on the scale that the model takes"


def objects(folder: Path) -> str:
    np.save(folder / "x.npy", np.array([X, None], dtype=object), allow_pickle=True)
    np.save(folder / "y.npy", Y)
    return "is no npy file of plain numbers"


def cut_short(folder: Path) -> str:
    np.savez(folder / "d.npz", x=X, y=Y)
    (folder / "d.npz").write_bytes((folder / "d.npz").read_bytes()[:200])
    return "is no npz file of plain numbers, or a part of one only"


def nothing(folder: Path) -> str:
    (folder / "notes.txt").write_text("nothing here")
    return "must hold x.npy and y.npy, or npz files with x and y, or folders x and y of npy files; it has notes.txt"


def no_samples(folder: Path) -> str:
    np.savez(folder / "d.npz", x=X[:0], y=Y[:0])
    return "holds no samples"


def without_channels(folder: Path) -> str:
    np.savez(folder / "d.npz", x=np.zeros((6, 3, 5, 16)), y=Y)
    return "the model cannot take a batch of shape (6, 3, 5, 16) from"


def other_targets(folder: Path) -> str:
    np.savez(folder / "d.npz", x=X, y=Y[:, 0])
    return "must have the shape (6, 1, 16) of what the model makes of x (6, 1, 16), got (6, 16)"


WRONG = [unequal, unequal_arrays, other_shapes, other_names, alone, other_size, bytes_, objects, cut_short, nothing]


@pytest.mark.parametrize("write", [*WRONG, no_samples, without_channels, other_targets])
def test_data_that_does_not_fit_is_refused_with_the_reason(
    inn: Inn, tmp_path: Path, write: Callable[[Path], str]
) -> None:
    message = write(tmp_path)

    shown = inn("fit", *MODEL, "--data", tmp_path, "--out", tmp_path / "o.safetensors", "--epochs", 1)

    assert shown.exit_code == 1 and message in shown.stderr
    assert not (tmp_path / "o.safetensors").exists()


@pytest.mark.parametrize("source", ["userproject:dataset", "userproject:batches", "userproject:batches_list"])
def test_loaders_of_any_kind_are_gone_through_epoch_by_epoch(inn: Inn, tmp_path: Path, source: str) -> None:
    out = tmp_path / "o.safetensors"

    shown = inn("fit", *MODEL, "--data", source, "--val", source, "--out", out, "--epochs", 2, "--batch-size", 4)

    assert shown.exit_code == 0, shown.output
    assert "in 2 epochs" in shown.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "userproject:batchez"], "userproject has no 'batchez'; did you mean 'batches'"),
        (["--data", "userproject:batches", "--set", "fit.data_options.size=3"], "takes (count=4, seed=0)"),
        (["--data", "userproject:batches", "--set", "fit.data_options.count=0"], "is empty"),
        (["--data", "userproject:not_a_model"], "must give a DataLoader or an iterable of batches"),
        (["--data", "userproject:batches_list", "--set", "fit.data_options.n=1"], "takes no options"),
        (["--data", "train", "--batch-size", "0"], "--batch-size must be at least 1, got 0"),
    ],
)
def test_loaders_that_do_not_fit_are_refused(inn: Inn, tmp_path: Path, words: list[str], message: str) -> None:
    shown = inn("fit", *MODEL, "--out", tmp_path / "o.safetensors", "--epochs", 1, *words)

    assert shown.exit_code == 1 and message in shown.stderr
