"""Which scout, and how many interval layers: every variant on every task, judged on validation subjects alone.

    python benchmarks/scouts.py --data FOLDER --out benchmarks/results/scouts.json
    python benchmarks/scouts.py --summary benchmarks/results/scouts.json

The tasks are those of ``inn reproduce --scale small``. Each variant is fitted on the training subjects, calibrated on
one half of the validation subjects and measured on the other, and the other way round; test subjects are never read.
Measured is the interval score at 90 %, over the mean absolute error. The file grows with every variant, and a run that
was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from intervalnn import IntervalNetwork, Scout, evaluate, fit, methods, metrics
from intervalnn.evaluation.cost import versions
from intervalnn.files.whole import replacing
from intervalnn.network.scouts import reading
from intervalnn.network.scouts.scout import Widening
from intervalnn.network.scouts.scouted import scouts_of
from intervalnn.paper.experiments import deconvolution, images
from intervalnn.paper.experiments.scales import DECONVOLUTION, IMAGES
from intervalnn.training import loop, opening

COVERAGE = 0.9
RATE = 2e-3  # of the weights of the scout that the searches start from
FOLD = 0  # whose validation subjects are read: its test subjects took no part in any choice
TASKS = ("ct", "denoising", "mri", "photos", "1D", "1D, noise")
REFERENCE = "scout 32x3, last 4"
Fitted = Callable[[nn.Module, DataLoader[Any], int, int], Any]


# --- tasks ---


@dataclass(frozen=True)
class Task:
    """A trained model, the batches that gaps are fitted on, and validation samples in two halves."""

    model: nn.Module
    train: DataLoader[Any]
    halves: tuple[DataLoader[Any], DataLoader[Any]]
    epochs: int

    @staticmethod
    def of(name: str, seed: int, source: Path | None, device: str, work: Path) -> Task:
        if name.startswith("1D"):
            setting = deconvolution.Setting(DECONVOLUTION["small"], 0.05 if "noise" in name else 0.0, seed, device)
            train, val, _ = setting.loaders()
            x, y = val.dataset.tensors  # type: ignore[attr-defined]
            middle, scale = len(x) // 2, setting.scale
            halves = (TensorDataset(x[:middle], y[:middle]), TensorDataset(x[middle:], y[middle:]))
            model = deconvolution.underlying(setting, work / "deconv")
            return Task(model, train, _loaders(halves), scale.fit_epochs or 0)
        at = images.Setting(name, IMAGES["small"], seed, device, None if name == "photos" else source)
        found = images.Data(at, work / name / "data", lambda _: None)
        x, y = found.splits["val"].tensors
        subjects = sorted(set(found.subjects["val"]))
        first = torch.tensor([subjects.index(subject) % 2 == 0 for subject in found.subjects["val"]], device=x.device)
        halves = (TensorDataset(x[first], y[first]), TensorDataset(x[~first], y[~first]))
        return Task(images.underlying(at, found, work / name), found.loader("train"), _loaders(halves), 22)

    def measured(self, method: Any) -> dict[str, float]:
        """Return the interval score over the model's error, by cross-fitting over the halves."""
        scores, errors, covered = [], [], []
        for held_out, other in (self.halves, self.halves[::-1]):
            kinds = {"winkler": metrics.winkler, "mae": metrics.mae, "coverage": metrics.coverage}
            run = evaluate({"it": method}, other, kinds, held_out=held_out, coverage=COVERAGE, progress=False).runs[0]
            values = run.methods["it"].values
            scores += values["winkler at equal coverage"]
            covered += values["coverage"]
        for loader in self.halves:
            errors += torch.cat([(self.model(x) - y).abs().flatten(1).mean(1) for x, y in loader]).tolist()
        return {
            "score": statistics.fmean(scores) / statistics.fmean(errors),
            "coverage as fitted": statistics.fmean(covered),
        }


def _loaders(halves: tuple[TensorDataset, TensorDataset]) -> tuple[DataLoader[Any], DataLoader[Any]]:
    first, second = (DataLoader(half, 64) for half in halves)
    return first, second


# --- variants ---


