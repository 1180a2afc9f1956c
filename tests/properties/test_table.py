"""The table of rules: how rules get in, and what is said when one is missing."""

from __future__ import annotations

from collections.abc import Iterator

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
        inn.apply(aten.lgamma.default, Interval.of(torch.ones(1)))

    assert "no interval rule for aten.lgamma.default" in str(error.value)
    assert "intervalnn.rule(torch.ops.aten.lgamma.default)" in str(error.value)


class _Halved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return halve(self.layer(x))


def test_a_network_says_which_module_lacks_a_rule() -> None:
    net = inn.IntervalNetwork(_Halved().eval())

    with pytest.raises(inn.MissingRuleError, match=r"intervalnn_tests\.halve") as error:
        net(torch.ones(1, 2))

    assert "return halve(self.layer(x))" in str(error.value)


def test_a_custom_operation_with_a_rule_works_in_a_network() -> None:
    @inn.rule(torch.ops.intervalnn_tests.halve)
    def half(fn: object, x: Interval) -> Interval:
        return x.map(lambda part: part / 2)

    model = _Halved().eval()
    net = inn.IntervalNetwork(model)
    net.set_gaps("layer.bias", below=1.0, above=2.0)

    bounds = net(torch.ones(1, 2))

    assert torch.equal(bounds.point, model(torch.ones(1, 2)))
    assert torch.allclose(bounds.width, torch.tensor(1.5))
