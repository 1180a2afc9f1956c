"""Complex numbers: bounds that are reached, in single precision too, in networks, and refusals that name the line."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

import intervalnn as inn
from intervalnn import Interval
from intervalnn.table import COMPLEX, RULES, lookup
from properties.case import Case, intervals, is_interval
from properties.cases import CASES
from properties.checks import real_parts

aten = torch.ops.aten


def _boxes(size: float, count: int = 24) -> Interval:
    draw = torch.Generator().manual_seed(1)
    parts = [torch.rand(2, count, generator=draw, dtype=torch.float64) for _ in range(3)]
    return Interval(torch.complex(*(6 * parts[0] - 3)), *(size * torch.complex(*part) for part in parts[1:]))


def _grid(x: Interval, points: int = 201) -> Tensor:
    share = torch.linspace(0, 1, points, dtype=torch.float64)
    re, im = (lower[:, None] + share * width[:, None] for lower, width in (
        (x.lower.real, x.width.real), (x.lower.imag, x.width.imag)))  # fmt: skip
    return torch.complex(re[:, :, None].expand(-1, -1, points), im[:, None, :].expand(-1, points, -1)).flatten(1)


EXACT = (
    aten.exp, aten.expm1, aten.log, aten.log1p, aten.angle, aten.sgn, aten.sqrt, aten.sinh, aten.cosh, aten.sin,
    aten.cos, aten.tanh, aten.sigmoid, aten.tan, aten.reciprocal, aten.square, aten.abs, aten.asin, aten.acos,
    aten.atan, aten.asinh, aten.acosh, aten.atanh,
)  # fmt: skip


def _ratio(op: Any, x: Interval, *args: Any) -> Tensor:
    """Return how many times wider each part of the bounds is than what a grid reaches, where it is bounded."""
    bounds, values = inn.apply(op, x, *args), op(_grid(x), *args)
    reached = real_parts(values)
    lower, upper = reached.amin(1), reached.amax(1)
    slack = 1e-12 * (1 + reached.abs().amax(1))
    assert (real_parts(bounds.lower) <= lower + slack).all() and (real_parts(bounds.upper) >= upper - slack).all()
    ratio = real_parts(bounds.width) / (upper - lower)
    return ratio[ratio.isfinite()]


@pytest.mark.parametrize("size", [1e-3, 0.3, 2.0])
@pytest.mark.parametrize("op", EXACT, ids=str)
def test_the_bounds_of_an_elementary_function_are_reached_on_a_grid(op: Any, size: float) -> None:
    ratio = _ratio(op.default, _boxes(size))

    assert len(ratio) > 20
    assert ratio.quantile(0.9) < 1.01 and ratio.max() < 1.1  # the grid may miss a peak


# How much wider than what is reached bounds of powers may be, by the size of the box: the first order is exact.
POWERS = [(exponent, size, factor) for exponent in (3, -2, 0.3, 1j) for size, factor in ((1e-3, 1.01), (0.1, 1.25))]


@pytest.mark.parametrize(("exponent", "size", "factor"), POWERS)
def test_the_bounds_of_a_power_are_near_what_is_reached(exponent: complex, size: float, factor: float) -> None:
    assert _ratio(aten.pow.Tensor_Scalar, _boxes(size), exponent).median() < factor


def test_a_quotient_of_small_boxes_is_as_tight_as_its_first_order() -> None:
    x, y = _boxes(1e-5), _boxes(1e-5).map(lambda part: part.flip(0))
    draw = torch.Generator().manual_seed(0)
    shares = torch.rand(4000, 4, 24, generator=draw, dtype=torch.float64).round()

    bounds = inn.apply(aten.div.Tensor, x, y)
    ends = [
        torch.complex(
            torch.lerp(v.lower.real, v.upper.real, shares[:, k]),
            torch.lerp(v.lower.imag, v.upper.imag, shares[:, k + 1]),
        )
        for v, k in ((x, 0), (y, 2))
    ]
    reached = real_parts(ends[0] / ends[1])

    assert (real_parts(bounds.width) / (reached.amax(0) - reached.amin(0))).max() < 1.001


UNBOUNDED = [aten.logaddexp, aten.silu, aten.rms_norm, aten.logsumexp, aten.sinc, aten.mish]


@pytest.mark.parametrize("op", UNBOUNDED, ids=str)
def test_a_rule_for_real_numbers_refuses_complex_ones(op: Any) -> None:
    assert lookup(op.default) is RULES[op] and op not in COMPLEX

    with pytest.raises(
        inn.MissingRuleError, match=rf"{op}.default has an interval rule for real numbers only"
    ) as error:
        inn.apply(op.default, _boxes(0.1), *([_boxes(0.1)] if op is aten.logaddexp else []))

    assert "real and imaginary part" in str(error.value)


def test_a_real_interval_beside_a_complex_number_needs_a_rule_for_complex_ones() -> None:
    x = Interval.of(torch.ones(2))

    with pytest.raises(inn.MissingRuleError, match="real numbers only"):
        inn.apply(aten.logaddexp.default, x, torch.ones(2) * 1j)
    with pytest.raises(inn.MissingRuleError, match="real numbers only"):
        inn.apply(aten.softmax.int, x, 0, torch.complex64)


def test_a_rule_of_ones_own_may_take_complex_numbers_if_it_says_so() -> None:
    before = dict(RULES)
    try:
        inn.rule(aten.acos, replace=True, complexes=True)(lambda fn, x: x)

        assert inn.apply(aten.acos.default, _boxes(0.1)).dtype == torch.complex128
    finally:
        RULES.clear()
        RULES.update(before)


class _Angles(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.3 + 0.2j, 1.0 - 0.5j]))
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.weight * x)


def test_a_network_names_the_line_where_a_complex_number_is_refused() -> None:
    with pytest.raises(inn.MissingRuleError, match=r"real numbers only.*return self.function\(self.weight \* x\)"):
        inn.IntervalNetwork(_Angles(torch.sinc).eval(), layers="all")(torch.ones(2))


@pytest.mark.parametrize("function", [lambda z: z * z, torch.square, lambda z: z**2, lambda z: z.conj().imag])
def test_the_point_of_a_complex_network_is_the_models_own_bit_for_bit(function: Any) -> None:
    model, x = _Angles(function).eval(), torch.linspace(-2, 2, 1002).reshape(501, 2)
    net = inn.IntervalNetwork(model, layers="all")
    net.set_gaps("weight", 0.1, 0.1)

    bounds = net(x)

    assert torch.equal(bounds.point, model(x)) and bounds.width.real.amax() > 0


def test_the_conjugate_of_a_complex_network_has_ends() -> None:
    net = inn.IntervalNetwork(_Angles(torch.conj).eval(), layers="all")
    net.set_gaps("weight", 0.1, 0.2)

    bounds = net(torch.ones(2))

    assert torch.allclose(real_parts(bounds.lower), torch.tensor([[0.2, -0.4], [0.9, 0.3]]))
    assert torch.allclose(real_parts(bounds.upper), torch.tensor([[0.5, -0.1], [1.2, 0.6]]))


def test_an_end_that_is_infinite_in_one_part_stays_a_number_in_the_other() -> None:
    x = Interval(*(torch.tensor([v]) for v in (1 + 1j, complex(torch.inf, 1), complex(0, torch.inf))))

    assert x.lower[0] == complex(-torch.inf, 0) and x.upper[0] == complex(1, torch.inf)
    assert (x + x).lower[0] == complex(-torch.inf, 0)


def _is_complex(case: Case) -> bool:
    return any(x.dtype.is_complex for x in intervals(case.draw(0, "positive")))


def _narrow(args: Any) -> Any:
    def convert(x: Any) -> Any:
        if isinstance(x, Interval):
            return x.to(torch.complex64 if x.dtype.is_complex else torch.float32)
        if isinstance(x, Tensor) and (x.is_complex() or x.is_floating_point()):
            return x.to(torch.complex64 if x.is_complex() else torch.float32)
        return x

    return pytree.tree_map(convert, args, is_leaf=is_interval)


def _wide(args: Any) -> Any:
    def convert(x: Any) -> Any:
        if not isinstance(x, Interval | Tensor) or x.dtype in (torch.int64, torch.bool):
            return x
        return x.to(torch.complex128 if x.dtype.is_complex else torch.float64)

    return pytree.tree_map(convert, args, is_leaf=is_interval)


@pytest.mark.rotating
@pytest.mark.parametrize("case", [case for case in CASES if _is_complex(case)], ids=str)
def test_bounds_in_single_precision_contain_the_true_ones_up_to_the_margin(case: Case) -> None:
    """The margin is that of :mod:`properties.test_precision`."""
    for pattern in ("positive", "straddling", "tiny"):
        args = _narrow(case.draw(0, pattern))

        for low, high in zip(case.bounds(args), case.bounds(_wide(args)), strict=True):
            size = (real_parts(high.point).abs() + real_parts(high.width)).nan_to_num(0.0, 0.0, 0.0).amax()
            margin = 32 * torch.finfo(torch.float32).eps * (1 + size)
            for mine, theirs in ((low.below, high.below), (low.above, high.above)):
                missing = real_parts(theirs).double() - real_parts(mine).double()
                assert not (missing > margin).any(), f"{pattern}: {missing.max()} > {margin}"