def _network(layers: Any, scout: Scout | None = None, **options: Any) -> Fitted:
    """Return how an interval network is made and fitted; ``rate`` is that of the scout's weights."""
    rate = options.pop("rate", RATE)
    longer, raw, gaps, drop = (options.pop(name, default) for name, default in OTHERS.items())

    def make(model: nn.Module, train: DataLoader[Any], epochs: int, seed: int) -> Any:
        net = IntervalNetwork(model, layers=layers, scout=False if scout is None else replace(scout, seed=seed))
        with patch.object(opening, "SCOUTS", rate), _changed(raw, gaps, drop):
            fit(net, train, coverage=COVERAGE, epochs=longer * epochs, seed=seed, progress=False, **options)
        return net.eval()

    return make


# longer: times the steps; raw: values are not standardised; gaps: the scout's own take Adam's steps, of so many errors;
# drop: share of a scout's first channels that are dropped in training
OTHERS = {"longer": 1, "raw": False, "gaps": None, "drop": 0.0}


@contextmanager
def _changed(raw: bool, gaps: float | None, drop: float) -> Iterator[None]:
    """Change how scouts are trained."""
    usual, reader = opening.optimizer_of, reading.Reader.forward

    def optimizer_of(job: Any, recipe: Any) -> torch.optim.Optimizer:
        made = usual(job, recipe)
        if gaps is not None and recipe.balanced:
            own = {id(side) for scout in scouts_of(job.net).values() for side in scout.gaps.sides}
            first = made.param_groups[0]
            moved = [each for each in first["params"] if id(each) in own]
            first["params"] = [each for each in first["params"] if id(each) not in own]
            share = gaps * recipe.mae / recipe.lr
            made.add_param_group({"params": moved, "proportional": False, "share": share})
        return made

    def read(self: Any, *args: Any) -> Tensor:
        found = reader(self, *args)
        return functional.dropout1d(found.flatten(2), drop, self.training).reshape(found.shape)

    with ExitStack() as stack:
        stack.enter_context(patch.object(loop, "optimizer_of", optimizer_of))
        if raw:
            stack.enter_context(patch.object(opening, "normalise", lambda *_: None))
        if drop:
            stack.enter_context(patch.object(reading.Reader, "forward", read))
        yield


def _heads(longer: int) -> Fitted:
    def make(model: nn.Module, train: DataLoader[Any], epochs: int, seed: int) -> Any:
        heads = methods.QuantileHeads(model)
        fit(heads, train, coverage=COVERAGE, epochs=longer * epochs, seed=seed, progress=False)
        return heads.eval()

    return make


@contextmanager
def _channels_for_each_side() -> Iterator[None]:
    """Let the lower bound take the first half of a scout's channels, and the upper bound the second."""
    whole = Widening._opened
    turn = [0]

    def opened(self: Widening, h: Tensor, gap: Tensor, like: Tensor) -> Tensor:
        turn[0] = 1 - turn[0]
        own = torch.arange(gap.shape[1], device=gap.device) < gap.shape[1] // 2
        return whole(self, h, gap * (own if turn[0] else ~own), like)

    with patch.object(Widening, "_opened", opened):
        yield


def _by_sides(make: Fitted) -> Fitted:
    def made(model: nn.Module, train: DataLoader[Any], epochs: int, seed: int) -> Any:
        return make(model, train, epochs, seed)

    made.around = _channels_for_each_side  # type: ignore[attr-defined]
    return made


def _stopped(layers: Any, scout: Scout, patience: int) -> Fitted:
    """Return a fit that keeps a tenth of the training images for choosing the best epoch."""

    def make(model: nn.Module, train: DataLoader[Any], epochs: int, seed: int) -> Any:
        x, y = train.dataset.tensors  # type: ignore[attr-defined]
        kept = 9 * len(x) // 10  # the last subjects, or photos
        rest = DataLoader(TensorDataset(x[:kept], y[:kept]), train.batch_size, shuffle=True)
        held_out = DataLoader(TensorDataset(x[kept:], y[kept:]), 64)
        net = IntervalNetwork(model, layers=layers, scout=scout)
        options = {"coverage": COVERAGE, "epochs": epochs, "seed": seed, "progress": False}
        with patch.object(opening, "SCOUTS", RATE):
            fit(net, rest, validation=held_out, patience=patience, **options)
        return net.eval()

    return make


