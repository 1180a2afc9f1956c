"""Many threads that use interval networks at once, for the tests and for scripts.

Whatever a thread gets must be, bit for bit, what it would get alone: predictions, explanations, sensitivities, saved
files, and first calls of networks that share a model. Gradients that a thread asks for itself are held to rounding:
nothing keeps a backward pass of torch's own from running while another thread captures a program.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import intervalnn as inn


def conv_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 2, 3, padding=1)
    )


def transformer() -> nn.Module:
    return nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Linear(8, 2))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.Softshrink(), nn.Linear(8, 2), nn.Softplus())


@dataclass
class Subject:
    """A network, and what each use of it gives where no other thread runs."""

    name: str
    build: Callable[[], nn.Module]
    shapes: Sequence[tuple[int, ...]]
    options: dict[str, Any] = field(default_factory=dict)
    compiled: bool = False
    calibrated: bool = False

    def prepare(self) -> Subject:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.model = self.build().eval()
            self.inputs = [torch.randn(shape) for shape in self.shapes]
            self.net = inn.IntervalNetwork(self.model, **({"layers": "all"} | self.options))
            self.net(self.inputs[0])
            with torch.no_grad():
                for gap in self.net.parameters():
                    gap.uniform_(0.0, 0.01)
            outputs = [self.model(x).detach() for x in self.inputs]
        self.held_out = [(x, y + 0.1 * torch.sin(37 * y)) for x, y in zip(self.inputs, outputs, strict=True)]
        if self.compiled:
            self.net.compile(backend="eager")
        if self.calibrated:
            inn.calibrate(self.net, self.held_out, coverage=0.5)
        self.folder = Path(tempfile.mkdtemp())
        self.file = self.folder / "wanted.safetensors"
        self.net.save(self.file)
        alone = {use: run for use, run in USES.items() if use not in SILENT | PREDICT}
        self.wanted = {use: [run(self, x, -1) for x in self.inputs] for use, run in alone.items()}
        self.wanted |= dict.fromkeys(PREDICT, self.wanted["predict"])
        return self

    def check(self, use: str, number: int, thread: int) -> None:
        got = USES[use](self, self.inputs[number], thread)
        if use not in SILENT:
            is_same = _is_close if use in ROUNDED else _is_same
            assert is_same(got, self.wanted[use][number]), f"{use} of {self.name} differs from what it is alone"


def _is_same(got: Any, wanted: Any) -> bool:
    if isinstance(got, Tensor):
        return torch.equal(got, wanted)
    if isinstance(got, tuple):
        return len(got) == len(wanted) and all(map(_is_same, got, wanted))
    return bool(got == wanted)


def _is_close(got: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    return all(torch.allclose(x, y, rtol=1e-4, atol=1e-6) for x, y in zip(got, wanted, strict=True))


def _parts(p: Any) -> tuple[Tensor, ...]:
    return p.point, p.below, p.above, p.score


def _saved(subject: Subject, x: Tensor, thread: int) -> bytes:
    path = subject.folder / f"{thread}.safetensors"
    subject.net.save(path)
    return path.read_bytes()


def _first_call(subject: Subject, x: Tensor, thread: int) -> tuple[Tensor, ...]:
    return _parts(inn.load(subject.file, subject.model).predict(x))


def _gradients(subject: Subject, x: Tensor, thread: int) -> tuple[Tensor, ...]:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(subject.net(x).width.sum(), x)


def _recomputing(subject: Subject, x: Tensor, thread: int) -> tuple[Tensor, ...]:
    if subject.compiled:  # which refuses
        return _parts(subject.net.predict(x))
    with subject.net.recomputing():
        return _parts(subject.net.predict(x))


def _calibrated(subject: Subject, x: Tensor, thread: int) -> list[float] | None:
    if not subject.calibrated:
        return None
    return inn.calibrate(subject.net, subject.held_out, coverage=0.5).factors.tolist()


USES: dict[str, Callable[[Subject, Tensor, int], Any]] = {
    "predict": lambda subject, x, thread: _parts(subject.net.predict(x)),
    "predict in batches": lambda subject, x, thread: _parts(subject.net.predict(x, batch_size=2)),
    "explain": lambda subject, x, thread: subject.net.explain(x).rows,
    "sensitivities": lambda subject, x, thread: subject.net.sensitivities(x),
    "save": _saved,
    "first call": _first_call,
    "gradients": _gradients,
    "recomputing": _recomputing,
    "calibrate": _calibrated,
    "refresh": lambda subject, x, thread: subject.net.refresh(),
}
SILENT, ROUNDED = {"refresh"}, {"gradients"}
PREDICT = {"first call", "recomputing"}  # what they give is what a prediction gives
SLOW = {"first call": 0.1, "refresh": 0.02}  # of so many times as often as the others: they capture programs


def subjects() -> list[Subject]:
    return [
        Subject("a conv net", conv_net, [(3, 1, 8, 8), (2, 1, 12, 8)]),
        Subject("a transformer", transformer, [(2, 5, 8), (3, 5, 8)], {"layers": 2}),
        Subject("a calibrated network", mlp, [(9, 3), (20, 3)], {"layers": 1, "kind": "symmetric"}, calibrated=True),
        Subject("a compiled network", conv_net, [(3, 1, 8, 8)], {"kind": "input"}, compiled=True),
    ]


@dataclass
class Found:
    """How often each use was tried, and what went wrong."""

    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def hammer(seconds: float, *, threads: int = 8, seed: int = 0, uses: Sequence[str] = tuple(USES)) -> Found:
    """Use networks from many threads for a time; what each thread does is drawn from the seed."""
    tried, found, start = [subject.prepare() for subject in subjects()], Found(), threading.Barrier(threads)
    end = time.monotonic() + seconds

    def work(thread: int) -> None:
        chance = random.Random(f"{seed} {thread}")
        start.wait()
        while time.monotonic() < end:
            (use,) = chance.choices(uses, [SLOW.get(use, 1.0) for use in uses])
            subject = chance.choice(tried)
            try:
                subject.check(use, chance.randrange(len(subject.inputs)), thread)
            except Exception as error:
                kind = str(error) if isinstance(error, AssertionError) else traceback.format_exc(limit=-3)
                found.wrong.append(f"{use} of {subject.name}: {kind}")
            found.done[use] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return found
