"""The package: its public names come when they are asked for."""

from __future__ import annotations

import subprocess
import sys

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


def test_the_rules_are_there_whichever_name_comes_first() -> None:
    code = "import torch, intervalnn as inn; print((inn.Interval.of(torch.ones(1)) + 1).upper.item())"

    assert python(code) == "2.0\n"


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'intervalnn' has no attribute 'nonsense'"):
        intervalnn.nonsense  # noqa: B018
