"""Jobs that write files, killed at random moments and started again, for the tests and ``benchmarks/kill.py``.

A job writes one version of something after the other, or goes on with something long. After every kill, what lies
under a final name must be, byte for byte, what an undisturbed job wrote at some time, and no older than what lay there
before. Attempts are forks of one process that has torch loaded and runs no threads, so that a kill costs milliseconds.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nibabel  # noqa: F401  (so that no fork has to import it)
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import intervalnn as inn
from intervalnn.cli.folder import Folder
from intervalnn.data import Geometry, Volume
from intervalnn.data.volumes import write_volume
from intervalnn.evaluation.records import Measured, Run
from intervalnn.paper.experiments.inputs import inputs
from intervalnn.prediction import Prediction
from intervalnn.saving.exporting import export
from intervalnn.saving.saving import save
from intervalnn.tasks import Denoising
from intervalnn.training.loop import fit
from intervalnn.view import save_npz

STEPS = 12  # versions of a file, epochs of a fit, files of a cache
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.(tmp|old)")


class Job:
    """Something that writes files, and can be started again.

    Attributes:
        name: What it is.
        finals: Paths under which there is something in the end.
        steps: How many there are.
        moved: Whether a folder takes the place of another, for which there is a moment with neither.
    """

    moved = False
    steps = STEPS

    def __init__(self, name: str, *finals: str) -> None:
        self.name, self.finals = name, finals
        self.seconds, self.wanted = 0.0, {}  # type: ignore[var-annotated]

    def undisturbed(self, folder: Path) -> None:
        """Do all of it, and learn from that what it takes and what it comes to."""
        raise NotImplementedError

    def go_on(self, folder: Path) -> None:
        """Do the rest of it."""
        raise NotImplementedError

    def done(self, folder: Path) -> int | None:
        """Return how many steps a folder holds; None if it holds something that no undisturbed job wrote."""
        raise NotImplementedError

    def found(self, folder: Path) -> dict[str, str | None]:
        return {path: content(folder / path) for path in self.finals}


class Versions(Job):
    """Version after version under the same names; of two, such as a network and its card, the second may be ahead."""

    def __init__(
        self, name: str, write: Callable[[Path, int], None], *finals: str, steps: int = STEPS, moved: bool = False
    ) -> None:
        super().__init__(name, *finals)
        self.write, self.steps, self.moved = write, steps, moved
        self.known: list[dict[str, str | None]] = []

    def undisturbed(self, folder: Path) -> None:
        self.known = [dict.fromkeys(self.finals)]
        for version in range(self.steps):
            self.seconds += in_a_fork(lambda version=version: self.write(folder, version))
            self.known.append(self.found(folder))
        self.wanted = self.known[-1]

    def go_on(self, folder: Path) -> None:
        done = self.done(folder)
        assert done is not None
        for version in range(done, self.steps):
            self.write(folder, version)

    def done(self, folder: Path) -> int | None:
        found, first = self.found(folder), self.finals[0]
        for i, known in enumerate(self.known):
            ahead = self.known[min(i + 1, self.steps)]
            if found[first] == known[first] and all(found[path] in (known[path], ahead[path]) for path in found):
                return i
        return None


class Long(Job):
    """One long job that goes on where it was, from the parts that it has written so far."""

    def __init__(self, name: str, work: Callable[[Path], None], parts: Callable[[Path], Any], final: str) -> None:
        super().__init__(name, final)
        self.work, self.parts = work, parts

    def undisturbed(self, folder: Path) -> None:
        self.seconds, self.wanted = in_a_fork(lambda: self.work(folder)), self.found(folder)
        self.known = self.parts(folder)

    def go_on(self, folder: Path) -> None:
        self.work(folder)

    def done(self, folder: Path) -> int | None:
        try:
            found = self.parts(folder)
        except Exception:
            return None
        whole = all(self.known.get(name) == value for name, value in found.items())
        return len(found) if whole and self.found(folder)[self.finals[0]] in (None, *self.wanted.values()) else None


def content(path: Path) -> str | None:
    """Return what a file or a folder holds, in short, less what has a temporary name; None where there is nothing."""
    if not path.exists():
        return None
    found = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file()):
        inside = file.relative_to(path.parent)
        if not any(TEMPORARY.fullmatch(part) for part in inside.parts):
            found.update(str(inside).encode() + file.read_bytes())
    return found.hexdigest()


# --- the jobs ---


def network(version: int, size: int = 200) -> inn.IntervalNetwork:
    torch.manual_seed(0)
    net = inn.IntervalNetwork(nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, 2)).eval(), layers="all")
    net.set_gaps("0.weight", below=0.001 * version, above=0.002 * version)
    return net


def save_network(folder: Path, version: int) -> None:
    save(network(version), folder / "net.safetensors")


def save_run(folder: Path, version: int) -> None:
    values = np.random.default_rng(version).normal(size=20_000).tolist()
    run = Run({"INN": Measured({"mse": values}, 0.1, 1.0)}, 0.9, {"mse": "lower"}, seed=version)
    run.save(folder / "run.json", overwrite=True)


def save_prediction(folder: Path, version: int) -> None:
    save_npz(folder / "prediction.npz", prediction(version))


def export_pt2(folder: Path, version: int) -> None:
    net = network(version, size=20)
    export(net, torch.ones(2, 20), folder / "net.pt2", dynamic=False, verify=False, overwrite=True)


def export_onnx(folder: Path, version: int) -> None:
    net = network(version, size=20)
    export(net, torch.ones(2, 20), folder / "net.onnx", dynamic=False, verify=False, overwrite=True)


def prediction(version: int, shape: tuple[int, ...] = (4, 40, 40)) -> Prediction:
    generator = torch.Generator().manual_seed(version)
    point, below, above = (torch.rand(shape, generator=generator) for _ in range(3))
    return Prediction(point, below, above, below + above)


def save_volume(folder: Path, version: int) -> None:
    made = prediction(version)
    geometry = Geometry.regular(-3.0 * np.arange(4), (0.75, 0.5))
    volume = Volume(made.point.numpy(), "someone", "a", "array", "unit", np.arange(4), geometry)
    write_volume(folder / "volume", made, volume, overwrite=True)


def save_predictions(folder: Path, version: int) -> None:
    """As ``inn predict`` does with a folder of inputs."""
    into = Folder(folder / "predictions", {"version": version})
    for name in ("a.npz", "b.npz", "c.npz"):
        if not into.has(name):
            save_npz(into.part / name, prediction(version))
    into.finish()


def fit_network(folder: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(24, 1, 8)
    model = nn.Sequential(nn.Conv1d(1, 4, 3, padding=1), nn.ReLU(), nn.Dropout(), nn.Conv1d(4, 1, 1)).eval()
    net = inn.IntervalNetwork(model, layers="all")
    loader = DataLoader(TensorDataset(x, x.flip(-1)), batch_size=8, shuffle=True)
    fit(net, loader, epochs=STEPS, validation=[(x, x.flip(-1))], checkpoint=folder / "fit.pt", progress=False)
    save(net, folder / "fitted.safetensors")


def build_cache(folder: Path) -> None:
    images = torch.rand(32 * STEPS, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    made = inputs(Denoising(0.1), images, folder / "cache")
    save_npz(folder / "inputs.npz", Prediction(made, *[made.abs()] * 3))


def epochs_of(folder: Path) -> dict[int, Any]:
    path = folder / "fit.pt"
    found = torch.load(path, weights_only=True)["history"]["epochs"] if path.exists() else []
    return {i: {name: value for name, value in each.items() if name != "seconds"} for i, each in enumerate(found)}


def cached(folder: Path) -> dict[str, str | None]:
    return {path.name: content(path) for path in (folder / "cache").glob("*.npy")}


def jobs(only: str = "") -> list[Job]:
    """Return the jobs whose names match a regular expression."""
    found = [
        Long("fit with a checkpoint", fit_network, epochs_of, "fitted.safetensors"),
        Long("cache of inputs", build_cache, cached, "inputs.npz"),
        Versions("save a network", save_network, "net.safetensors"),
        Versions("save a run", save_run, "run.json"),
        Versions("save a prediction", save_prediction, "prediction.npz"),
        Versions("write a volume", save_volume, "volume", moved=True),
        Versions("a folder of predictions", save_predictions, "predictions", moved=True),
        Versions("export to torch.export", export_pt2, "net.pt2", "net.pt2.json", steps=4),
        Versions("export to ONNX", export_onnx, "net.onnx", "net.onnx.json", steps=3),
    ]
    chosen = [job for job in found if re.search(only, job.name)]
    with tempfile.TemporaryDirectory() as folder:  # so that no fork has to import what they need
        for job in chosen:
            if isinstance(job, Versions):
                job.write(Path(folder), 0)
    return chosen


# --- the kills ---


@dataclass
class Found:
    """What the kills of a job came to.

    Attributes:
        rounds: How often the job was done from beginning to end.
        kills: How often it was killed.
        while_writing: How many of them left something under a temporary name.
        in_between: How many of them came while a folder had been moved away and the next one not yet put there.
        lost: Where something was older after a kill than before, or gone.
        half_written: Where something under its final name was not whole.
        different: Where the end was not that of an undisturbed job.
        failed: Where it could not be started again.
        left: Temporary names that were still there after the next write.
    """

    rounds: int = 0
    kills: int = 0
    while_writing: int = 0
    in_between: int = 0
    lost: list[str] = field(default_factory=list)
    half_written: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def bad(self) -> list[str]:
        return [*self.lost, *self.half_written, *self.different, *self.failed, *self.left]


def start(work: Callable[[], object]) -> int:
    """Do some work in a process of its own, and return its number once it is at it."""
    ready, tell = os.pipe()
    process = os.fork()
    if process:
        os.close(tell)
        os.read(ready, 1)
        os.close(ready)
        return process
    code = 1
    try:
        os.write(tell, b".")
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def in_a_fork(work: Callable[[], object]) -> float:
    """Do some work in a process of its own, and return how long it took."""
    process, begin = start(work), time.perf_counter()
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    return time.perf_counter() - begin


def killed(work: Callable[[], object], after: float) -> bool:
    """Start some work, and kill it after so many seconds; say whether it was still at it."""
    process = start(work)
    time.sleep(after)
    os.kill(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def one_round(job: Job, folder: Path, chance: random.Random, found: Found) -> None:
    """Do a job from beginning to end, killing it several times on the way."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    before, where = 0, f"{job.name}, round {found.rounds}"
    for _ in range(chance.randint(3, 8)):
        aged(folder)
        try:
            if not killed(lambda: job.go_on(folder), chance.uniform(0.0, 0.5 * job.seconds)):
                break
        except AssertionError:
            found.failed.append(where)
            return
        found.kills += 1
        left = temporary(folder)
        found.while_writing += bool(left)
        done = job.done(folder)
        if done is None:
            found.half_written.append(where)
            return
        if done < before:
            if not (job.moved and done == 0 and any(path.name.endswith(".old") for path in left)):
                found.lost.append(f"{where}: {before} steps, then {done}")
            found.in_between += 1
        before = done
    aged(folder)
    in_a_fork(lambda: job.go_on(folder))
    found.rounds += 1
    if job.found(folder) != job.wanted:
        found.different.append(where)
    if before < job.steps and (left := temporary(folder)):  # else nothing more is written there, so nothing swept
        found.left.append(f"{where}: {[str(path.relative_to(folder)) for path in left]}")


def temporary(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if TEMPORARY.fullmatch(path.name)]


def aged(folder: Path) -> None:
    """Let what was left look older than it is: a process that is started anew takes longer than a fork does."""
    for path in temporary(folder):
        os.utime(path, (time.time() - 60, time.time() - 60))
