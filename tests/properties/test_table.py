"""The table of rules: how rules get in, and what is said when one is missing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn
from intervalnn import Interval
from intervalnn.table import RULES, lookup

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def _same_table_afterwards() -> Iterator[None]:
    before = dict(RULES)
    yield
    RULES.clear()
    RULES.update(before)


@torch.library.custom_op("intervalnn_tests::halve", mutates_args=())
def halve(x: Tensor) -> Tensor:
    return x / 2


@halve.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_a_second_rule_for_an_operation_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"aten\.relu has a rule already; pass replace=True"):
        inn.rule(aten.relu)(lambda fn, x: x)


def test_a_rule_can_be_replaced_if_asked() -> None:
    x = Interval.of(torch.tensor([-1.0]))

    inn.rule(aten.relu, replace=True)(lambda fn, x: x)

    assert inn.apply(aten.relu.default, x) is x


@pytest.mark.parametrize("operation", [torch.relu, "relu", nn.ReLU()])
def test_a_rule_belongs_to_an_operation_and_to_nothing_else(operation: object) -> None:
    with pytest.raises(TypeError, match=r"torch\.ops\.aten\.relu"):
        inn.rule(operation)(lambda fn, x: x)  # type: ignore[arg-type]


def test_an_overload_has_its_own_rule_or_that_of_all() -> None:
    assert lookup(aten.max.dim) is RULES[aten.max.dim]
    assert lookup(aten.relu.default) is RULES[aten.relu]
    assert lookup(print) is None


def test_a_missing_rule_is_named_with_the_way_to_add_it() -> None:
    with pytest.raises(inn.MissingRuleError) as error:
        inn.apply(aten.special_bessel_j0.default, Interval.of(torch.ones(1)))

    assert "no interval rule for aten.special_bessel_j0.default" in str(error.value)
    assert "intervalnn.rule(torch.ops.aten.special_bessel_j0.default)" in str(error.value)


@torch.library.custom_op("intervalnn_tests::filled", mutates_args=())
def filled(like: Tensor, value: Tensor) -> Tensor:
    return torch.ones_like(like) * value


@filled.register_fake
def _(like: Tensor, value: Tensor) -> Tensor:
    return torch.empty_like(like)


class _Filled(nn.Module):
    def __init__(self, *, by_value: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.by_value = by_value

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        return filled(x, y.sum()) if self.by_value else filled(y, x.sum())


def test_what_reads_the_shape_of_one_argument_takes_no_interval_as_another() -> None:
    inn.table.plain(torch.ops.intervalnn_tests.filled, shape_of=(0,))

    bounds = inn.IntervalNetwork(_Filled(by_value=False).eval(), layers="all")(torch.ones(1, 2))
    with pytest.raises(inn.MissingRuleError, match=r"takes no interval as its argument 'value'"):
        inn.IntervalNetwork(_Filled(by_value=True).eval(), layers="all")(torch.ones(1, 2))

    assert torch.equal(bounds.point, torch.full((1, 2), 2.0))


class _Spaced(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.function = function

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        end = self.layer(x).sum()
        return self.function(0.0, end, 3), self.function(end, 1.0, 3), self.function(end, end + 1, 3)


@pytest.mark.parametrize("function", [torch.linspace, torch.logspace])
def test_values_spaced_between_intervals_are_intervals(function: Callable[..., Tensor]) -> None:
    model = _Spaced(function).eval()
    net = inn.IntervalNetwork(model, layers="all")
    net.set_gaps("layer.bias", below=0.5, above=0.5)
    x = torch.ones(1, 2)

    results = net(x)

    for shift in (-0.5, 0.0, 0.5):
        with torch.no_grad():
            moved = copy.deepcopy(model)
            moved.layer.bias += shift
            for bounds, value in zip(results, moved(x), strict=True):
                assert bounds.contains(value, atol=1e-5).all()


class _Halved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return halve(self.layer(x))


def test_a_network_says_which_module_lacks_a_rule() -> None:
    net = inn.IntervalNetwork(_Halved().eval(), layers="all")

    with pytest.raises(inn.MissingRuleError, match=r"intervalnn_tests\.halve") as error:
        net(torch.ones(1, 2))

    assert "return halve(self.layer(x))" in str(error.value)


def test_a_custom_operation_with_a_rule_works_in_a_network() -> None:
    @inn.rule(torch.ops.intervalnn_tests.halve)
    def half(fn: object, x: Interval) -> Interval:
        return x.map(lambda part: part / 2)

    model = _Halved().eval()
    net = inn.IntervalNetwork(model, layers="all")
    net.set_gaps("layer.bias", below=1.0, above=2.0)

    bounds = net(torch.ones(1, 2))

    assert torch.equal(bounds.point, model(torch.ones(1, 2)))
    assert torch.allclose(bounds.width, torch.tensor(1.5))
