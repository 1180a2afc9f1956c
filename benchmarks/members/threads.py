"""Several networks used from eight threads at once."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

import intervalnn as inn
from members.checking import need, open_gaps

THREADS = 8


def _network(random: Random) -> inn.IntervalNetwork:
    torch.manual_seed(random.getrandbits(32))
    model = random.choice(
        [
            lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2)),
            lambda: nn.Sequential(
                nn.Unflatten(1, (2, 3)), nn.Conv1d(2, 3, 2), nn.GELU(), nn.Flatten(), nn.Linear(6, 2)
            ),
            lambda: nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.Sigmoid(), nn.Linear(4, 2), nn.Softmax(-1)),
        ]
    )()
    net = inn.IntervalNetwork(model.eval(), layers="all")
    open_gaps(net, random)
    return net


def _saved(net: inn.IntervalNetwork) -> dict[str, Tensor]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.safetensors"
        net.save(path)
        return dict(inn.load(path, net.model).state_dict())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return torch.equal(a, b) if isinstance(a, Tensor) else a == b


ACTIONS: dict[str, Callable[[inn.IntervalNetwork, Tensor], Any]] = {
    "predict": lambda net, x: (lambda p: {"lower": p.lower, "upper": p.upper, "point": p.point})(net.predict(x)),
    "sensitivities": lambda net, x: net.sensitivities(x),
    "explain": lambda net, x: str(net.explain(x)),
    "save": lambda net, x: _saved(net),
    "model": lambda net, x: net.model(x).detach(),
    "another size": lambda net, x: net.predict(x[:1]).width,
}


def member(random: Random) -> str:
    """Try one: each thread gets what it would get alone, from the first call on."""
    nets = [_network(random) for _ in range(random.choice([1, 2, 4]))]
    generator = torch.Generator().manual_seed(random.getrandbits(32))
    jobs = [
        (random.choice(nets), random.choice(list(ACTIONS)), torch.randn(3, 6, generator=generator)) for _ in range(24)
    ]
    found: list[Any] = [None] * len(jobs)
    start = threading.Barrier(THREADS)

    def run(first: int) -> None:
        start.wait()
        for place in range(first, len(jobs), THREADS):
            net, action, x = jobs[place]
            try:
                found[place] = ACTIONS[action](net, x)
            except Exception as error:  # told below, by the thread that waits
                found[place] = error

    threads = [threading.Thread(target=run, args=(first,)) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (net, action, x), got in zip(jobs, found, strict=True):
        need(not isinstance(got, Exception), f"{action} beside others failed: {got!r}"[:300])
        need(_same(got, ACTIONS[action](net, x)), f"{action} beside others gave something else")
    return "bounded"
