"""fit on several processes and machines, and when it is killed: for real, with processes of its own."""

from __future__ import annotations

import importlib.util
import json
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from intervalnn.training.engine import FabricEngine, TorchEngine, any_engine
from training.fit_worker import run, sharded, task

WORKER = Path(__file__).with_name("fit_worker.py")


def start(out: Path, launcher: list[str] | None = None, **settings: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable]
    if launcher is not None:
        command += ["-m", "torch.distributed.run", *launcher]
    with (out.parent / "stderr").open("ab") as errors:
        arguments = [str(WORKER), str(out), json.dumps(settings)]
        return subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL, stderr=errors)


def finish(*processes: subprocess.Popen[bytes]) -> None:
    """Wait for the processes, and leave none behind."""
    try:
        assert [process.wait(timeout=120) for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()


def results(out: Path, world: int) -> list[dict[str, Any]]:
    return [torch.load(f"{out}.{rank}", weights_only=True) for rank in range(world)]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def assert_same(found: dict[str, Any], wanted: dict[str, Any], rtol: float) -> None:
    assert found["best"] == wanted["best"]
    torch.testing.assert_close(
        *(torch.tensor(f["numbers"], dtype=torch.float64) for f in (found, wanted)), rtol=rtol, atol=rtol
    )
    for name, gap in wanted["gaps"].items():
        torch.testing.assert_close(found["gaps"][name], gap, rtol=rtol, atol=rtol * float(gap.abs().max()), msg=name)
    if "factors" in wanted:
        assert found["images"] == wanted["images"] == [41]
        assert torch.equal(found["factors"], wanted["factors"])


def assert_identical(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found["numbers"] == wanted["numbers"] and found["best"] == wanted["best"]
    assert found["settings"] == wanted["settings"]
    assert all(torch.equal(found["gaps"][name], gap) for name, gap in wanted["gaps"].items())


# --- several processes ---


def test_two_processes_take_the_steps_of_one(tmp_path: Path) -> None:
    finish(start(tmp_path / "out", ["--standalone", "--nproc_per_node=2"], checkpoint=str(tmp_path / "run.pt")))

    first, second = results(tmp_path / "out", 2)
    assert_identical(second, first)  # the numbers are those of all, on each
    assert_same(first, run(TorchEngine()), rtol=1e-9)
    assert [path.name for path in tmp_path.glob("run.pt*")] == ["run.pt.0"]


@pytest.mark.rotating
def test_two_processes_fit_a_scout_as_one_does(tmp_path: Path) -> None:
    finish(start(tmp_path / "out", ["--standalone", "--nproc_per_node=2"], scout=True))

    first, second = results(tmp_path / "out", 2)
    assert_identical(second, first)
    assert first["settings"]["held_out"] == 4
    assert_same(first, run(TorchEngine(), scout=True), rtol=1e-4)  # a scout's weights are in float32


@pytest.mark.slow
def test_two_machines_take_the_steps_of_one(tmp_path: Path) -> None:
    port = free_port()
    shared = ["--nnodes=2", "--nproc_per_node=2", "--master_addr=127.0.0.1", f"--master_port={port}"]

    finish(*(start(tmp_path / "out", [*shared, f"--node_rank={node}"]) for node in range(2)))

    found = results(tmp_path / "out", 4)
    for other in found[1:]:
        assert_identical(other, found[0])
    assert_same(found[0], run(TorchEngine()), rtol=1e-9)


@pytest.mark.slow
def test_what_one_process_has_seen_two_can_go_on_from(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    die = {"epochs": 6, "checkpoint": str(path), "die_at_save": 4}
    assert start(tmp_path / "out", **die).wait(timeout=120) == -signal.SIGKILL

    finish(start(tmp_path / "out", ["--standalone", "--nproc_per_node=2"], epochs=6, checkpoint=str(path)))

    assert_same(results(tmp_path / "out", 2)[1], run(TorchEngine(), epochs=6), rtol=1e-9)


@pytest.mark.slow
def test_gaps_and_moments_can_be_spread_over_processes_in_a_plain_loop(tmp_path: Path) -> None:
    finish(start(tmp_path / "out", ["--standalone", "--nproc_per_node=2"], sharded=True))

    found, wanted = results(tmp_path / "out", 2), sharded(TorchEngine())
    assert max(each["held"] for each in found) < 0.7 * wanted["held"]
    for name, gap in wanted["gaps"].items():
        torch.testing.assert_close(found[1]["gaps"][name], gap, rtol=1e-12, atol=1e-14)


# --- killed ---


def optimizer_of(path: Path) -> dict[int, dict[str, Tensor]]:
    found = torch.load(path, weights_only=True)["optimizer"]["state"]
    assert isinstance(found, dict)
    return found


def assert_ends_as_if_nothing_had_happened(tmp_path: Path, epochs: int, **settings: Any) -> None:
    wanted = run(TorchEngine(), epochs=epochs, checkpoint=str(tmp_path / "whole.pt"), **settings)

    found = run(TorchEngine(), epochs=epochs, checkpoint=str(tmp_path / "killed.pt"), **settings)

    assert_identical(found, wanted)
    killed, whole = (optimizer_of(tmp_path / f"{name}.pt.0") for name in ("killed", "whole"))
    assert killed.keys() == whole.keys()
    for key, state in whole.items():
        assert all(torch.equal(killed[key][name], value) for name, value in state.items())


@pytest.mark.rotating
@pytest.mark.parametrize(
    "plain", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["interval network", "plain model with dropout"]
)
def test_a_run_killed_at_any_moment_goes_on_to_the_same_bits(tmp_path: Path, plain: bool) -> None:
    path, epochs = tmp_path / "killed.pt", 30
    process = start(tmp_path / "out", epochs=epochs, checkpoint=str(path), pause=0.05, plain=plain)
    deadline = time.monotonic() + 100
    while not (tmp_path / "killed.pt.0").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(random.uniform(0.0, 1.0))  # any moment must do, so no seed
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = len(torch.load(tmp_path / "killed.pt.0", weights_only=True)["history"]["epochs"])
    assert 0 < done < epochs

    assert_ends_as_if_nothing_had_happened(tmp_path, epochs, plain=plain)


@pytest.mark.slow
@pytest.mark.parametrize("save", [1, 3])
def test_a_run_killed_between_write_and_rename_goes_on_to_the_same_bits(tmp_path: Path, save: int) -> None:
    process = start(tmp_path / "out", epochs=5, checkpoint=str(tmp_path / "killed.pt"), die_at_save=save)
    assert process.wait(timeout=120) == -signal.SIGKILL
    assert list(tmp_path.glob(".killed.pt.0.*.tmp/part"))
    assert (tmp_path / "killed.pt.0").exists() == (save > 1)

    assert_ends_as_if_nothing_had_happened(tmp_path, 5)


# --- engines ---


class StandIn:
    """What FabricEngine asks of a Fabric, and that it refuses a frozen dataclass as an output."""

    global_rank, world_size = 0, 1

    def setup_module(self, module: nn.Module) -> nn.Module:
        return Wrapped(module)

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def all_reduce(self, value: Tensor, reduce_op: str) -> Tensor:
        assert reduce_op == "sum"
        return value

    def broadcast(self, value: Any) -> Any:
        return value


class Wrapped(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any) -> Any:
        output = self.module(*args)
        assert isinstance(output, tuple) and all(isinstance(part, Tensor) for part in output)
        return output


def test_another_engine_of_the_same_protocol_gives_the_same_bits() -> None:
    assert_identical(run(FabricEngine(StandIn())), run(TorchEngine()))


needs_fabric = pytest.mark.skipif(
    importlib.util.find_spec("lightning_fabric") is None or importlib.util.find_spec("lightning_utilities") is None,
    reason="Lightning Fabric is not installed (pip install 'intervalnn[fabric]')",
)


@needs_fabric
@pytest.mark.slow
def test_fabric_gives_the_same_bits_on_one_process(tmp_path: Path) -> None:
    finish(start(tmp_path / "out", fabric=True))

    assert_identical(results(tmp_path / "out", 1)[0], run(TorchEngine()))


@needs_fabric
@pytest.mark.slow
def test_fabric_gives_the_same_bits_on_two_processes(tmp_path: Path) -> None:
    launcher = ["--standalone", "--nproc_per_node=2"]
    finish(start(tmp_path / "torch", launcher), start(tmp_path / "fabric", launcher, fabric=True))

    for ours, theirs in zip(results(tmp_path / "torch", 2), results(tmp_path / "fabric", 2), strict=True):
        assert_identical(theirs, ours)


def test_one_process_needs_no_group() -> None:
    engine = TorchEngine()

    value = torch.ones(2)

    assert (engine.rank, engine.world) == (0, 1)
    assert torch.equal(engine.sum(value), value) and engine.sum(value) is not value
    assert engine.broadcast("x") == "x"
    model, _ = task()
    assert engine.wrap(model) is model
    assert not torch.distributed.is_initialized()
    assert any_engine(engine) is engine
