"""The command as a whole: what it imports, how it ends, what scripts get to read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli.conftest import MODEL, Inn
from intervalnn.cli import main
from intervalnn.cli.command import Commands

COMMANDS = [
    "demo",
    "fit",
    "calibrate",
    "predict",
    "evaluate",
    "explain",
    "export",
    "report",
    "view",
    "reproduce",
    "doctor",
]


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300).stdout


def test_help_names_the_commands() -> None:
    shown = CliRunner().invoke(main, ["--help"])

    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.output.partition("Commands:\n")[2].splitlines()] == COMMANDS


def test_no_help_imports_torch_or_numpy() -> None:
    code = f"""
import sys
from intervalnn.cli import main
for words in [["--help"], ["--version"], *([name, "--help"] for name in {COMMANDS})]:
    try:
        main(words, prog_name="inn")
    except SystemExit as end:
        assert end.code == 0
print([name for name in ("torch", "numpy", "rich", "safetensors") if name in sys.modules])
"""

    assert python(code).splitlines()[-1] == "[]"


def test_the_installed_command_answers() -> None:
    shown = subprocess.run([Path(sys.executable).with_name("inn"), "--version"], capture_output=True, text=True)

    assert (shown.returncode, shown.stdout.split()[0]) == (0, "inn,")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "reproduce"])
def test_every_help_fits_into_80_columns(name: str) -> None:
    shown = CliRunner().invoke(main, [name, "--help"], terminal_width=80)

    assert shown.exit_code == 0
    assert max(map(len, shown.output.splitlines())) <= 80
    titles = [line for line in shown.output.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert [title for title in titles if title != "Example:"][-1] == "General:"


def failing(error: BaseException) -> click.Group:
    group = Commands("inn")

    @group.command()
    def fail() -> None:
        raise error

    return group


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ValueError("wrong shape"), 1, "Error: wrong shape"),
        (KeyError("no such thing"), 1, "no such thing"),
        (ZeroDivisionError("division by zero"), 1, "Error: ZeroDivisionError: division by zero\nWith --debug it says"),
        (KeyboardInterrupt(), 130, "Stopped: by Ctrl-C"),
        (click.UsageError("no such option"), 2, "Error: no such option"),
    ],
)
def test_whatever_ends_a_command_has_a_message_and_an_exit_code(error: BaseException, code: int, text: str) -> None:
    shown = CliRunner().invoke(failing(error), ["fail"])

    assert shown.exit_code == code and text in shown.stderr
    assert "Traceback" not in shown.output


def test_debug_shows_where_an_error_comes_from(inn: Inn) -> None:
    shown = inn("fit", *MODEL, "--data", "nowhere", "--out", "o.safetensors", "--debug")

    assert isinstance(shown.exception, FileNotFoundError)


def test_json_is_one_object_and_nothing_else_even_where_users_code_prints(inn: Inn, tmp_path: Path) -> None:
    words = ["--data", "test", "--out"]

    good = inn("calibrate", "--net", "net.safetensors", *MODEL, *words, tmp_path / "o.safetensors", "--json")
    bad = inn("calibrate", "--net", "nowhere", *MODEL, *words, tmp_path / "p.safetensors", "--json")

    found = json.loads(good.stdout)
    assert found["command"] == "calibrate" and found["out"] == str(tmp_path / "o.safetensors")
    assert good.stdout.count("\n") == 1 and "user's code says" in good.stderr
    assert json.loads(bad.stdout) == {
        "command": "calibrate",
        "error": "there is no file nowhere; inn fit makes one",
        "exit_code": 1,
    }
    assert bad.exit_code == 1 and "there is no file nowhere" in bad.stderr


def test_quiet_shows_errors_alone(inn: Inn, tmp_path: Path) -> None:
    words = ["explain", "--net", "net.safetensors", "--model", "userproject:ready", "--data", "test", "-q"]

    shown, failed = inn(*words), inn(*words, "--plot", "net.safetensors")

    assert (shown.exit_code, shown.output) == (0, "")
    assert failed.exit_code == 1 and "net.safetensors is there already" in failed.stderr and not failed.stdout


def test_doctor_tells_scripts_what_is_there() -> None:
    shown = CliRunner().invoke(main, ["doctor", "--json"])

    found = json.loads(shown.stdout)
    packages = {each["name"]: each for each in found["packages"]}
    assert shown.exit_code == 0
    assert packages["torch"]["fits"] and packages["torch"]["extra"] is None
    assert packages["pydicom"]["extra"] == "dicom" and "pytest" not in packages
    assert found["devices"][0]["device"] == "cpu" and found["devices"][0]["error"] is None
    assert found["problems"] == []


def test_doctor_fails_where_something_needed_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = ["torch>=99.1", 'pydicom>=99; extra == "dicom"', 'pytest>=99; extra == "dev"']
    monkeypatch.setattr("importlib.metadata.requires", lambda _: needs)

    shown = CliRunner().invoke(main, ["doctor"])
    found = json.loads(CliRunner().invoke(main, ["doctor", "--json"]).stdout)

    assert shown.exit_code == 1 and "torch must be installed or updated" in shown.stderr
    assert [(each["name"], each["fits"]) for each in found["packages"]] == [("torch", False), ("pydicom", False)]
    assert len(found["problems"]) == 1


def test_a_folder_without_runs_is_refused_by_name(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["reproduce", "deconv", "--out", str(tmp_path), "--draw-only"])

    assert shown.exit_code == 1 and "no runs in" in shown.output
