from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from torch import nn

from intervalnn.evaluation.records import Run
from intervalnn.methods import ConstantWidth, MCDropout
from intervalnn.network.network import IntervalNetwork
from intervalnn.paper import demo
from intervalnn.paper.experiments import deconvolution, fig_schematic, reproduce, run_time, scales
from intervalnn.training.loop import fit

TINY = replace(
    scales.DECONVOLUTION["quick"],
    size=48,
    samples=120,
    channels=(8,) * 7,
    epochs=4,
    fit_epochs=4,
    passes=16,
    batch=24,
    noises=(0.05,),
    sweep=(0.05,),
    examples=1,
)


@pytest.mark.slow
def test_the_demo_shows_every_method_and_draws_every_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console, clock = Console(record=True, width=120, file=io.StringIO()), itertools.count(1.0)
    monkeypatch.setattr(run_time, "seconds", lambda *_: next(clock))  # or each method would be fitted three times
    monkeypatch.setitem(scales.DECONVOLUTION, "quick", TINY)
    monkeypatch.setattr(fig_schematic, "EPOCHS", 10)
    monkeypatch.setattr(fig_schematic, "FIT_EPOCHS", 10)

    demo.demo(tmp_path, console)

    text, page = console.export_text(), (tmp_path / "README.md").read_text()
    assert "demo.png" in text.replace("\n", "") and (tmp_path / "demo.png").stat().st_size > 10_000
    for name, _ in deconvolution.methods_of(None, None, TINY, 0):  # type: ignore[arg-type]
        assert name in text and f"| {name} |" in page
    wanted = ["signals-1", "noise-behaviour", "direction-noise-0.05", "markov-noise-0.05"]
    wanted += ["posterior-bounds", "schematic"]
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert drawn == {f"{name}{suffix}" for name in wanted for suffix in (".png", ".pdf")}


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cheap(model: Any, *_: Any) -> Iterator[tuple[str, Any]]:
        yield "constant width", lambda: ConstantWidth(model)
        yield "MC dropout", lambda: MCDropout(model, samples=16)

    monkeypatch.setattr(deconvolution, "methods_of", cheap)
    setting, said = deconvolution.Setting(TINY, 0.05, 0), list[str]()
    path = deconvolution.run(setting, tmp_path, said.append)
    whole = Run.load(path)
    replace(whole, methods={"constant width": whole.methods["constant width"]}).save(path, overwrite=True)
    said.clear()

    deconvolution.run(setting, tmp_path, said.append)

    assert said == ["noise-0.05-seed-0: MC dropout"]
    again = Run.load(path)
    assert again.methods["constant width"] == whole.methods["constant width"]
    assert again.methods["MC dropout"].values == whole.methods["MC dropout"].values


def test_a_run_of_some_methods_is_drawn_as_far_as_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def two(model: Any, *_: Any) -> Iterator[tuple[str, Any]]:
        interval = IntervalNetwork(model, layers=1)
        yield "INN", lambda: (fit(interval, list(train), epochs=1, progress=False), interval)[1]
        yield "MC dropout", lambda: MCDropout(model, samples=16)

    setting = deconvolution.Setting(TINY, 0.05, 0)
    train, *_ = setting.loaders()
    monkeypatch.setattr(deconvolution, "methods_of", two)
    monkeypatch.setattr(fig_schematic, "EPOCHS", 10)
    monkeypatch.setattr(fig_schematic, "FIT_EPOCHS", 10)
    deconvolution.run(setting, tmp_path, lambda _: None)

    drawn = {path.stem for path in reproduce.draw_deconvolution(tmp_path)}

    assert drawn == {"README", "signals-1", "direction-noise-0.05", "posterior-bounds", "schematic"}


def test_runs_of_another_scale_are_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deconvolution, "methods_of", lambda *_: iter([("flat", lambda: ConstantWidth(nn.Identity()))]))
    deconvolution.run(deconvolution.Setting(TINY, 0.0, 0), tmp_path, lambda _: None)

    with pytest.raises(ValueError, match="made at another scale"):
        deconvolution.run(deconvolution.Setting(replace(TINY, passes=5), 0.0, 0), tmp_path, lambda _: None)


def test_an_unknown_scale_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'paper', 'longer', 'quick', 'small', got 'huge'"):
        reproduce.reproduce_deconvolution(tmp_path, scale="huge")