FIRST = Scout(32, 3, 8)  # which the searches start from, with its rate
VARIANTS: dict[str, Fitted] = {
    "quantile heads, 4x steps": _heads(4),
    **{f"scout 32x3, last {count}": _network(count, FIRST) for count in (4, 2, 7)},
    "scout 32x3 alone": _network(0, FIRST),
    "scout 64x3, last 4": _network(4, replace(FIRST, width=64)),
    "scout 32x3, rate 0.004, last 4": _network(4, FIRST, rate=4e-3),
    "scout 32x5, last 4": _network(4, replace(FIRST, depth=5)),
    "last 4": _network(4),
    "scout 32x3, channels for each side, last 4": _by_sides(_network(4, FIRST)),
    "scout 32x3, 16 taps, last 4": _network(4, replace(FIRST, taps=16)),
    "quantile heads": _heads(1),
    "scout 32x3, rate 0.008, last 4": _network(4, FIRST, rate=8e-3),
    "scout 16x3, last 4": _network(4, replace(FIRST, width=16)),
    "scout 32x4, last 4": _network(4, replace(FIRST, depth=4)),
    "scout 32x3, 4x steps, last 4": _network(4, FIRST, longer=4),
    "scout 32x3, 4 taps, last 4": _network(4, replace(FIRST, taps=4)),
    "scout 32x3, best of held-out, last 4": _stopped(4, FIRST, 1000),
    "scout 32x3, all layers": _network("all", FIRST),
    "scout 32x2, last 4": _network(4, replace(FIRST, depth=2)),
    "scout 32x3, rate 0.001, last 4": _network(4, FIRST, rate=1e-3),
    "scout 32x3, half the gaps' rate, last 4": _network(4, FIRST, lr=0.05),
    "scout 64x3, channels for each side, last 4": _by_sides(_network(4, replace(FIRST, width=64))),
    "scout 32x3, 1 tap, last 4": _network(4, replace(FIRST, taps=1)),
    "scout 32x1, last 4": _network(4, replace(FIRST, depth=1)),
    "scout 8x3, last 4": _network(4, replace(FIRST, width=8)),
    "last 2": _network(2),
    "last 7": _network(7),
    "all layers": _network("all"),
    "scout 32x3, last 1": _network(1, FIRST),
    "scout 32x3, all by Adam, last 4": _network(4, FIRST, balance=False, lr=1e-3),
    "scout 32x3, all by Adam at 0.004, last 4": _network(4, FIRST, balance=False, lr=4e-3),
    "scout 32x3, raw, last 4": _network(4, FIRST, raw=True),
    "scout 32x3, raw, rate 0.008, last 4": _network(4, FIRST, raw=True, rate=8e-3),
    "scout 32x3, gaps by Adam, last 4": _network(4, FIRST, gaps=0.1),
    "scout 32x3, gaps by Adam, rate 0.008, last 4": _network(4, FIRST, gaps=0.1, rate=8e-3),
    "scout 32x3, raw, gaps by Adam, last 4": _network(4, FIRST, gaps=0.1, raw=True),
    "scout 32x3, raw, gaps by Adam, rate 0.008, last 4": _network(4, FIRST, gaps=0.1, raw=True, rate=8e-3),
    "scout 64x3, raw, gaps by Adam, rate 0.004, last 4": _network(
        4, replace(FIRST, width=64), gaps=0.1, raw=True, rate=4e-3
    ),
    "scout 64x3, 4 taps, raw, gaps by Adam, rate 0.004, last 4": _network(
        4, replace(FIRST, width=64, taps=4), gaps=0.1, raw=True, rate=4e-3
    ),
    "scout 32x3, 1 tap, raw, gaps by Adam, rate 0.004, last 4": _network(
        4, replace(FIRST, taps=1), gaps=0.1, raw=True, rate=4e-3
    ),
    "scout 64x3, 4 taps, rate 0.008, last 4": _network(4, replace(FIRST, width=64, taps=4), rate=8e-3),
    "scout 64x4, 4 taps, rate 0.004, last 4": _network(4, Scout(64, 4, taps=4), rate=4e-3),
    "scout 32x3, raw, gaps by Adam, rate 0.004 alone": _network(0, FIRST, gaps=0.1, raw=True, rate=4e-3),
    **{
        f"scout {width}x4, 4 taps, rate 0.004, last {count}": _network(count, Scout(width, 4, taps=4), rate=4e-3)
        for width, count in ((48, 1), (48, 2), (48, 4), (48, 7), (64, 2), (32, 2))
    },
    "scout 48x4, 4 taps, rate 0.004 alone": _network(0, Scout(48, 4, taps=4), rate=4e-3),
    "scout 48x4, 4 taps, raw, gaps by Adam, rate 0.004, last 2": _network(
        2, Scout(48, 4, taps=4), gaps=0.1, raw=True, rate=4e-3
    ),
    "scout 32x3, drop 0.2, rate 0.004, last 4": _network(4, FIRST, drop=0.2, rate=4e-3),
}


