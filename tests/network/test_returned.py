"""What a model returns: any structure, whose tensors become bounds and predictions in the same places."""

from __future__ import annotations

import collections
import dataclasses
import types
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.calibration.groups import Groups

X = torch.linspace(-1.0, 2.0, 12).reshape(4, 3)


@dataclasses.dataclass
class Found:
    out: Any
    more: dict[str, Any]
    count: int = 3
    nothing: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Small:
    out: Tensor


class Plain:
    def __init__(self, out: Tensor) -> None:
        self.out = out


class Named(NamedTuple):
    first: Tensor
    second: Tensor


def local() -> type[Any]:
    @dataclasses.dataclass
    class Local:
        out: Tensor

    return Local


LOCAL = local()
RETURNED: dict[str, Any] = {
    "a dataclass": lambda y: Found(y, {"twice": 2 * y}),
    "nested": lambda y: [Found(Small(y), {"pair": (Named(y, 2 * y), None)}), {"plain": Plain(y + 1)}],
    "with slots": Small,
    "any object": Plain,
    "of a class without a name": LOCAL,
    "a namespace": lambda y: types.SimpleNamespace(out=y, text="a"),
    "a mapping of one's own": lambda y: collections.UserDict(out=y, index=y.argsort().detach() * 0),
    "one tensor twice": lambda y: Found(y, {"again": y}),
    "plain values": lambda y: (y, None, "text", 3, Path("a")),
}


class Returns(nn.Module):
    def __init__(self, form: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 2)
        self.form = form

    def forward(self, x: Tensor) -> Any:
        return self.form(self.layer(x))


def network(form: Any) -> inn.IntervalNetwork:
    net = inn.IntervalNetwork(Returns(form).eval(), layers="all")
    net.set_gaps("layer.weight", 0.1, 0.2)
    return net


def parts(value: Any) -> list[Any]:
    """Return tensors, intervals and predictions in a value, wherever they are."""
    if isinstance(value, Tensor | inn.Interval | inn.Prediction):
        return [value]
    if isinstance(value, dict | collections.UserDict):
        return [part for item in value.values() for part in parts(item)]
    if isinstance(value, list | tuple):
        return [part for item in value for part in parts(item)]
    if dataclasses.is_dataclass(value):
        return [part for field in dataclasses.fields(value) for part in parts(getattr(value, field.name))]
    return [part for item in getattr(value, "__dict__", {}).values() for part in parts(item)]


@pytest.mark.rotating
@pytest.mark.parametrize("case", [case for case in RETURNED if "mapping" not in case])
def test_bounds_stand_where_the_tensors_do(case: str) -> None:
    net = network(RETURNED[case])
    own, bounds, other = net.model(X), net(X), net(X[:2])

    assert type(bounds) is type(own)
    assert [torch.equal(b.point, t) for b, t in zip(parts(bounds), parts(own), strict=True)]
    assert all((b.width > 0).all() for b in parts(bounds))
    assert [len(b.point) for b in parts(other)] == [2] * len(parts(own))


def test_what_stands_beside_the_tensors_stays() -> None:
    found, text = network(RETURNED["a dataclass"])(X), network(RETURNED["a namespace"])(X).text

    assert (found.count, found.nothing, text) == (3, None, "a")


@pytest.mark.rotating
@pytest.mark.parametrize("case", [case for case in RETURNED if "mapping" not in case])
@pytest.mark.parametrize("batch_size", [None, 3])
def test_predictions_are_calibrated_wherever_they_stand(case: str, batch_size: int | None) -> None:
    net = network(RETURNED[case])
    net.calibration = inn.Calibration(
        torch.tensor([3.0]), [], level="component", coverage=0.9, delta=0.1, groups=Groups.of(None)
    )

    predictions = parts(net.predict(X, batch_size=batch_size))

    assert all(isinstance(p, inn.Prediction) for p in predictions)
    for p, bounds in zip(predictions, parts(net(X)), strict=True):
        assert torch.allclose(p.width, 3 * bounds.width)


def test_an_export_names_the_attributes_of_an_object(tmp_path: Path) -> None:
    net = network(RETURNED["nested"])
    file = tmp_path / "net.pt2"

    inn.export(net, X, file)

    loaded = torch.export.load(file).module()
    found = loaded(X)
    assert {name.removesuffix("_lower") for name in found if name.endswith("_lower")} == {
        "output_0_out_out", "output_0_more_pair_0_first", "output_0_more_pair_0_second", "output_1_plain_out",
    }  # fmt: skip
    np.testing.assert_allclose(found["output_1_plain_out_lower"], net(X)[1]["plain"].out.lower.detach(), rtol=1e-5)


def test_what_an_object_holds_beside_its_tensors_must_be_the_same_in_every_call() -> None:
    calls = iter(range(100))
    net = network(lambda y: Found(y, {}, count=next(calls)))

    with pytest.raises(ValueError, match="another structure around its tensors"):
        net(X)
