"""How far apart a file and a network may be."""

from __future__ import annotations

import pytest
import torch

from intervalnn.prediction import Prediction
from intervalnn.saving.exporting.agreement import Allowed, agreement, deviations
from intervalnn.saving.exporting.example import Example
from saving.exporting.nets import linear, signal


def prediction(width: float = 1.0, point: float = 2.0) -> Prediction:
    gap = torch.full((3,), width / 2)
    return Prediction(torch.full((3,), point), gap, gap, 2 * gap)


def test_the_share_is_one_at_the_tolerance() -> None:
    want = prediction()
    allowed = 1e-2 * 1.0 + 1e-5 * 2.0
    got = {"upper": want.upper + torch.tensor([0.0, allowed, 0.0])}

    [(key, deviation, share)] = deviations(got, want, Allowed(1e-2))

    assert key == "upper"
    assert deviation == pytest.approx(allowed, rel=1e-4)
    assert share == pytest.approx(1, rel=1e-4)


def test_infinite_bounds_must_be_infinite_too_and_nan_counts_as_far_off() -> None:
    gap = torch.full((3,), torch.inf)
    want = Prediction(torch.ones(3), gap, gap, gap)

    shares = [
        next(deviations({"upper": upper}, want, Allowed(1e-2)))[2]
        for upper in (gap, torch.full((3,), 5.0), torch.full((3,), torch.nan))
    ]

    assert shares == [0, torch.inf, torch.inf]


def test_directions_are_compared_only_where_rounding_does_not_decide() -> None:
    point = torch.zeros(2)
    want = Prediction(point, torch.tensor([1.0, 1.0]), torch.tensor([1.0 + 1e-6, 2.0]), torch.full((2,), 2.0))

    flips = [torch.tensor([-1.0, 1.0]), torch.tensor([1.0, -1.0])]

    assert [next(deviations({"direction": flip}, want, Allowed(1e-4)))[1] for flip in flips] == [0, 2]


def test_undecided_components_are_left_out() -> None:
    want = prediction()
    got = {"lower": want.lower - torch.tensor([9.0, 0.0, 0.0])}

    [(_, _, share)] = deviations(got, want, Allowed(1e-4), undecided=torch.tensor([True, False, False]))

    assert share == 0


def test_another_shape_is_told() -> None:
    with pytest.raises(RuntimeError, match=r"point of shape \(2,\), not \(3,\)"):
        list(deviations({"point": torch.ones(2)}, prediction(), Allowed(1e-4)))


def test_a_file_whose_bounds_do_not_contain_its_point_is_refused_however_wide_they_are() -> None:
    net = linear()
    example = Example.of(net.model, signal(2, 3))
    p = net.predict(*example.tensors)
    found = {"point": p.point, "lower": p.point + torch.tensor([0.0, 1e-6]), "upper": p.upper}

    with pytest.raises(RuntimeError, match=r"returns 2 entries outside .*'input': \[2, 3\]"):
        agreement(lambda _: found, net, example, list(found), Allowed(1e9))


def test_a_file_that_does_not_run_is_refused_with_the_sizes() -> None:
    net = linear()

    def fails(_: object) -> dict[str, torch.Tensor]:
        raise ValueError("no kernel")

    with pytest.raises(RuntimeError, match=r"does not run for inputs {'input': \[2, 3\]}: no kernel"):
        agreement(fails, net, Example.of(net.model, signal(2, 3)), ["point"], Allowed(1e-4))


def test_coarse_data_types_are_allowed_some_of_their_roundings() -> None:
    assert Allowed.for_dtypes(1e-4, torch.float32, torch.float32) == Allowed(1e-4, 1e-5)

    mixed = Allowed.for_dtypes(1e-4, torch.float32, torch.bfloat16)

    assert mixed == Allowed(4 * 2**-7, 1e-5)
    assert Allowed.for_dtypes(1e-4, torch.float16, torch.float16) == Allowed(4 * 2**-10, 4 * 2**-10)
