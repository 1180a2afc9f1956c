import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from intervalnn import demo
from intervalnn.cli import main


def test_help_names_the_commands() -> None:
    shown = CliRunner().invoke(main, ["--help"])

    assert shown.exit_code == 0
    assert "demo" in shown.output


def test_the_demo_fits_calibrates_and_writes_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SIZE", 64)
    monkeypatch.setattr(demo, "SAMPLES", 200)
    monkeypatch.setattr(demo, "CHANNELS", (8, 8, 8))
    monkeypatch.setattr(demo, "EPOCHS", 5)
    monkeypatch.setattr(demo, "LAYERS", 2)
    console = Console(record=True, width=100, file=io.StringIO())

    numbers = demo.demo(tmp_path / "out", console)

    assert numbers["prediction_unchanged"]
    assert 0.8 < numbers["coverage"] < 0.97
    assert json.loads((tmp_path / "out" / "demo.json").read_text())["numbers"]["coverage"] == numbers["coverage"]
    assert (tmp_path / "out" / "demo.png").stat().st_size > 10_000
    assert "demo.png" in console.export_text()
