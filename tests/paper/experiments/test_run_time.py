from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from intervalnn.methods import ConstantWidth
from intervalnn.paper.experiments import run_time
from intervalnn.paper.experiments.comparison import Make


def methods(model: nn.Module, epochs: int) -> Iterator[tuple[str, Make]]:
    yield "constant width", lambda: ConstantWidth(model)


def test_every_method_is_timed_once_and_told_in_multiples_of_the_plain_network(tmp_path: Path) -> None:
    path, said = tmp_path / "run-time.json", list[str]()

    def run(x: torch.Tensor) -> None:
        run_time.run(path, x, lambda epochs: nn.Linear(3, 3), methods, more=2, say=said.append)

    run(torch.ones(5, 3))
    found = json.loads(path.read_text())
    run(torch.ones(6, 3))

    assert json.loads(path.read_text()) == found and found["batch"] == 5
    assert said == ["run time: the plain network", "run time: constant width"]
    assert all(took["predict"] > 0 for took in found["seconds"].values())


def test_the_table_has_multiples_of_the_plain_network(tmp_path: Path) -> None:
    took = {"plain": (0.01, 2.0), "INN": (0.025, 6.0), "MC dropout": (0.64, 1.0)}
    seconds = {name: {"predict": predict, "epoch": epoch} for name, (predict, epoch) in took.items()}
    (tmp_path / "t.json").write_text(json.dumps({"batch": 5, "versions": {"device": "a machine"}, "seconds": seconds}))

    rows = run_time.table(tmp_path / "t.json", "signals").splitlines()

    assert rows[-2:] == ["| INN | 2.5 | 3.0 |", "| MC dropout | 64.0 | none |"]
    assert any("A prediction of 5 signals" in row and "(10 ms)" in row and "(2 s)" in row for row in rows)
