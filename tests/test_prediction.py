from __future__ import annotations

import pytest
import torch

from intervalnn import Prediction


@pytest.fixture
def p() -> Prediction:
    point = torch.arange(6.0).reshape(3, 2)
    return Prediction(point, point + 1, 2 * point, point + 2)


def test_named_access_and_mapping_access_give_the_same(p: Prediction) -> None:
    assert list(p) == ["point", "lower", "upper", "below", "above", "score", "direction"] and len(p) == 7
    for name, value in dict(p).items():
        assert torch.equal(value, getattr(p, name))


def test_an_unknown_name_is_refused_with_those_that_exist(p: Prediction) -> None:
    with pytest.raises(KeyError, match=r"has point, lower, upper.* not 'sigma'"):
        p["sigma"]


@pytest.mark.parametrize("index", [slice(1, 3), 2, [0, 2], torch.tensor([True, False, True])], ids=str)
def test_samples_are_picked_from_every_part(p: Prediction, index: object) -> None:
    picked = p[index]

    for name in p:
        assert torch.equal(picked[name], p[name][index])


def test_joining_slices_gives_back_the_whole(p: Prediction) -> None:
    whole = Prediction.cat([p[:1], p[1:]])

    assert all(torch.equal(whole[name], p[name]) for name in p)


def test_a_normal_density_gives_its_central_interval() -> None:
    p = Prediction.symmetric(torch.zeros(1, 1), torch.full((1, 1), 2.0), coverage=0.95)

    assert p.below.item() == p.above.item() == pytest.approx(2 * 1.959964, rel=1e-6)
    assert p.score.item() == p["deviation"].item() == 2.0
    assert p.to(torch.float64).deviation.dtype == torch.float64  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(3), torch.zeros(2, 3)), r"above must have shape \(2, 3\)"),
        ((torch.zeros(2), torch.zeros(2), torch.zeros(2), 1.0), "score of a Prediction must be a tensor, got a float"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts: tuple[object, ...], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Prediction(*parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("coverage", [0.0, 1.0, 90])
def test_coverage_must_be_a_share(coverage: float) -> None:
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
        Prediction.symmetric(torch.zeros(1), torch.ones(1), coverage=coverage)


def test_there_must_be_something_to_join() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Prediction.cat([])


def test_it_moves_to_another_device_whole() -> None:
    moved = Prediction.symmetric(torch.zeros(2, 1), torch.ones(2, 1), coverage=0.9).to("meta")

    assert {moved[name].device.type for name in moved} == {"meta"} and "deviation" in moved
