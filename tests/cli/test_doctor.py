"""Doctor sees a torch that is not tested, and one that gives a network other bounds than it must have."""

from __future__ import annotations

import json

import pytest
import torch
from click.testing import CliRunner
from torch import Tensor

from intervalnn import interval
from intervalnn.cli import main
from intervalnn.cli.known import SENSITIVITIES, deviations
from intervalnn.rules.products import split


def zero_at_zero(x: Tensor) -> Tensor:
    """Cut as torch 2.15 does it, whose derivative where the gaps are closed is zero."""
    return torch.relu(x)


def test_the_known_network_is_as_it_is_known() -> None:
    assert deviations("cpu") == []


def test_doctor_complains_of_a_torch_with_another_derivative_at_kinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "cut", zero_at_zero)

    shown = CliRunner().invoke(main, ["doctor"])
    found = json.loads(CliRunner().invoke(main, ["doctor", "--json"]).stdout)

    assert shown.exit_code == 1
    assert f"does not get the numbers that it is known to have with torch {torch.__version__}" in shown.stderr
    assert "the sensitivity of hidden.weight is 0, not 2" in shown.stderr and "install another torch" in shown.stderr
    assert "a tiny network gets wrong bounds" in shown.stdout
    assert found["problems"] and "hidden.bias" in found["devices"][0]["error"]


def test_doctor_complains_of_gaps_that_do_not_train(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interval._Cut, "backward", staticmethod(lambda ctx, grad: (torch.zeros_like(grad), None)))

    wrong = deviations("cpu")

    assert len(wrong) > len(SENSITIVITIES) and any("fitted bounds reach" in each for each in wrong)


def test_doctor_complains_of_a_torch_that_is_newer_than_those_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda _: ["torch<2.1,>=2.0"])

    shown = CliRunner().invoke(main, ["doctor"])
    found = json.loads(CliRunner().invoke(main, ["doctor", "--json"]).stdout)

    assert shown.exit_code == 1
    assert f"torch {found['packages'][0]['installed']} is not tested" in shown.stderr
    assert "pip install 'torch>=2.0,<2.1'" in shown.stderr
    assert (found["packages"][0]["below"], found["packages"][0]["fits"]) == ("2.1", False)
