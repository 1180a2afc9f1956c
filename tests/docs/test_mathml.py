"""Formulas as MathML."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

pytest.importorskip("latex2mathml", reason="formulas need latex2mathml (pip install 'intervalnn[docs]')")

EXTENSION = Path(__file__).parents[2] / "docs/_ext/mathml.py"
SPACE = "{http://www.w3.org/1998/Math/MathML}"


@pytest.fixture(scope="module")
def extension() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mathml", EXTENSION)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_letters_of_other_kinds_are_characters_of_their_own(extension: ModuleType) -> None:
    found = ElementTree.fromstring(extension.mathml(r"\mathbb E \mathbb P \mathcal L x"))

    assert [each.text for each in found.iter(f"{SPACE}mi")] == ["𝔼", "ℙ", "ℒ", "x"]


def test_lines_are_aligned(extension: ModuleType) -> None:
    found = ElementTree.fromstring(extension.mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "block"))

    assert found.get("display") == "block"
    assert [[len(row), row[0].get("columnalign")] for row in found.iter(f"{SPACE}mtr")] == [[2, "right"], [2, "right"]]
