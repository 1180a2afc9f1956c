from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from intervalnn import demo
from intervalnn.cli import main
from intervalnn.experiments import deconvolution, reproduce, scales
from intervalnn.results import Run

TINY = replace(
    scales.DECONVOLUTION["quick"],
    size=48,
    samples=120,
    channels=(8,) * 7,
    epochs=4,
    fit_epochs=4,
    passes=16,
    batch=24,
    sweep=(0.0, 0.05),
    examples=1,
)
pytestmark = pytest.mark.xdist_group("demo")  # on one worker, which makes it once


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A tiny demo, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    console = Console(record=True, width=120, file=io.StringIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(scales.DECONVOLUTION, "quick", TINY)
        demo.demo(folder, console)
    return folder, console.export_text()


def test_help_names_the_commands() -> None:
    shown = CliRunner().invoke(main, ["--help"])

    assert shown.exit_code == 0
    assert "demo" in shown.output and "reproduce" in shown.output


def test_the_demo_writes_what_it_says_and_shows_every_method(made: tuple[Path, str]) -> None:
    folder, text = made

    assert "demo.png" in text.replace("\n", "") and (folder / "demo.png").stat().st_size > 10_000
    names = [name for name, _ in deconvolution.methods_of(None, None, TINY, 0)]  # type: ignore[arg-type]
    page = (folder / "README.md").read_text()
    for name in names:
        assert name in text and f"| {name} |" in page


def test_every_figure_of_the_1d_part_is_drawn(made: tuple[Path, str]) -> None:
    folder, _ = made

    drawn = {path.name for path in (folder / "figures").iterdir()}

    wanted = [
        "signals-1",
        "noise-behaviour",
        "direction-noise-0",
        "direction-noise-0.05",
        "markov-noise-0",
        "markov-noise-0.05",
    ]
    wanted += ["posterior-bounds", "schematic"]
    assert drawn == {f"{name}{suffix}" for name in wanted for suffix in (".png", ".pdf")}


def test_a_run_goes_on_where_it_was_stopped(made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = made
    path = folder / "noise-0-seed-0.json"
    whole = Run.load(path)
    stopped = replace(whole, methods={k: v for k, v in whole.methods.items() if k != "constant width"})
    stopped.save(path, overwrite=True)
    monkeypatch.setitem(scales.DECONVOLUTION, "quick", TINY)
    monkeypatch.setattr(reproduce, "draw_deconvolution", lambda folder, say: [])
    said: list[str] = []

    reproduce.reproduce_deconvolution(folder, scale="quick", say=said.append)

    assert said == ["noise-0-seed-0: constant width"]
    again = Run.load(path)
    assert again.methods["INN"] == whole.methods["INN"]
    assert again.methods["constant width"].values == whole.methods["constant width"].values


def test_runs_of_another_scale_are_not_mixed(made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = made
    monkeypatch.setitem(scales.DECONVOLUTION, "quick", replace(TINY, passes=5))

    with pytest.raises(ValueError, match="made at another scale"):
        reproduce.reproduce_deconvolution(folder, scale="quick")


@pytest.mark.slow
def test_the_command_draws_again_from_what_is_there(made: tuple[Path, str]) -> None:
    folder, _ = made
    (folder / "README.md").unlink()

    shown = CliRunner().invoke(main, ["reproduce", "deconv", "--out", str(folder), "--draw-only"])

    assert shown.exit_code == 0, shown.output
    assert (folder / "README.md").exists()


def test_an_unknown_scale_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'paper', 'quick', got 'huge'"):
        reproduce.reproduce_deconvolution(tmp_path, scale="huge")
