"""Hub: a folder in the hub's form is written and read without a network."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import intervalnn as inn
from intervalnn.saving.hub import CONFIG, WEIGHTS, from_pretrained, save_pretrained


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a test of the hub must not reach for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def small_model(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()


def small_net() -> inn.IntervalNetwork:
    net = inn.IntervalNetwork(small_model(), ["2"], cap=0.5)
    net.set_gaps("2.bias", below=0.1, above=0.2)
    return net


def assert_equal(a: inn.IntervalNetwork, b: inn.IntervalNetwork) -> None:
    ours, theirs = a.weight_intervals(), b.weight_intervals()
    assert ours.keys() == theirs.keys()
    for name, weight in ours.items():
        assert torch.equal(weight.lower, theirs[name].lower)
        assert torch.equal(weight.point, theirs[name].point)
        assert torch.equal(weight.upper, theirs[name].upper)


def test_a_folder_has_the_names_that_the_hub_expects(tmp_path: Path) -> None:
    from huggingface_hub import constants

    save_pretrained(tmp_path / "net", small_net())

    names = {path.name for path in (tmp_path / "net").iterdir()}
    assert names == {constants.SAFETENSORS_SINGLE_FILE, constants.CONFIG_NAME} == {WEIGHTS, CONFIG}


def test_a_folder_fills_a_model_built_anew(tmp_path: Path) -> None:
    net = small_net()

    save_pretrained(tmp_path, net)

    assert_equal(net, from_pretrained(tmp_path, small_model(seed=1)))
    assert_equal(net, from_pretrained(str(tmp_path), small_model(seed=2)))


def test_options_reach_load(tmp_path: Path) -> None:
    save_pretrained(tmp_path, small_net())

    with pytest.raises(ValueError, match="belongs to another model"):
        from_pretrained(tmp_path, small_model(seed=1), verify=True)


def test_the_config_says_what_the_file_holds(tmp_path: Path) -> None:
    save_pretrained(tmp_path, small_net(), include_model=False)

    config = json.loads((tmp_path / CONFIG).read_text())

    assert config["library_name"] == "intervalnn"
    assert config["names"] == ["2.weight", "2.bias"]
    assert config["cap"] == 0.5
    assert config["model"]["class"] == "Sequential"
    assert config["model"]["included"] is False


def test_a_folder_without_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*model\.safetensors"):
        from_pretrained(tmp_path, small_model())


@pytest.mark.parametrize("place", ["./missing", "/missing/folder", "a/b/c", Path("missing")], ids=str)
def test_what_is_neither_folder_nor_repository_is_refused(place: str | Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        from_pretrained(place, small_model())


def test_a_repository_needs_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    with pytest.raises(ImportError, match="pip install huggingface_hub"):
        from_pretrained("someone/net", small_model())


def test_a_repository_is_read_from_the_cache(tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repo = tmp_path / "models--someone--net"
    save_pretrained(repo / "snapshots" / commit, small_net())
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)

    net = from_pretrained(
        "someone/net", small_model(seed=1), download={"cache_dir": tmp_path, "local_files_only": True}
    )

    assert_equal(net, small_net())


@pytest.mark.rotating
def test_a_folder_is_read_offline_and_without_the_package(tmp_path: Path) -> None:
    save_pretrained(tmp_path, small_net())
    code = f"""
import sys
from intervalnn.saving.hub import from_pretrained
assert "huggingface_hub" not in sys.modules, "imported though not needed"
sys.modules["huggingface_hub"] = None
from torch import nn
net = from_pretrained({str(tmp_path)!r}, nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval())
print(net.names)
"""
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}

    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "['2.weight', '2.bias']", done.stderr
