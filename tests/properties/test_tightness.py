"""Bounds are as tight as they are called: exact ones are attained, others stay within a stated factor."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import intervalnn as inn
from intervalnn import Interval
from intervalnn.rules.products.layers import layer, prepare_layer
from properties.case import (
    Case,
    at,
    attacks,
    complexes,
    intervals,
    plain,
    real,
    regular,
    samples,
    with_intervals,
    within,
)
from properties.cases.normalization import ATTENTION
from properties.checks import real_parts

aten = torch.ops.aten


def _corners(args: Any) -> list[Any]:
    xs = intervals(args)
    sizes = [x.numel() * (2 if x.dtype.is_complex else 1) for x in xs]
    shapes = [(*x.shape, 2) if x.dtype.is_complex else x.shape for x in xs]
    bits = torch.tensor(list(itertools.product((0.0, 1.0), repeat=sum(sizes))), dtype=torch.float64)
    return [
        with_intervals(args, [at(x, s.reshape(n)) for x, s, n in zip(xs, row.split(sizes), shapes, strict=True)])
        for row in bits
    ]


def _reached(case: Case, tried: list[Any]) -> tuple[Tensor, Tensor]:
    values = torch.stack([real_parts(case.plain(values)[0].detach()) for values in tried])
    return values.amin(0), values.amax(0)


def _excess(case: Case, args: Any, tried: list[Any]) -> float:
    """Return the mean width of the bounds over the width that was reached."""
    (bound,) = case.bounds(args)
    lower, upper = _reached(case, tried)
    return float(real_parts(bound.width).mean() / (upper - lower).mean())


AT_CORNERS = [
    Case(aten.linear.default, real(2, 3), plain(real(2, 3)), plain(real(2))),
    Case(aten.linear.default, plain(real(2, 3)), real(2, 3), real(2)),
    Case(aten.conv1d.default, real(1, 2, 4), plain(real(2, 1, 2)), None, [1], [1], [1], 2),
    Case(aten.conv1d.default, plain(real(1, 2, 4)), real(2, 1, 2), real(2), [1], [1], [1], 2),
    Case(aten.conv_transpose1d.default, real(1, 2, 3), plain(real(2, 2, 2)), None, [2]),
    Case(aten.conv_transpose1d.default, plain(real(1, 2, 3)), real(2, 2, 2)),
    Case(aten.mm.default, real(2, 3), plain(real(3, 2))),
    Case(aten.mm.default, plain(real(2, 3)), real(3, 2)),
    Case(aten.bilinear.default, real(1, 2), plain(real(1, 3)), plain(real(2, 2, 3))),
    Case(aten.bilinear.default, plain(real(1, 2)), plain(real(1, 2)), real(2, 2, 2), real(2)),
    Case(aten.mul.Tensor, real(3), real(3)),
    Case(aten.prod.default, real(5)),
    Case(aten.add.Tensor, real(3), real(3), alpha=-2),
    Case(aten.div.Tensor, real(3), real(3)),
    Case(aten.softmax.int, real(5), 0),
    Case(aten.log_softmax.int, real(5), 0),
    Case(aten.logsumexp.default, real(5), [0]),
    Case(aten.max_pool1d.default, real(1, 1, 6), [2]),
    Case(aten.avg_pool1d.default, real(1, 1, 6), [3]),
    Case(aten.sort.default, real(5)),
    Case(aten.upsample_bicubic2d.default, real(1, 1, 2, 3), [3, 4], False),
    Case(aten._fft_r2c.default, real(6), [0], 0, True),
    Case(aten._fft_c2c.default, complexes(4), [0], 1, True),
    Case(aten._fft_c2r.default, complexes(3), [0], 2, 4),
    *[
        Case(op, real(3))
        for op in (aten.relu.default, aten.tanh.default, aten.sigmoid.default, aten.exp.default, aten.elu.default)
    ],
]


@pytest.mark.parametrize("case", AT_CORNERS, ids=str)
@pytest.mark.parametrize("pattern", ["positive", "straddling", "some gaps"])
def test_an_exact_rule_reaches_its_bounds_at_a_corner(case: Case, pattern: str) -> None:
    args = case.draw(3, pattern)

    bound = case.bounds(args)[0]
    lower, upper = _reached(case, _corners(args))

    for end, reached in ((bound.lower, lower), (bound.upper, upper)):
        end = real_parts(end)
        finite = end.isfinite()
        assert torch.allclose(end[finite], reached[finite], rtol=1e-9, atol=1e-9)


WITH_EXTREMA = [
    *[
        Case(getattr(aten, name).default, real(4))
        for name in ("abs", "square", "gelu", "silu", "mish", "hardswish", "cosh", "sin", "cos", "softplus", "sign")
    ],
    *[Case(getattr(aten, name).default, real(4)) for name in ("i0", "special_i0e", "special_i1e", "special_i1")],
    Case(aten.gelu.default, real(4), approximate="tanh"),
    *[Case(aten.pow.Tensor_Scalar, real(4), exponent) for exponent in (2, 3, 4)],
    *[Case(aten.leaky_relu.default, real(4), slope) for slope in (0.1, -0.5)],
    Case(aten.elu.default, real(4), -0.5),
    Case(aten.threshold.default, real(4), 0.1, 2.0),
    Case(aten.remainder.Scalar, real(4), 50.0),
]


@pytest.mark.parametrize("case", WITH_EXTREMA, ids=str)
@pytest.mark.parametrize("pattern", ["positive", "negative", "straddling", "large"])
def test_a_function_of_one_value_reaches_its_bounds_on_a_grid(case: Case, pattern: str) -> None:
    (x,) = intervals(case.draw(0, pattern))
    grid = torch.linspace(0, 1, 20001, dtype=torch.float64)[:, None].expand(-1, 4)
    values = torch.lerp(x.lower.expand_as(grid), x.upper.expand_as(grid), grid)

    (bound,) = case.bounds((x, *case.args[1:]))
    reached = case.op(values, *case.args[1:], **case.kwargs)

    step = x.width / 20000
    slope = 1 + (reached[1:] - reached[:-1]).abs().amax(0) / step
    slack = slope.clamp(max=1e5) * step
    assert (bound.upper - reached.amax(0) <= slack).all()
    assert (reached.amin(0) - bound.lower <= slack).all()


def test_a_root_mean_square_norm_reaches_its_bounds() -> None:
    x = Case(aten.rms_norm.default, real(1, 4), [4]).draw(1, "straddling")[0]
    ends = torch.stack([x.lower, x.upper, torch.zeros_like(x.point).clamp(x.lower, x.upper)])
    choices = torch.tensor(list(itertools.product(range(3), repeat=4)))

    bound = inn.apply(aten.rms_norm.default, x, [4], None, 1e-5)
    reached = F.rms_norm(ends[:, 0].gather(0, choices), [4], None, 1e-5)

    assert torch.allclose(bound.upper[0], reached.amax(0), rtol=1e-9)
    assert torch.allclose(bound.lower[0], reached.amin(0), rtol=1e-9)


def _products(x: Interval, w: Interval) -> tuple[Tensor, Tensor]:
    """Return the exact ends of ``x @ w.T``, product by product."""
    corners = torch.stack([a.unsqueeze(-2) * b for a in (x.lower, x.upper) for b in (w.lower, w.upper)])
    return corners.amin(0).sum(-1), corners.amax(0).sum(-1)


def _linear(x: Interval, w: Interval, **form: Any) -> Interval:
    fn = aten.linear.default
    return layer(fn, x, prepare_layer(fn, x, w, None, **form))


@pytest.mark.parametrize("gap", [0.01, 0.3, 3.0])
def test_the_exact_form_is_exact_for_inputs_that_are_not_negative(gap: float) -> None:
    x, w = (real(4, 32).draw(torch.Generator().manual_seed(0), "positive"), real(8, 32).draw(torch.Generator(), "tiny"))
    w = Interval(w.point, gap * torch.rand_like(w.point), gap * torch.rand_like(w.point))

    bounds = _linear(x, w, exact=True, nonneg=True)
    lower, upper = _products(x, w)

    assert torch.allclose(bounds.lower, lower, rtol=1e-12)
    assert torch.allclose(bounds.upper, upper, rtol=1e-12)


# How much wider than exact each form may be, by the relative gaps of weights and inputs; BOUNDS.md, section 4.3.
FORMS = [
    ("default, not negative", 0.01, True, False, 1.006),
    ("default, not negative", 0.3, True, False, 1.13),
    ("default, not negative", 1.0, True, False, 1.25),
    ("default", 0.01, False, False, 1.005),
    ("default", 0.3, False, False, 1.10),
    ("default", 1.0, False, False, 1.27),
    ("exact", 0.3, False, True, 1.005),
    ("exact", 1.0, False, True, 1.07),
]


@pytest.mark.parametrize(("name", "gap", "nonneg", "exact", "factor"), FORMS)
def test_each_form_of_a_product_stays_near_the_exact_width(
    name: str, gap: float, nonneg: bool, exact: bool, factor: float
) -> None:
    random = torch.Generator().manual_seed(0)
    c, w = (torch.randn(shape, generator=random, dtype=torch.float64) for shape in ((8, 512), (8, 512)))
    c = c.abs() if nonneg else c
    x, w = (
        Interval(v, *(gap * v.abs() * torch.rand(v.shape, generator=random, dtype=torch.float64) for _ in range(2)))
        for v in (c, w)
    )

    bounds = _linear(x, w, exact=exact, nonneg=nonneg)
    lower, upper = _products(x, w)

    ratio = bounds.width.mean() / (upper - lower).mean()
    assert 1 - 1e-12 <= ratio <= factor


# n, radius in units of the spread, and BOUNDS.md's mean gap above: closed form, and what an attack attains.
LAYER_NORMS = [(64, 0.01, 0.0141), (64, 0.2, 0.277), (64, 1.0, 2.50), (512, 0.05, 0.0664), (16, 1.0, 1.95)]


@pytest.mark.parametrize(("n", "radius", "closed_form"), LAYER_NORMS)
def test_a_layer_norm_is_at_least_as_tight_as_the_closed_form(n: int, radius: float, closed_form: float) -> None:
    random = torch.Generator().manual_seed(0)
    c, r = (draw((64, n), generator=random, dtype=torch.float64) for draw in (torch.randn, torch.rand))

    bounds = inn.apply(aten.layer_norm.default, Interval(c, radius * r, radius * r), [n])

    assert bounds.above.mean() <= closed_form


WITHIN = [
    (Case(aten.layer_norm.default, real(1, 8), [8]), "tiny", 1.6),
    (Case(aten.layer_norm.default, real(1, 8), [8], real(8), real(8)), "tiny", 1.4),
    (Case(aten.group_norm.default, real(1, 4, 3), 2), "tiny", 1.6),
    (Case(aten.var.correction, real(1, 6), [1]), "tiny", 1.001),
    (Case(aten.linear.default, real(2, 4), real(3, 4), real(3)), "tiny", 1.001),
    (Case(aten.bilinear.default, real(2, 2), real(2, 3), real(3, 2, 3), real(3)), "tiny", 1.001),
    (Case(aten._fft_r2c.default, real(3, 4), [0, 1], 0, True), "straddling", 1.3),
    (Case(aten._fft_c2c.default, complexes(2, 3), [0, 1], 0, True), "straddling", 1.3),
    (Case(aten.linalg_solve.default, regular(3, 3), regular(3, 3)), "tiny", 1.001),
    (Case(aten.linalg_solve.default, regular(3, 3), regular(3, 3)), "positive", 1.1),
    (Case(aten.linalg_inv.default, regular(3, 3)), "straddling", 1.3),
    (Case(aten.linalg_det.default, regular(3, 3)), "positive", 1.1),
    (Case(aten.linalg_matrix_exp.default, within(-1.0, 1.0, 3, 3)), "tiny", 1.2),
    (Case(aten.linalg_matrix_exp.default, within(-1.0, 1.0, 3, 3)), "positive", 2.0),
    (ATTENTION[0], "tiny", 2.0),
    (ATTENTION[1], "tiny", 1.7),
    (ATTENTION[3], "straddling", 1.001),
]


@pytest.mark.parametrize(("case", "pattern", "factor"), WITHIN, ids=str)
def test_a_rule_that_is_not_exact_stays_within_a_factor_of_an_attack(case: Case, pattern: str, factor: float) -> None:
    args = case.draw(0, pattern)

    tried = [*samples(args, 0), *attacks(case, args, 0, components=120)]

    assert _excess(case, args, tried) <= factor
