"""What is written, what is refused, and that nothing is left of what failed."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.saving.exporting import export
from intervalnn.saving.exporting.runtimes import RUNTIMES
from saving.exporting.nets import calibrated, linear, signal, widened


def run(path: Path, *tensors: Tensor) -> dict[str, Tensor]:
    with torch.no_grad():
        found: dict[str, Tensor] = torch.export.load(path).module()(*tensors)
    return found


def test_a_program_of_torch_export_predicts_bit_for_bit_and_holds_no_example(tmp_path: Path) -> None:
    net, example = calibrated(linear(), (3,)), signal(2, 3)

    card = export(net, example, tmp_path / "deep" / "net.pt2")

    x = signal(5, 3, seed=4)
    found, want = run(tmp_path / "deep" / "net.pt2", x), net.predict(x)
    assert all(torch.equal(found[key], want[key]) for key in ("point", "lower", "upper"))
    assert card["verification"]["calls"][0]["share_of_tolerance"] == 0
    content = (tmp_path / "deep" / "net.pt2").read_bytes()
    assert not any(word in content for word in (b"site-packages", b"rules/", str(Path.cwd()).encode()))
    assert example.numpy().tobytes() not in content
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["net.pt2", "net.pt2.json"]


def test_a_file_that_is_there_is_kept_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    path.write_text("precious")

    with pytest.raises(FileExistsError, match="overwrite=True"):
        export(linear(), signal(2, 3), path)
    assert path.read_text() == "precious"

    export(linear(), signal(2, 3), path, overwrite=True, verify=False, dynamic=False)
    assert run(path, signal(2, 3))["point"].shape == (2, 2)


def test_what_fails_verification_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right = RUNTIMES[".pt2"]

    def opened(path: Path) -> Any:
        run = right.open(path)
        return lambda tensors: {name: x + 0.01 if name == "upper" else x for name, x in run(tensors).items()}

    monkeypatch.setitem(RUNTIMES, ".pt2", replace(right, open=opened))
    with pytest.raises(RuntimeError, match=r"differs from the network by \S+ times .* 'upper': 0\.01"):
        export(linear(), signal(2, 3), tmp_path / "net.pt2", dynamic=False)

    assert not list(tmp_path.iterdir())


@dataclass
class Answer:
    value: Tensor
    index: Tensor


torch.export.register_dataclass(Answer, serialized_type_name="tests.exporting.test_file.Answer")


class Several(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(2, 3)

    def forward(self, point: Tensor, others: list[Tensor], *, gain: float = 1.0) -> dict[str, Any]:
        h = self.a(point) + gain * sum(self.b(other) for other in others)
        return {"hidden": [h], "answer": Answer(h.relu(), torch.arange(point.shape[-1])), "none": None}


def test_inputs_and_outputs_of_any_structure_are_named_by_their_place(tmp_path: Path) -> None:
    example = {"point": signal(2, 3), "others": [signal(2, 2), signal(2, 2, seed=5)], "gain": 0.5}
    net = widened(Several(), (example["point"], example["others"]))

    card = export(net, example, tmp_path / "net.pt2", outputs=["point", "upper"], dynamic=False)

    assert [each["name"] for each in card["inputs"]] == ["input_point", "others_0", "others_1"]
    assert [each["name"] for each in card["outputs"]] == [
        "hidden_0_point", "hidden_0_upper", "answer_value_point", "answer_value_upper", "answer_index_value",
    ]  # fmt: skip
    found = run(tmp_path / "net.pt2", example["point"], *example["others"])
    want = net.predict(**example)
    assert torch.equal(found["hidden_0_upper"], want["hidden"][0].upper)
    assert torch.equal(found["answer_index_value"], torch.arange(3))


@pytest.mark.rotating
@pytest.mark.parametrize("groups", ["width", "regions"])
def test_groups_of_a_calibration_are_part_of_the_file(tmp_path: Path, groups: str) -> None:
    torch.manual_seed(0)
    net = widened(nn.Conv1d(1, 1, 3, padding=1), signal(4, 1, 6))
    calibrated(net, (1, 6), groups=torch.arange(6)[None] % 2 if groups == "regions" else groups)

    card = export(net, signal(4, 1, 6), tmp_path / "net.pt2", dynamic=groups == "regions")

    x = signal(4, 1, 6, seed=6)
    assert torch.equal(run(tmp_path / "net.pt2", x)["upper"], net.predict(x).upper)
    assert len(card["calibration"]["factors"]) > 1
    assert card["inputs"][0]["shape"] == [4 if groups == "width" else "batch", 1, 6]  # a map has its size


def test_offsets_and_the_last_layers_alone_are_exported(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = inn.IntervalNetwork(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval(), layers=1)
    x = signal(8, 3)
    net.solve_offsets([(x, net.model(x).detach() + 1)], beta=0.1)

    card = export(net, x, tmp_path / "net.pt2", dynamic=False, name="mine")

    assert card["name"] == "mine"
    assert card["intervals"]["names"] == ["2.weight", "2.bias"]
    assert card["offsets"]["above"] > 0
    assert card["promise"].startswith("None")
    assert card["inputs"][0]["shape"] == [8, 3]
    assert torch.equal(run(tmp_path / "net.pt2", x)["upper"], net.predict(x).upper)


def test_wrong_arguments_are_refused_in_words(tmp_path: Path) -> None:
    net, x, path = linear(), signal(2, 3), tmp_path / "net.pt2"

    with pytest.raises(ValueError, match=r"must end in \.onnx, \.aoti\.pt2 or \.pt2, got 'net\.bin'"):
        export(net, x, tmp_path / "net.bin")
    with pytest.raises(TypeError, match="IntervalNetwork, got Sequential"):
        export(net.model, x, path)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="outputs must be some of point"):
        export(net, x, path, outputs=["point", "sigma"])
    for tolerance in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"tolerance must be a share of the width, .* got {tolerance}"):
            export(net, x, path, tolerance=tolerance)
    with pytest.raises(ValueError, match=r"Sequential does not take this example \(tensors of shape \(2, 4\)\)"):
        export(net, signal(2, 4), path)
    with pytest.raises(ValueError, match="at least one tensor"):
        export(net, 3.0, path)
    with pytest.raises(TypeError, match="takes no intervals"):
        export(net, inn.Interval.of(x), path)
    calibrated(net, (3,), groups=lambda prediction: (prediction.point > 0).long())
    with pytest.raises(ValueError, match="in groups by a function"):
        export(net, x, path)
    assert not list(tmp_path.iterdir())


class Pairs(nn.Module):
    """Treats two samples otherwise than one."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(x) * (2.0 if x.shape[0] == 2 else 1.0)


