"""Killed processes, full disks, read-only folders, two at once: nothing is lost, nothing is half-written."""

from __future__ import annotations

import contextlib
import errno
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import intervalnn as inn
from files.places import fill, mounted, no_larger_files, read_only
from fuzzing import kills
from intervalnn.cli.folder import RECORD, Folder
from intervalnn.evaluation.records import Run
from intervalnn.evaluation.report.html import write_report
from intervalnn.view import export_html, save_npz

ROOT = Path(__file__).parents[2]


# --- killed ---


@pytest.mark.parametrize(
    ("only", "minutes"), [("cache", "0.01"), pytest.param("", "0.05", marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_jobs_killed_at_random_moments_end_as_undisturbed_ones(only: str, minutes: str, tmp_path: Path) -> None:
    options = ["--minutes", minutes, "--kills", "3", "--seed", "1", "--only", only]
    command = [sys.executable, ROOT / "benchmarks" / "kill.py", *options]

    done = subprocess.run([*command, "--out", tmp_path / "found.json"], check=False)

    found = json.loads((tmp_path / "found.json").read_text())
    assert done.returncode == 0, found
    assert found["total"]["kills"] >= 3 and not any(
        found["total"][key] for key in ("lost", "half_written", "different")
    )


def test_a_folder_of_predictions_survives_a_kill_at_its_very_start(tmp_path: Path) -> None:
    """Of the folder and its record, one was made before the other; without the record the folder was refused."""
    into = Folder(tmp_path / "out", {"net": 1})

    assert [path.name for path in into.part.iterdir()] == [RECORD]
    assert Folder(tmp_path / "out", {"net": 1}).part == into.part
    save_npz(into.part / "a.npz", kills.prediction(0))
    again = Folder(tmp_path / "out", {"net": 2})
    assert not again.has("a.npz") and [path.name for path in tmp_path.iterdir()] == ["out.part"]


# --- full ---


@contextlib.contextmanager
def full(kind: str, folder: Path, old: Path) -> Iterator[Path]:
    """Give a folder with an old file in it, and no room for another: on the disk, or by a limit of the system."""
    with mounted(folder, "size=64k") if kind == "disk" else contextlib.nullcontext():
        (folder / old).parent.mkdir(parents=True, exist_ok=True)
        (folder / old).write_bytes(b"old")
        if kind == "disk":
            fill(folder)
            yield folder
        else:
            with no_larger_files():
                yield folder


def large() -> inn.Prediction:
    return kills.prediction(0, (4, 100, 100))


def plot(folder: Path, version: int) -> None:
    kills.network(version).explain(torch.ones(2, 200)).plot(folder / "layers.png")


WRITERS: dict[str, tuple[Callable[[Path, int], object], str]] = {
    "network": (kills.save_network, "net.safetensors"),
    "run": (kills.save_run, "run.json"),
    "prediction": (kills.save_prediction, "prediction.npz"),
    "volume": (kills.save_volume, "volume/lower.nii.gz"),
    "torch.export": (kills.export_pt2, "net.pt2"),
    "ONNX": (kills.export_onnx, "net.onnx"),
    "plot": (plot, "layers.png"),
    "viewer": (lambda folder, _: export_html(folder.parent / "large.npz", folder / "page.html"), "page.html"),
    "report": (lambda folder, _: write_report(folder.parent / "runs", folder / "report.html"), "report.html"),
}
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in ("ONNX", "report") else name for name in WRITERS]


@pytest.mark.rotating
@pytest.mark.parametrize("kind", ["limit", "disk"])
@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_is_named_and_costs_nothing(name: str, kind: str, tmp_path: Path) -> None:
    write, old = WRITERS[name]
    save_npz(tmp_path / "large.npz", large())
    (tmp_path / "runs").mkdir()
    kills.save_run(tmp_path / "runs", 0)

    with full(kind, tmp_path / "full", Path(old)) as folder:
        with pytest.raises(OSError, match=r"could not write .*/full/.*; make room on the disk"):
            write(folder, 1)

        assert (folder / old).read_bytes() == b"old"
        assert not kills.temporary(folder)


def small_fit(checkpoint: Path) -> tuple[list[torch.Tensor], int]:
    torch.manual_seed(0)
    net = inn.IntervalNetwork(nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 2)).eval(), layers="all")
    x = torch.randn(16, 20)
    history = inn.fit(net, [(x, x[:, :2])], epochs=3, checkpoint=checkpoint, progress=False)
    return [gap.detach().clone() for gap in net.parameters()], len(history.epochs)


