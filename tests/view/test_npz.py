"""Npz files: what was saved comes back bit for bit, and what is not whole or not plain is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from intervalnn.calibration.calibration import calibrate
from intervalnn.methods import ConstantWidth
from intervalnn.prediction import Prediction
from intervalnn.view import load_npz, save_npz
from view.made import prediction


def test_a_prediction_comes_back_bit_for_bit(tmp_path: Path) -> None:
    made, target = prediction((3, 1, 8, 9))

    path = save_npz(tmp_path / "new" / "p.npz", made, target=target, unit="HU", spacing=(3, 0.5, 0.25))

    record = load_npz(path)
    back = record.prediction()
    assert all(torch.equal(back[name], made[name]) for name in made)
    assert np.array_equal(record.target, target.numpy())
    assert (record.unit, record.spacing, record.dims, record.score_is_width) == ("HU", (0.5, 0.25), 2, True)


def test_a_score_of_its_own_and_a_deviation_come_back(tmp_path: Path) -> None:
    made = Prediction.symmetric(torch.zeros(2, 5), torch.rand(2, 5), coverage=0.9)

    record = load_npz(save_npz(tmp_path / "p", made))

    assert record.score is not None and torch.equal(record.prediction().score, made.score)
    assert made.deviation is not None and torch.equal(record.prediction()["deviation"], made.deviation)


def test_a_score_that_is_the_width_up_to_rounding_is_left_out(tmp_path: Path) -> None:
    made, target = prediction((20, 1, 8, 9))
    net = ConstantWidth(torch.nn.Identity())
    scaled = calibrate(net, [(made.point, target)], coverage=0.8)(made)
    assert not torch.equal(scaled.score, scaled.width)

    path = save_npz(tmp_path / "p.npz", scaled)

    with np.load(path) as file:
        assert sorted(file) == ["above", "below", "point"]
    torch.testing.assert_close(load_npz(path).prediction().score, scaled.score)


def test_the_promise_comes_back_and_old_files_have_none(tmp_path: Path) -> None:
    made, _ = prediction((2, 1, 8, 9))

    promised = load_npz(save_npz(tmp_path / "new.npz", made, promise="At most one in ten."))
    old = load_npz(save_npz(tmp_path / "old.npz", made))

    assert promised.promise == promised.cut(slice(1)).promise == "At most one in ten."
    assert old.promise == ""


def test_half_precision_is_stored_wide(tmp_path: Path) -> None:
    made = prediction((2, 1, 4, 4))[0].to(torch.bfloat16)

    record = load_npz(save_npz(tmp_path / "p.npz", made))

    assert record.point.dtype == np.float32
    assert torch.equal(record.prediction().point, made.point.float())


@pytest.mark.parametrize(
    ("shape", "dims"), [((7,), 1), ((3, 7), 1), ((3, 1, 7), 1), ((3, 4, 7), 2), ((3, 1, 4, 7), 2), ((1, 1, 2, 4, 7), 2)]
)
def test_the_shape_tells_signals_from_images(tmp_path: Path, shape: tuple[int, ...], dims: int) -> None:
    assert load_npz(save_npz(tmp_path / "p.npz", prediction(shape)[0])).dims == dims


def test_dims_and_unit_can_be_said(tmp_path: Path) -> None:
    path = save_npz(tmp_path / "p.npz", prediction((6, 7))[0], unit="HU", dims=2)

    assert load_npz(path).size == (6, 7) and load_npz(path).unit == "HU"
    assert load_npz(path, dims=1, unit="mm").size == (1, 7) and load_npz(path, unit="mm").unit == "mm"


def test_bounds_do_as_well_as_gaps(tmp_path: Path) -> None:
    made, _ = prediction((2, 4, 5))
    np.savez(tmp_path / "p.npz", point=made.point, lower=made.lower, upper=made.upper, score=made.score)

    record = load_npz(tmp_path / "p.npz")

    assert np.allclose(record.below, made.below, atol=1e-4) and record.score_is_width


def test_a_failed_save_leaves_what_was_there(tmp_path: Path) -> None:
    made, target = prediction((2, 4, 5))
    path = save_npz(tmp_path / "p.npz", made)
    before = path.read_bytes()

    with pytest.raises(ValueError, match=r"target of .* must have shape"):
        save_npz(path, made, target=target[0])

    assert path.read_bytes() == before and [file.name for file in tmp_path.iterdir()] == ["p.npz"]


class _Trap:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("sprung"),)


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("object.npz", point=np.array([_Trap()], dtype=object))
    Path("pickle.npz").write_bytes(pickle.dumps(_Trap()))

    for name in ("object.npz", "pickle.npz"):
        with pytest.raises(ValueError, match="no npz file of plain numbers"):
            load_npz(name)

    assert not Path("sprung").exists()


def test_other_files_are_refused_with_what_they_have(tmp_path: Path) -> None:
    np.savez(tmp_path / "img.npz", img=np.zeros(3), spacing_mm=np.ones(2))
    np.savez(tmp_path / "half.npz", point=np.zeros(3), lower=np.zeros(3))
    np.savez(tmp_path / "complex.npz", point=np.zeros(3) + 1j, lower=np.zeros(3), upper=np.zeros(3))
    whole = save_npz(tmp_path / "whole.npz", prediction((2, 40, 50))[0]).read_bytes()
    (tmp_path / "part.npz").write_bytes(whole[: len(whole) // 2])

    for name, message in {
        "img.npz": "must have an array named point.* it has img, spacing_mm",
        "half.npz": "must have lower and upper, or below and above.* it has point, lower",
        "complex.npz": "must hold real numbers, got complex128",
        "part.npz": "a part of one only",
    }.items():
        with pytest.raises(ValueError, match=message):
            load_npz(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_npz(tmp_path / "none.npz")