def test_a_batch_that_cannot_vary_is_that_of_the_example(tmp_path: Path) -> None:
    net = widened(Pairs(), signal(1, 3))

    card = export(net, signal(1, 3), tmp_path / "net.pt2")

    assert card["inputs"][0]["shape"] == [1, 3]
    assert torch.equal(run(tmp_path / "net.pt2", signal(1, 3))["upper"], net.predict(signal(1, 3)).upper)


class Timed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix, self.time = nn.Linear(3, 4), nn.Linear(1, 4)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.mix(x) + self.time(t)


def test_one_row_for_the_whole_batch_stays_one_row(tmp_path: Path) -> None:
    x, t = signal(2, 3), signal(1, 1)
    net = widened(Timed(), (x, t))

    card = export(net, (x, t), tmp_path / "net.pt2")

    assert [each["shape"] for each in card["inputs"]] == [["batch", 3], [1, 1]]
    more = signal(5, 3, seed=7)
    assert torch.equal(run(tmp_path / "net.pt2", more, t)["upper"], net.predict(more, t).upper)


class Alike(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(3, 4)

    def forward(self, x: list[Tensor], x_0: Tensor, a_b_lower: Tensor) -> dict[str, Any]:
        h = self.mix(x[0] + x_0 + a_b_lower)
        return {"a": {"b": h}, "a_b": 3 * h}


@pytest.mark.rotating
@pytest.mark.parametrize("ending", ["pt2", "onnx"])
def test_names_that_are_alike_are_told_apart(tmp_path: Path, ending: str) -> None:
    if ending == "onnx":
        pytest.importorskip("onnxruntime")
    given = ([signal(2, 3)], signal(2, 3, seed=3), signal(2, 3, seed=4))
    net = widened(Alike(), given)

    card = export(net, given, tmp_path / f"net.{ending}", outputs=["lower", "upper"])

    assert [each["name"] for each in card["inputs"]] == ["x_0", "x_0_2", "input_a_b_lower"]
    assert [each["name"] for each in card["outputs"]] == ["a_b_lower", "a_b_upper", "a_b_2_lower", "a_b_2_upper"]
    if ending == "pt2":
        found, want = run(tmp_path / "net.pt2", *given[0], *given[1:]), net.predict(*given)
        assert torch.equal(found["a_b_upper"], want["a"]["b"].upper)
        assert torch.equal(found["a_b_2_upper"], want["a_b"].upper)


class Wave(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.rfft(self.mix(x))


def test_complex_predictions_are_refused(tmp_path: Path) -> None:
    net = inn.IntervalNetwork(Wave().eval(), layers="all")

    with pytest.raises(TypeError, match="complex predictions have no order"):
        export(net, signal(2, 3), tmp_path / "net.pt2")


def test_a_model_in_training_mode_is_refused_before_it_runs(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    net = inn.IntervalNetwork(model, layers="all")
    model.train()

    with pytest.raises(ValueError, match="training mode"):
        export(net, signal(4, 3), tmp_path / "net.pt2")

    assert model[1].running_mean.eq(0).all()


def test_a_folder_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "net.pt2").mkdir()

    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file in it"):
        export(widened(nn.Linear(1, 1), signal(2, 1)), signal(2, 1), tmp_path / "net.pt2", overwrite=True)

    assert [path.name for path in tmp_path.iterdir()] == ["net.pt2"]


def test_the_card_has_null_for_what_json_has_no_number_for(tmp_path: Path) -> None:
    net = inn.IntervalNetwork(nn.Linear(1, 1).eval(), layers="all", cap=float("inf"))
    net.training_settings = {"loss": float("nan")}

    export(net, signal(2, 1), tmp_path / "net.pt2")

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    json.loads((tmp_path / "net.pt2.json").read_text(), parse_constant=refuse)


class Branching(nn.Module):
    """Goes another way at some sizes, which torch captures as a condition on them."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.layer, self.where = nn.Conv1d(1, 1, 3, padding=1), where

    def forward(self, x: Tensor) -> Tensor:
        if self.where == "short":
            return self.layer(x) if x.shape[-1] >= 16 else 10 * self.layer(x) + 3
        if self.where == "odd":
            return self.layer(nn.functional.pad(x, (0, x.shape[-1] % 2)) if x.shape[-1] % 2 else x)
        return self.layer(x) * (2.0 if x.shape[0] >= 2 else 1.0)


@pytest.mark.rotating
@pytest.mark.parametrize("where", ["short", "odd", "one sample"])
def test_sizes_at_which_the_model_goes_another_way_are_fixed(tmp_path: Path, where: str) -> None:
    x = signal(1 if where == "one sample" else 2, 1, 32)
    net = widened(Branching(where).eval(), x)

    card = export(net, x, tmp_path / "net.pt2")

    assert card["inputs"][0]["shape"] == ([1, 1, "length"] if where == "one sample" else ["batch", 1, 32])
    torch.testing.assert_close(run(tmp_path / "net.pt2", x)["upper"], net.predict(x).upper)