# --- running ---


def one(job: tuple[str, int, str], source: Path | None, device: str, work: Path) -> dict[str, Any]:
    torch.set_num_threads(1)
    name, seed, variant = job
    found = {"task": name, "seed": seed, "variant": variant}
    try:
        task = Task.of(name, FOLD, source, device, work)
        if not variant:
            return found
        start, make = time.perf_counter(), VARIANTS[variant]
        around = getattr(make, "around", None)
        with around() if around is not None else nullcontext():
            method = make(task.model, task.train, task.epochs, seed)
            took = time.perf_counter() - start
            with torch.no_grad():
                measured = task.measured(method)
        trained = sum(parameter.numel() for parameter in method.parameters())
        return found | {**measured, "seconds": took, "trained": trained}
    except (ValueError, FloatingPointError, RuntimeError) as error:
        return found | {"failed": f"{type(error).__name__}: {error}"[:300]}


def run(tasks: list[str], seeds: list[int], variants: list[str], args: argparse.Namespace) -> None:
    path = Path(args.out)
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    done = {(row["task"], row["seed"], row["variant"]) for row in rows}
    jobs = [(name, seed, variant) for variant in variants for seed in seeds for name in tasks]
    jobs = [job for job in jobs if job not in done]
    how = partial(one, source=args.data, device=args.device, work=args.work)
    about = {"command": " ".join(("python", *sys.argv)), "versions": versions(args.device)}
    context = multiprocessing.get_context("spawn")
    with context.Pool(args.workers, maxtasksperchild=None) as pool:
        pool.map(how, [(name, 0, "") for name in tasks], chunksize=1)  # the underlying models
        for number, row in enumerate(pool.imap_unordered(how, jobs), 1):
            rows.append(row)
            with replacing(path) as temporary:
                temporary.write_text(json.dumps(about | {"rows": rows}, indent=1))
            print(f"{number}/{len(jobs)}", json.dumps(row), flush=True)


# --- what came out ---


def summary(path: Path, reference: str = REFERENCE) -> str:
    """Return a table: scores by variant and task, and the geometric mean of their ratios to the reference's."""
    rows = [row for row in json.loads(path.read_text())["rows"] if "score" in row]
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        scores[row["variant"]][row["task"]].append(row["score"])
    mean = {name: {task: statistics.fmean(of) for task, of in own.items()} for name, own in scores.items()}
    base = mean.get(reference, {})

    def relative(own: dict[str, float]) -> float:
        shared = own.keys() & base.keys()
        return statistics.geometric_mean([own[task] / base[task] for task in shared]) if shared else float("nan")

    tasks = [task for task in TASKS if any(task in own for own in mean.values())]
    lines = [
        f"| variant | {' | '.join(tasks)} | x {reference} |",
        f"| --- | {' | '.join('---' for _ in tasks)} | --- |",
    ]
    for name, own in sorted(mean.items(), key=lambda pair: relative(pair[1])):
        cells = [f"{own[task]:.2f}" if task in own else "" for task in tasks]
        lines.append(f"| {name} | {' | '.join(cells)} | {relative(own):.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real CT slices; without, made-up patients")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="of the fits")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", type=Path, default=Path("results/scouts"))
    parser.add_argument("--out", default="results/scouts/scouts.json")
    parser.add_argument("--summary", type=Path, help="print the table of a file, and run nothing")
    args = parser.parse_args()
    if args.summary:
        print(summary(args.summary))
        return
    Path(args.out).parent.mkdir(parents=True, exist_ok=True)
    run(args.tasks, args.seeds, args.variants, args)


if __name__ == "__main__":
    main()
