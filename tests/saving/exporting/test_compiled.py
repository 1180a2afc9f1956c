"""A network compiled ahead of time, and what it computes where nothing but torch is known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.saving.exporting import export
from intervalnn.saving.exporting.example import Example
from intervalnn.saving.exporting.standalone import standalones
from saving.exporting.nets import calibrated, linear, signal, widened

ALL = ("point", "lower", "upper", "score", "direction")
CHECKS = "AOTI_RUNTIME_CHECK_INPUTS"


@pytest.fixture(scope="module")
def net() -> inn.IntervalNetwork:
    torch.manual_seed(0)
    return calibrated(widened(inn.models.DeconvNet((3,), kernel=3), signal(1, 1, 20)), (1, 20))


@pytest.fixture(scope="module")
def path(net: inn.IntervalNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compiled") / "deep" / "net.aoti.pt2"
    export(net, signal(1, 1, 20), path, outputs=ALL)
    return path


def load(path: Path) -> Any:
    return torch._inductor.aoti_load_package(str(path))


def assert_agrees(found: dict[str, Tensor], want: inn.Prediction) -> None:
    allowed = 1e-4 * want.width + 1e-6 * want.point.abs().max()
    assert bool((found["lower"] <= found["point"]).all())
    assert bool((found["point"] <= found["upper"]).all())
    for key in ("point", "lower", "upper"):
        assert bool(((found[key] - want[key]).abs() <= allowed).all()), key


# --- what it computes ---


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 1, 20), (5, 1, 20), (2, 1, 33)])
def test_it_computes_what_the_network_does_at_any_batch_and_length(
    net: inn.IntervalNetwork, path: Path, shape: tuple[int, ...]
) -> None:
    x = signal(*shape, seed=3)

    found = load(path)(x)

    want = net.predict(x)
    assert list(found) == list(ALL)
    assert_agrees(found, want)
    torch.testing.assert_close(found["score"], want.score, rtol=1e-4, atol=1e-6)
    clear = (want.above - want.below).abs() > 1e-3 * want.width
    assert torch.equal(found["direction"][clear], want.direction[clear])


@pytest.mark.slow
def test_it_runs_where_this_library_is_not(path: Path) -> None:
    script = (
        "import sys, torch; sys.modules['intervalnn'] = None;"
        "found = torch._inductor.aoti_load_package(sys.argv[1])(torch.ones(3, 1, 20));"
        "print(sorted(found), tuple(found['upper'].shape))"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True, cwd=path.parent
    )

    assert done.stdout.strip() == "['direction', 'lower', 'point', 'score', 'upper'] (3, 1, 20)"


@pytest.mark.slow
def test_bounds_contain_the_prediction_exactly_behind_functions_that_round(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 37), nn.Sigmoid(), nn.Unflatten(1, (37, 1)), nn.Tanh())
    net = widened(model, signal(2, 3), relative=1e-7)  # so that bounds are a rounding apart

    export(net, signal(2, 3), tmp_path / "net.aoti.pt2")

    run = load(tmp_path / "net.aoti.pt2")
    for batch in (1, 7, 300):  # with ends that do not fill a register
        x = signal(batch, 3, seed=batch)
        assert_agrees(run(x), net.predict(x))


@pytest.mark.slow
@pytest.mark.parametrize("norm", [nn.LayerNorm(7), nn.BatchNorm1d(7)], ids=lambda norm: type(norm).__name__)
def test_norms_whose_weights_have_gaps_are_compiled(tmp_path: Path, norm: nn.Module) -> None:
    torch.manual_seed(0)
    net = widened(nn.Sequential(nn.Linear(3, 7), norm), signal(2, 3))

    export(net, signal(2, 3), tmp_path / "net.aoti.pt2")

    x = signal(5, 3, seed=5)
    assert_agrees(load(tmp_path / "net.aoti.pt2")(x), net.predict(x))


@pytest.mark.slow
def test_the_unet_of_the_paper_takes_any_batch_of_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    net = widened(inn.models.UNet(4), signal(1, 1, 32, 48), relative=1e-6)

    card = export(net, signal(1, 1, 32, 48), tmp_path / "net.aoti.pt2")

    monkeypatch.setenv(CHECKS, "1")
    run = load(tmp_path / "net.aoti.pt2")
    assert card["inputs"][0]["shape"] == ["batch", 1, 32, 48]
    for batch in (1, 4):
        x = signal(batch, 1, 32, 48, seed=4)
        assert_agrees(run(x), net.predict(x))
    with pytest.raises(RuntimeError):
        run(signal(1, 1, 33, 48))


# --- what is written ---


@pytest.mark.slow
def test_the_card_says_for_what_machine_it_was_compiled(path: Path) -> None:
    card = json.loads(path.with_name("net.aoti.pt2.json").read_text())

    assert card["format"] == "AOTInductor"
    assert card["versions"]["compiled_for"]["device"] == "cpu"
    assert {"intervalnn", "torch", "compiled_for"} == set(card["versions"])
    assert card["inputs"] == [{"name": "x", "shape": ["batch", 1, "length"], "dtype": "float32"}]
    assert [output["name"] for output in card["outputs"]] == list(ALL)
    assert card["coverage"] == 0.8
    calls = card["verification"]["calls"]
    assert [call["inputs"]["x"] for call in calls] == [[1, 1, 20], [3, 1, 10]]
    assert all(call["share_of_tolerance"] < 1 for call in calls)


@pytest.mark.slow
def test_nothing_but_the_package_and_its_card_is_left(path: Path) -> None:
    content = path.read_bytes()

    assert sorted(each.name for each in path.parent.iterdir()) == ["net.aoti.pt2", "net.aoti.pt2.json"]
    assert b"#include" not in content
    assert signal(1, 1, 20).numpy().tobytes() not in content


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["dtype", "channels", "order"])
def test_it_refuses_wrong_inputs_where_it_is_told_to_check_them(
    path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    x = {"dtype": signal(2, 1, 20).double(), "channels": signal(2, 2, 20), "order": signal(20, 1, 2).permute(2, 1, 0)}
    monkeypatch.setenv(CHECKS, "1")
    run = load(path)

    with pytest.raises(RuntimeError):
        run(x[wrong])
    assert run(signal(1, 1, 20))["point"].shape == (1, 1, 20)


# --- what is refused ---


class Halves(nn.Module):
    """Takes even lengths alone."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Conv1d(1, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        coarse = nn.functional.interpolate(nn.functional.avg_pool1d(x, 2), scale_factor=2.0)
        return self.mix(x + coarse)