@pytest.mark.rotating
@pytest.mark.parametrize("kind", ["limit", "disk"])
def test_a_fit_on_a_full_disk_stops_and_goes_on_once_there_is_room(kind: str, tmp_path: Path) -> None:
    """Torch itself ends the process with an abort where it writes to a full disk."""
    wanted, _ = small_fit(tmp_path / "whole.pt")

    with full(kind, tmp_path / "full", Path("old")) as folder:
        with pytest.raises(OSError, match=r"could not write .*/full/fit\.pt: .*; make room on the disk"):
            small_fit(folder / "fit.pt")
        assert not (folder / "fit.pt").exists() and not kills.temporary(folder)

    found, epochs = small_fit(tmp_path / "full" / "fit.pt")
    assert epochs == 3 and all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


@pytest.mark.rotating
@pytest.mark.parametrize("kind", ["limit", "disk"])
def test_a_cache_on_a_full_disk_stops_and_goes_on_once_there_is_room(kind: str, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    kills.build_cache(tmp_path / "whole")

    with full(kind, tmp_path / "full", Path("old")) as folder:
        with pytest.raises(OSError, match=r"could not write .*\.npy: .*; make room on the disk"):
            kills.build_cache(folder)
        assert not list((folder / "cache").iterdir())

    kills.build_cache(tmp_path / "full")
    assert kills.cached(tmp_path / "full") == kills.cached(tmp_path / "whole")


# --- read-only ---


@pytest.mark.rotating
@pytest.mark.parametrize("name", NAMES)
def test_a_read_only_folder_is_named(name: str, tmp_path: Path) -> None:
    save_npz(tmp_path / "large.npz", large())
    (tmp_path / "runs").mkdir()
    kills.save_run(tmp_path / "runs", 0)

    with (
        read_only(tmp_path / "locked") as folder,
        pytest.raises(OSError, match=r"could not write .*/locked/.*; choose a place that can be written to") as caught,
    ):
        WRITERS[name][0](folder, 1)

    assert caught.value.errno in (errno.EROFS, errno.EACCES)


@pytest.mark.rotating
@pytest.mark.parametrize("where", ["file/net.safetensors", "file/deeper/net.safetensors"])
def test_a_path_below_a_file_is_named(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")

    with pytest.raises(OSError, match=r"could not write .*net\.safetensors: (Not a directory|File exists)"):
        kills.network(0).save(tmp_path / where)
    assert (tmp_path / "file").read_text() == "not a folder"


# --- two at once ---


def started(code: str, folder: Path) -> subprocess.Popen[bytes]:
    code = f"from pathlib import Path; from fuzzing import kills; folder = Path({str(folder)!r}); {code}"
    return subprocess.Popen([sys.executable, "-c", code])


@pytest.mark.rotating
def test_two_processes_build_one_cache(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "shared").mkdir()
    kills.build_cache(tmp_path / "whole")

    processes = [started("kills.build_cache(folder)", tmp_path / "shared") for _ in range(2)]

    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert kills.cached(tmp_path / "shared") == kills.cached(tmp_path / "whole")
    assert kills.content(tmp_path / "shared") is not None and not kills.temporary(tmp_path / "shared")


@pytest.mark.slow
def test_two_processes_write_to_the_same_paths_while_others_read(tmp_path: Path) -> None:
    code = (
        "[write(folder, v) for v in range(1, 13) for write in (kills.save_network, kills.save_run, kills.save_volume)]"
    )
    (tmp_path / "shared").mkdir()
    model, read = kills.network(0).model, 0

    processes = [started(code, tmp_path / "shared") for _ in range(2)]
    while any(process.poll() is None for process in processes):
        if (tmp_path / "shared" / "run.json").exists():
            gap = inn.load(tmp_path / "shared" / "net.safetensors", model).weight_intervals()["0.weight"].above.detach()
            assert round(float(gap.mean()) / 0.002) in range(1, 13)
            assert len(Run.load(tmp_path / "shared" / "run.json").methods["INN"].values["mse"]) == 20_000
            read += 1
        time.sleep(0.01)

    assert [process.wait() for process in processes] == [0, 0] and read
    (tmp_path / "whole").mkdir()
    for write in (kills.save_network, kills.save_run, kills.save_volume):
        write(tmp_path / "whole", 12)
    for name in ("net.safetensors", "run.json", "volume"):
        assert kills.content(tmp_path / "shared" / name) == kills.content(tmp_path / "whole" / name)
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == ["net.safetensors", "run.json", "volume"]
