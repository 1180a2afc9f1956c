"""A network as an ONNX file, and what it computes in onnxruntime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.saving.exporting import export
from saving.exporting.nets import calibrated, signal, widened

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

ALL = ("point", "lower", "upper", "score", "direction")


@pytest.fixture(scope="module")
def net() -> inn.IntervalNetwork:
    torch.manual_seed(0)
    model = inn.models.DeconvNet((3,), kernel=3)
    return calibrated(widened(model, signal(1, 1, 20)), (1, 20))


@pytest.fixture(scope="module")
def path(net: inn.IntervalNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "net.onnx"
    export(net, signal(1, 1, 20), path, outputs=ALL, licence="CC0-1.0")
    return path


def run(path: Path, *tensors: Tensor) -> dict[str, Tensor]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    given = {value.name: tensor.numpy() for value, tensor in zip(session.get_inputs(), tensors, strict=True)}
    names = [value.name for value in session.get_outputs()]
    return {name: torch.from_numpy(array) for name, array in zip(names, session.run(None, given), strict=True)}


def assert_agrees(found: dict[str, Tensor], net: inn.IntervalNetwork, x: Tensor, tolerance: float = 1e-4) -> None:
    want = net.predict(x)
    allowed = tolerance * want.width + 1e-6 * want.point.abs().max()
    assert bool((found["lower"] <= found["point"]).all())
    assert bool((found["point"] <= found["upper"]).all())
    for key in ("point", "lower", "upper"):
        assert bool(((found[key] - want[key]).abs() <= allowed).all()), key


@pytest.mark.parametrize("shape", [(1, 1, 20), (5, 1, 20), (2, 1, 33)])
def test_it_computes_what_the_network_does_at_any_batch_and_length(
    net: inn.IntervalNetwork, path: Path, shape: tuple[int, ...]
) -> None:
    x = signal(*shape, seed=3)

    found = run(path, x)

    want = net.predict(x)
    assert list(found) == list(ALL)
    assert_agrees(found, net, x)
    torch.testing.assert_close(found["score"], want.score, rtol=1e-4, atol=1e-6)
    clear = (want.above - want.below).abs() > 1e-3 * want.width
    assert torch.equal(found["direction"][clear], want.direction[clear])


def test_the_calibration_is_part_of_the_file(net: inn.IntervalNetwork, path: Path) -> None:
    x = signal(2, 1, 20, seed=3)

    found = run(path, x)

    raw = net(x)
    factor = (found["upper"] - found["point"]) / (raw.upper - raw.point).detach()
    assert net.calibration.factors.item() != pytest.approx(1.0, abs=0.1)
    assert factor.median().item() == pytest.approx(net.calibration.factors.item(), rel=1e-3)


def test_nothing_is_computed_that_does_not_depend_on_the_input(path: Path) -> None:
    graph = onnx.load(path).graph
    reached = {value.name for value in graph.input}

    for node in graph.node:
        assert reached & set(node.input), f"{node.op_type} of weights alone"
        reached |= set(node.output)


def test_inputs_and_sizes_have_plain_names(path: Path) -> None:
    graph = onnx.load(path).graph

    shapes = {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in graph.input}

    assert shapes == {"x": ["batch", 1, "length"]}


def test_the_file_is_valid_and_tells_nothing_of_the_machine(path: Path) -> None:
    onnx.checker.check_model(onnx.load(path), full_check=True)

    content = path.read_bytes()
    assert not any(word in content for word in (b"site-packages", b"intervalnn", str(Path.cwd()).encode()))
    assert signal(1, 1, 20).numpy().tobytes() not in content


def test_the_card_says_what_the_file_is(net: inn.IntervalNetwork, path: Path) -> None:
    card = json.loads(path.with_name("net.onnx.json").read_text())

    assert card["name"] == "DeconvNet"
    assert card["licence"] == "CC0-1.0"
    assert card["format"] == "ONNX"
    assert {"intervalnn", "torch", "onnx", "onnxscript", "opset"} == set(card["versions"])
    assert card["inputs"] == [{"name": "x", "shape": ["batch", 1, "length"], "dtype": "float32"}]
    assert [output["name"] for output in card["outputs"]] == list(ALL)
    assert card["outputs"][1]["shape"] == ["batch", 1, "length"]
    assert card["coverage"] == 0.8
    assert card["promise"] == net.calibration.promise
    assert card["intervals"]["names"] == net.names
    assert len(card["model"]["digest"]) == 64
    calls = card["verification"]["calls"]
    assert [call["inputs"]["x"] for call in calls] == [[1, 1, 20], [3, 1, 10]]
    assert all(call["share_of_tolerance"] < 1 for call in calls)


@pytest.mark.slow
def test_the_same_network_gives_the_same_bytes(net: inn.IntervalNetwork, path: Path, tmp_path: Path) -> None:
    card = export(net, signal(1, 1, 20), tmp_path / "net.onnx", outputs=ALL, licence="CC0-1.0", verify=False)

    assert (tmp_path / "net.onnx").read_bytes() == path.read_bytes()
    assert card == json.loads(path.with_name("net.onnx.json").read_text()) | {"verification": None}


class Gamma(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(torch.lgamma(x))


def test_an_operation_that_onnx_lacks_is_named_with_its_line(tmp_path: Path) -> None:
    net = widened(Gamma(), torch.ones(2, 4))

    with pytest.raises(
        ValueError, match=r"ONNX cannot express \w+\.lgamma\.default \(in.*test_onnx\.py:\d+ \(\"return self"
    ):
        export(net, torch.ones(2, 4), tmp_path / "net.onnx", dynamic=False)

    assert not list(tmp_path.iterdir())


class Poles(nn.Module):
    def __init__(self, pool: Any) -> None:
        super().__init__()
        self.first, self.mix, self.pool = nn.Linear(1, 4), nn.Linear(4, 4), pool

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.mix(1 / self.first(x))[:, None])


@pytest.mark.rotating
@pytest.mark.parametrize("pool", [nn.MaxPool1d(2), nn.AdaptiveMaxPool1d(2)], ids=["side by side", "adaptive"])
def test_bounds_that_are_endless_stay_so_behind_a_pool(tmp_path: Path, pool: nn.Module) -> None:
    torch.manual_seed(0)
    net = inn.IntervalNetwork(Poles(pool).eval(), ["first.bias"])
    with torch.no_grad():
        net.model.first.weight.fill_(1.0)
        net.model.first.bias.copy_(torch.tensor([0.0, 0.1, -0.2, 0.3]))
    net.set_gaps("first.bias", 0.05, 0.05)

    export(net, torch.tensor([[3.0], [4.0]]), tmp_path / "net.onnx")

    x = torch.tensor([[-0.34]])  # where one of the four may be divided by zero
    found, want = run(tmp_path / "net.onnx", x), net.predict(x)
    assert want.upper.isinf().all() and want.lower.isinf().all()
    assert (found["upper"] > 1e38).all() and (found["lower"] < -1e38).all()


@pytest.mark.rotating
@pytest.mark.parametrize("last", [nn.LogSigmoid(), nn.LogSoftmax(1)], ids=lambda last: type(last).__name__)
def test_logarithms_of_small_shares_stay_numbers(tmp_path: Path, last: nn.Module) -> None:
    """Torch writes them as the logarithm of a sigmoid, which is zero in float32 from -104 on, and rough long before."""
    torch.manual_seed(0)
    net = inn.IntervalNetwork(nn.Sequential(nn.Linear(5, 5), last).eval(), ["0.bias"])
    net.set_gaps("0.bias", 0.5, 0.5)
    export(net, torch.randn(2, 5), tmp_path / "net.onnx")

    x = torch.linspace(-200.0, 50.0, 40).reshape(8, 5)
    found, want = run(tmp_path / "net.onnx", x), net.predict(x)

    for name in ("lower", "point", "upper"):
        torch.testing.assert_close(found[name], getattr(want, name), rtol=1e-5, atol=1e-5)


@pytest.mark.rotating
def test_sizes_are_fixed_that_the_runtime_cannot_follow(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(18, 2))
    net = widened(model, signal(2, 1, 8, 8))

    card = inn.export(net, signal(2, 1, 8, 8), tmp_path / "net.onnx")

    assert card["inputs"][0]["shape"] == ["batch", 1, 8, 8]
    more = signal(5, 1, 8, 8, seed=7)
    assert_agrees(run(tmp_path / "net.onnx", more), net, more)


@pytest.mark.rotating
def test_half_precision_is_compared_by_its_own_rounding(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = widened(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).half(), signal(2, 8).half())

    card = export(net, signal(2, 8).half(), tmp_path / "net.onnx")

    assert card["verification"]["of_largest_entry"] == 4 * 2**-10
    assert [output["dtype"] for output in card["outputs"]] == ["float16", "float32", "float32"]


def test_what_the_runtime_cannot_load_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    net = widened(nn.Linear(3, 2).bfloat16(), signal(2, 3).bfloat16())

    with pytest.raises(RuntimeError, match=r"onnxruntime cannot load what was written \(.*set verify=False"):
        export(net, signal(2, 3).bfloat16(), tmp_path / "net.onnx", dynamic=False)

    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, net: Any) -> None:
    monkeypatch.setattr(
        "intervalnn.saving.exporting.runtime.find_spec", lambda name: None if name == "onnxscript" else name
    )

    with pytest.raises(ImportError, match=r'needs onnxscript: pip install "intervalnn\[onnx\]"'):
        export(net, signal(1, 1, 20), tmp_path / "net.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("layers", ["all", 7])
@pytest.mark.parametrize("base", [8, 16])
def test_the_unet_of_the_paper_agrees_at_several_sizes(tmp_path: Path, base: int, layers: Any) -> None:
    torch.manual_seed(0)
    net = widened(inn.models.UNet(base), signal(1, 1, 32, 48), relative=1e-4 if layers == 7 else 1e-7, layers=layers)

    card = export(net, signal(1, 1, 32, 48), tmp_path / "net.onnx")

    assert card["inputs"][0]["shape"] == ["batch", 1, "height", "width"]
    for shape in ((1, 1, 64, 64), (3, 1, 16, 80), (1, 1, 128, 96)):
        x = signal(*shape, seed=4)
        found = run(tmp_path / "net.onnx", x)
        assert_agrees(found, net, x)
        assert bool((found["upper"] > found["lower"]).all())
        np.testing.assert_allclose(found["point"], net.model(x).detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_the_deconvolution_network_of_the_paper_agrees_at_several_lengths(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = widened(inn.models.DeconvNet(), signal(1, 1, 512), relative=1e-4)

    export(net, signal(1, 1, 512), tmp_path / "net.onnx")

    for shape in ((1, 1, 512), (4, 1, 300)):
        x = signal(*shape, seed=4)
        assert_agrees(run(tmp_path / "net.onnx", x), net, x)
