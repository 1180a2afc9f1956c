"""The package: its public names come when they are asked for."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import intervalnn


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300).stdout


def test_importing_the_package_imports_neither_torch_nor_numpy() -> None:
    code = (
        "import sys, intervalnn; dir(intervalnn); intervalnn.__version__; print({'torch', 'numpy'} & set(sys.modules))"
    )

    assert python(code) == "set()\n"


@pytest.mark.parametrize("name", intervalnn.__all__)
def test_every_public_name_is_there_and_is_listed(name: str) -> None:
    assert getattr(intervalnn, name) is not None
    assert name in dir(intervalnn)


@pytest.mark.rotating
def test_the_rules_are_there_whichever_name_comes_first() -> None:
    code = "import torch, intervalnn as inn; print((inn.Interval.of(torch.ones(1)) + 1).upper.item())"

    assert python(code) == "2.0\n"


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'intervalnn' has no attribute 'nonsense'"):
        intervalnn.nonsense  # noqa: B018


def test_every_room_has_its_line_among_the_import_layers() -> None:
    here = Path(intervalnn.__file__).parent
    rooms = {path for folder in (here, here / "data") for path in folder.iterdir() if path.stem[0] not in "_."}
    names = {f"intervalnn.{path.relative_to(here).with_suffix('').as_posix().replace('/', '.')}" for path in rooms}
    names -= {"intervalnn.data", "intervalnn.py"}  # whose modules have lines of their own; py.typed
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    layered, apart = project["tool"]["importlinter"]["contracts"]

    lines = {name.strip() for line in layered["layers"] for name in line.split("|")}
    assert names == lines | {name for name in apart["source_modules"] if not name.startswith("intervalnn.paper.")}
    assert set(apart["forbidden_modules"]) == lines - {"intervalnn.paper", "intervalnn.files"}
