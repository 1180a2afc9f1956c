"""Curves and examples for reports: those of the metrics, and of the right samples."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import intervalnn as inn
from evaluation.report.made import Leaning, pairs
from intervalnn import metrics
from intervalnn.evaluation.examples import curves_of, extremes, ranked_by, save_examples
from intervalnn.evaluation.records import Measured, Run


def whole(method: Leaning, batches: list[tuple[Tensor, Tensor]]) -> tuple[inn.Prediction, Tensor]:
    return inn.Prediction.cat([method.predict(x) for x, _ in batches]), torch.cat([y for _, y in batches])


def test_curves_are_those_of_all_samples_together() -> None:
    method, test = Leaning(), pairs(30)

    curves = curves_of(method, test, coverage=0.8)

    prediction, target = whole(method, test)
    levels = metrics.calibration_curve(prediction, target, coverage=0.8)
    directions = metrics.direction_curve(prediction, target)
    assert curves["calibration"]["shares"] == levels.shares.tolist()
    assert curves["direction"]["accuracy"][:3] == pytest.approx(directions.accuracy[:3].tolist())
    assert curves["sparsification"]["by_score"][0] == pytest.approx(1.0)
    assert 0 < curves["sparsification"]["area"] < 1 and "explanation" not in curves


def test_curves_are_plain_values_that_a_run_can_hold(tmp_path: Path) -> None:
    curves = curves_of(Leaning(), pairs(4))

    path = Run({}, 0.9, {}, settings={"curves": {"a": curves}}).save(tmp_path / "run.json")

    kept = Run.load(path).settings["curves"]["a"]
    assert json.dumps(kept) and kept["calibration"] == curves["calibration"]


def test_equal_gaps_have_no_direction() -> None:
    assert "direction" not in curves_of(inn.ConstantWidth(nn.Identity()), pairs(4))


def test_an_interval_network_is_explained_by_its_first_samples() -> None:
    torch.manual_seed(0)
    net = inn.IntervalNetwork(nn.Sequential(nn.Linear(24, 5), nn.ReLU(), nn.Linear(5, 24)), layers="all")
    net.set_gaps("2.weight", 0.1, 0.1)
    test = pairs(30)

    rows = curves_of(net, test)["explanation"]

    expected = net.explain(test[0][0][:8])
    assert [row["name"] for row in rows] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [row["width"] for row in rows] == pytest.approx([row.width for row in expected.rows])
    assert [row["share"] for row in rows] == [0.0, 0.0, 1.0, 0.0]


def test_an_empty_loader_is_refused() -> None:
    with pytest.raises(ValueError, match="the loader is empty"):
        curves_of(Leaning(), [])


def test_the_interval_score_at_equal_coverage_ranks_before_all_others() -> None:
    def of(*names: str) -> Run:
        return Run({"a": Measured({n: [1.0] for n in names}, 0, 0)}, 0.9, {n: "lower" for n in names if n != "own"})

    assert ranked_by(of("mae", "winkler", "winkler at equal coverage")) == "winkler at equal coverage"
    assert ranked_by(of("ssim", "mae")) == "mae"
    assert ranked_by(of("own", "ssim")) == "ssim"
    assert ranked_by(of("own")) is None


def test_extremes_are_those_of_the_best_method_without_the_undefined() -> None:
    values = {"a": [5.0, 9.0, 9.0, 9.0, 9.0, 9.0], "b": [3.0, math.nan, 1.0, 4.0, 2.0, 5.0]}
    methods = {name: Measured({"mae": each}, 0, 0) for name, each in values.items()}

    assert extremes(Run(methods, 0.9, {"mae": "lower"})) == [2, 4, 3, 5]
    assert extremes(Run(methods, 0.9, {"mae": "lower"}), count=5) == [2, 4, 0, 3, 5]
    assert extremes(Run({"b": methods["b"]}, 0.9, {"mae": "higher"}), count=1) == [5, 2]


def saved(folder: Path, method: Leaning, test: list[tuple[Tensor, Tensor]]) -> Path:
    return inn.evaluate({"a": method}, test).runs[0].save(folder / "run.json")


def test_examples_are_the_samples_of_their_numbers(tmp_path: Path) -> None:
    method, test = Leaning(), pairs(30)
    path = saved(tmp_path, method, test)

    written = save_examples(path, {"a": method}, test, count=3)

    prediction, target = whole(method, test)
    with np.load(written) as file:
        numbers = file["samples"]
        assert sorted(numbers.tolist()) == sorted(extremes(Run.load(path), count=3))
        np.testing.assert_array_equal(file["x"], torch.cat([x for x, _ in test])[numbers].numpy())
        np.testing.assert_array_equal(file["y"], target[numbers].numpy())
        for part in ("point", "below", "above", "score"):
            np.testing.assert_array_equal(file[f"a/{part}"], prediction[part][numbers].numpy())
    assert written == path.with_suffix(".npz") and {p.name for p in tmp_path.iterdir()} == {"run.json", "run.npz"}


def test_a_loader_in_another_order_or_of_other_samples_is_refused(tmp_path: Path) -> None:
    method, test = Leaning(), pairs(30)
    path = saved(tmp_path, method, test)

    with pytest.raises(ValueError, match="it shuffles; say shuffle=False"):
        save_examples(path, {"a": method}, DataLoader(TensorDataset(*test[0]), 5, shuffle=True))
    with pytest.raises(ValueError, match="must have the 30 samples of the run, got 15"):
        save_examples(path, {"a": method}, test[:1])
    assert not path.with_suffix(".npz").exists()


def test_complex_measurements_are_kept_as_magnitudes(tmp_path: Path) -> None:
    class OfMagnitude(Leaning):
        def predict(self, x: Tensor) -> inn.Prediction:
            return super().predict(x.abs())

    test = [(torch.complex(x, x), y) for x, y in pairs(6)]
    path = saved(tmp_path, OfMagnitude(), test)

    with np.load(save_examples(path, {"a": OfMagnitude()}, test)) as file:
        expected = torch.cat([x for x, _ in test])[file["samples"]].abs().numpy()
        np.testing.assert_allclose(file["x"], expected, rtol=1e-6)