def test_sizes_with_a_condition_are_fixed_where_no_code_can_refuse_others() -> None:
    net = widened(Halves(), signal(2, 1, 8))
    example = Example.of(net.model, signal(2, 1, 8))

    with_conditions, without = (
        next(standalones(net, example, ["point"], dynamic=True, conditions=conditions)) for conditions in (True, False)
    )

    assert with_conditions.inputs["x"].shape == ("batch", 1, "length")
    assert without.inputs["x"].shape == ("batch", 1, 8)


def test_a_missing_compiler_is_told_before_anything_is_done(tmp_path: Path) -> None:
    with (
        torch._inductor.config.patch({"cpp.cxx": (None, "no-such-compiler")}),
        pytest.raises(RuntimeError, match=r"needs a C\+\+ compiler, and torch finds none .*install g\+\+"),
    ):
        export(linear(), signal(2, 3), tmp_path / "net.aoti.pt2")

    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [True, False])
def test_what_the_compiler_says_is_told_and_nothing_is_left(tmp_path: Path, dynamic: bool) -> None:
    compiler, out = tmp_path / "compiler", tmp_path / "out"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *.cpp*) echo "1:1: error: too hard" >&2; exit 1;; esac\nexec g++ "$@"\n'
    )
    compiler.chmod(0o755)

    with (
        torch._inductor.config.patch({"cpp.cxx": (str(compiler),)}),
        pytest.raises(ValueError, match="AOTInductor could not compile the network: 1:1: error: too hard") as told,
    ):
        export(linear(), signal(2, 3), out / "net.aoti.pt2", dynamic=dynamic)

    assert ("dynamic=False" in str(told.value)) == dynamic
    assert not list(out.iterdir())
