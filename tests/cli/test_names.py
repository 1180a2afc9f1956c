"""Names of files: whatever they are, the terminal obeys none, and what is written is named."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from cli.conftest import MODEL, Inn
from intervalnn.paper.demo import named

NAMES = [
    "\x1b[31mred\x1b]0;title\x07",
    "two\nlines",
    "back\rwards\b\b",
    "\u202etxt.",
    "[red]bold",
    "\x9b2J",
    "$(id)",
]
OBEYED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
NET = ["--net", "net.safetensors", *MODEL]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_no_name_reaches_the_terminal_as_a_command(name: str, inn: Inn, tmp_path: Path) -> None:
    shutil.copy("test/x.npy", tmp_path / f"{name}.npy")
    (tmp_path / name).mkdir()
    (tmp_path / name / f"{name}.dcm").write_bytes(b"no dicom")
    (tmp_path / f"{name}.npz").write_bytes(b"no archive")
    (tmp_path / f"{name}.toml").write_text("[[[")

    shown = [
        inn("predict", *NET, "--input", tmp_path / f"{name}.npy", "--out", tmp_path / f"{name}-out.npz"),
        inn("predict", *NET, "--input", tmp_path / f"{name}.npy", "--out", tmp_path / f"{name}-out.npz"),  # is there
        inn("predict", *NET, "--input", tmp_path / name, "--out", tmp_path / f"{name}-volume"),  # no volume
        inn("predict", *NET, "--input", tmp_path / f"{name}.npz", "--out", tmp_path / f"{name}-2.npz"),  # damaged
        inn("predict", "--config", tmp_path / f"{name}.toml"),
        inn("predict", *NET, "--input", tmp_path / f"{name} that is not there", "--out", "o.npz"),
        inn("view", tmp_path / f"{name}.npz", "--no-browser"),
        inn("view", tmp_path / f"{name} that is not there"),
        inn("view", tmp_path / f"{name}-out.npz", "--export", tmp_path / f"{name}.html"),
        inn("report", tmp_path / name),
        inn("report", tmp_path / name, tmp_path / name),
        inn(name),
    ]

    assert [each.exit_code for each in shown] == [0, 1, 1, 1, 2, 1, 1, 2, 0, 1, 2, 2]
    for each in shown:
        assert not OBEYED.search(each.output), each.output
    assert (tmp_path / f"{name}.html").is_file()


def test_what_cannot_be_copied_is_no_hint(inn: Inn, tmp_path: Path) -> None:
    shutil.copy("test/x.npy", tmp_path / "x.npy")

    plain = inn("predict", *NET, "--input", tmp_path / "x.npy", "--out", tmp_path / "a b.npz")
    odd = inn("predict", *NET, "--input", tmp_path / "x.npy", "--out", tmp_path / "a\x1bb.npz")

    assert "Next: inn view '" in plain.output and "Next:" not in odd.output
    assert r"a\x1bb.npz" in odd.output.replace("\n", "")


def test_scripts_get_names_as_they_are(inn: Inn, tmp_path: Path) -> None:
    shutil.copy("test/x.npy", tmp_path / "x.npy")

    shown = inn("predict", *NET, "--input", tmp_path / "x.npy", "--out", tmp_path / "a\x1b\nb.npz", "--json")

    assert json.loads(shown.stdout)["out"] == str(tmp_path / "a\x1b\nb.npz") and "\x1b" not in shown.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are texts")
def test_names_that_are_no_text_are_read_and_written(inn: Inn, tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\xfe")
    shutil.copy("test/x.npy", tmp_path / f"{name}.npy")

    made = inn("predict", *NET, "--input", tmp_path / f"{name}.npy", "--out", tmp_path / f"{name}.npz")
    page = inn("view", tmp_path / f"{name}.npz", "--export", tmp_path / f"{name}.html")

    assert (made.exit_code, page.exit_code) == (0, 0), made.output + page.output
    assert r"\udcff\udcfe.npz" in made.output.replace("\n", "")


def test_an_evaluation_of_odd_names_is_a_table(inn: Inn, tmp_path: Path) -> None:
    names = ["a\nb", "\x1b[31m", "[/]"]
    nets = [word for name in names for word in ("--net", f"{name}=net.safetensors")]

    shown = inn("evaluate", *nets, *MODEL, "--data", "test", "--metric", "mse", "--out", tmp_path / "run.json")

    assert shown.exit_code == 0, shown.output
    assert r"a\nb" in shown.output and r"\x1b[31m" in shown.output and "[/]" in shown.output
    assert "\x1b" not in shown.output


def test_a_path_is_no_markup() -> None:
    from rich.text import Text

    for path in ("[/]/demo.png", "[red]/demo.png", "a\\[b].png", "\x1b[31m.png"):
        assert Text.from_markup(f"[bold]{named(Path(path))}[/]").plain == path.replace("\x1b", r"\x1b")


# --- what a command cannot do without is said first ---


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        (["demo"], "matplotlib", "report"),
        (["reproduce", "deconv"], "matplotlib", "report"),
        (["explain", *NET, "--data", "test", "--plot", "layers.png"], "matplotlib", "report"),
        (["predict", *NET, "--input", "test/x.npy", "--out", "p.npz", "--format", "nifti"], None, None),
        (["predict", *NET, "--input", "volume", "--out", "p", "--format", "nifti"], "nibabel", "nifti"),
        (["predict", *NET, "--input", "volume", "--out", "p", "--format", "dicom"], "pydicom", "dicom"),
        (["report", "test"], "jinja2", "report"),
    ],
)
def test_a_missing_extra_is_told_before_the_work(
    words: list[str], package: str | None, extra: str | None, inn: Inn, monkeypatch: pytest.MonkeyPatch
) -> None:
    from intervalnn.cli import models
    from intervalnn.paper.experiments import reproduce

    def fail(*_: object, **__: object) -> None:
        pytest.fail("it has begun")

    for module, name in ((models, "device_of"), (reproduce, "reproduce_deconvolution")):
        monkeypatch.setattr(module, name, fail)
    Path("volume").mkdir(exist_ok=True)
    Path("volume/notes.txt").write_text("")
    if package is not None:
        monkeypatch.setitem(sys.modules, package, None)

    shown = inn(*words)

    assert shown.exit_code == (1 if package else 2)
    if package is not None:
        assert package in shown.output and f'pip install "intervalnn[{extra}]"' in shown.output.replace("\n", "")
