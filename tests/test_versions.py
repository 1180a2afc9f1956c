"""The versions that the pages promise are those that pip is told, and those that are tested."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from lowest import lowest

ROOT = Path(__file__).parents[1]
TORCH = re.compile(r"torch>=(\d+\.\d+),<(\d+)\.(\d+)$")


def _torch() -> tuple[str, str]:
    """Return the oldest and the newest minor version of torch that is tested."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    oldest, major, untested = next(found for each in needed if (found := TORCH.match(each))).groups()
    return oldest, f"{major}.{int(untested) - 1}"


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_the_pages_say_which_torch_is_tested(page: str) -> None:
    assert "torch from {} to {}".format(*_torch()) in (ROOT / page).read_text()


def test_make_tries_the_newest_torch_that_is_tested() -> None:
    assert f"\nTORCH ?= {_torch()[1]}." in (ROOT / "Makefile").read_text()


def test_every_dependency_has_a_lowest_version() -> None:
    found = lowest()

    assert found["torch"] == _torch()[0]
    assert {"numpy", "pydicom", "onnx", "pytest", "transformers"} <= set(found)
