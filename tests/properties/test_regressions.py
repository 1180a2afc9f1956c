"""Faults that other libraries had, and ours; and oracles that share no code with the rules."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import intervalnn as inn
from intervalnn import Interval
from intervalnn.rules.products.layers import layer, prepare_layer
from properties.case import real

aten = torch.ops.aten


def _interval(lower: list[float], upper: list[float], dtype: torch.dtype = torch.float64) -> Interval:
    low, high = torch.tensor(lower, dtype=dtype), torch.tensor(upper, dtype=dtype)
    point = (low + high) / 2
    return Interval(point, point - low, high - point)


# --- faults found in other libraries: BOUNDS.md, sections 6 and 7 ---


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_softmax_does_not_cancel(dtype: torch.dtype) -> None:
    logits = _interval([0.0, 0.0], [17.0, 0.0], dtype)

    bounds = inn.apply(aten.softmax.int, logits, 0)

    eps = torch.finfo(dtype).eps
    assert bounds.lower[0] <= 0.5 * (1 + 4 * eps) and bounds.upper[1] >= 0.5 * (1 - 4 * eps)
    assert bounds.upper[0] >= 1 / (1 + math.exp(-17)) * (1 - 4 * eps)


def test_a_perturbed_convolution_bias_is_not_ignored() -> None:
    x, w, bias = torch.ones(1, 1, 3), torch.ones(2, 1, 1), Interval.of(torch.zeros(2))
    bias = Interval(bias.point, torch.full((2,), 0.01), torch.full((2,), 0.01))

    bounds = inn.apply(aten.conv1d.default, x, w, bias)

    assert torch.allclose(bounds.width, torch.tensor(0.02))


def test_the_upper_bound_of_a_first_layer_has_the_upper_bias() -> None:
    x, w = torch.ones(1, 2), Interval.of(torch.ones(1, 2))
    bias = Interval(torch.zeros(1), below=torch.tensor([1.0]), above=torch.tensor([5.0]))

    bounds = inn.apply(aten.linear.default, x, w, bias)

    assert (bounds.lower.item(), bounds.upper.item()) == (1.0, 7.0)


@pytest.mark.parametrize("op", [aten.square.default, aten.abs.default])
def test_a_square_across_zero_starts_at_zero(op: torch._ops.OpOverload) -> None:
    bounds = inn.apply(op, _interval([-1.0, -3.0], [3.0, 1.0]))

    assert bounds.lower.tolist() == [0.0, 0.0]
    assert (bounds.upper >= 3).all()


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0)])
def test_a_divisor_that_may_be_zero_leaves_no_bounds(ends: tuple[float, float]) -> None:
    divisor = _interval([ends[0]], [ends[1]])

    quotient, inverse = 1.0 / divisor, inn.apply(aten.div.Tensor, torch.ones(1).double(), divisor)

    for bounds in (quotient, inverse):
        assert bounds.below.isinf().all() and bounds.above.isinf().all()


# --- faults of our own, now mended ---


def test_a_mask_of_booleans_multiplies_an_interval() -> None:
    x = _interval([1.0, 1.0], [2.0, 2.0])

    bounds = x * torch.tensor([True, False])

    assert bounds.width.tolist() == [1.0, 0.0]


def test_an_interval_divided_by_the_number_zero_has_no_bounds() -> None:
    bounds = _interval([1.0], [2.0]) / 0.0

    assert bounds.point.isinf().all() and not bounds.width.isfinite().any()


def test_the_first_gradient_of_a_product_is_not_shared_out_among_its_corners() -> None:
    below, above = (torch.zeros(1, requires_grad=True) for _ in range(2))
    x, y = Interval(torch.tensor([3.0]), below, above), Interval.of(torch.tensor([2.0]))

    (x * y).above.sum().backward()

    assert above.grad is not None and above.grad.item() == 2.0
    assert below.grad is None or below.grad.item() == 0.0


@pytest.mark.parametrize("op", [aten.abs.default, aten.square.default, aten.reciprocal.default, aten.silu.default])
def test_the_first_gradient_does_not_vanish(op: torch._ops.OpOverload) -> None:
    above = torch.zeros(1, requires_grad=True)

    inn.apply(op, Interval(torch.tensor([2.0]), torch.zeros(1), above)).width.sum().backward()

    slope = torch.func.grad(lambda x: op(x))(torch.tensor(2.0))
    assert above.grad is not None and above.grad.item() == pytest.approx(abs(slope.item()), rel=1e-6)


def test_a_dead_unit_has_no_gradient_below() -> None:
    below = torch.zeros(1, requires_grad=True)

    inn.apply(aten.relu.default, Interval(torch.tensor([-1.0]), below, torch.zeros(1))).below.sum().backward()

    assert below.grad is not None and below.grad.item() == 0.0


def test_the_gradient_of_causal_attention_is_a_number() -> None:
    q, k, v = (torch.randn(1, 3, 2, generator=torch.Generator().manual_seed(s)) for s in range(3))
    gap = torch.zeros(1, 3, 2, requires_grad=True)

    bounds = inn.apply(
        aten.scaled_dot_product_attention.default, Interval(q, gap, gap), Interval(k, gap, gap), v, None, 0.0, True
    )
    bounds.width.sum().backward()

    assert gap.grad is not None and gap.grad.isfinite().all() and (gap.grad != 0).any()


def test_a_row_that_is_masked_whole_attends_to_nothing() -> None:
    q, k, v = (real(1, 2, 2).draw(torch.Generator().manual_seed(s), "straddling") for s in range(3))
    mask = torch.tensor([[True, True], [False, False]])

    bounds = inn.apply(aten.scaled_dot_product_attention.default, q, k, v, mask)

    assert (bounds.point[0, 1] == 0).all() and (bounds.width[0, 1] == 0).all()


@pytest.mark.parametrize("exponent", [-1, -2, -3, -5])
def test_a_negative_power_does_not_magnify_rounding(exponent: int) -> None:
    x = Interval(*(torch.tensor([value], dtype=torch.float64) for value in (2.0, 1.99, 0.5)))

    bounds = x**exponent

    assert torch.allclose(bounds.upper, x.lower**exponent, rtol=1e-14)
    assert torch.allclose(bounds.lower, x.upper**exponent, atol=1e-14 * bounds.above.item())


@pytest.mark.parametrize("order", [-1.0, -2.0, -math.inf])
def test_norms_of_negative_order_rise_with_their_entries(order: float) -> None:
    bounds = inn.apply(aten.linalg_vector_norm.default, _interval([1.0, 2.0], [3.0, 4.0]), order)

    for ends in ([1.0, 2.0], [3.0, 4.0]):
        value = torch.linalg.vector_norm(torch.tensor(ends).double(), order)
        assert bounds.contains(value, atol=1e-12)


def test_a_cross_product_is_taken_along_the_first_dimension_of_three() -> None:
    x, y = (torch.randn(3, 3, generator=torch.Generator().manual_seed(s)) for s in range(2))

    bounds = inn.apply(aten.cross.default, Interval.of(x), y)

    assert torch.equal(bounds.point, torch.cross(x, y, dim=0))


@pytest.mark.parametrize("form", [{}, {"exact": True}, {"nonneg": True}], ids=str)
def test_a_linear_layer_may_have_a_vector_for_its_weight(form: dict[str, bool]) -> None:
    random = torch.Generator().manual_seed(0)
    x, w = real(2, 3).draw(random, "positive"), real(3).draw(random, "straddling")
    fn = aten.linear.default

    bounds = layer(fn, x, prepare_layer(fn, x, w, None, **form))

    for a, b in itertools.product((x.lower, x.upper), (w.lower, w.upper)):
        assert bounds.contains(fn(a, b), atol=1e-12).all()


def test_a_model_with_an_embedding_bag_can_be_trained() -> None:
    net = inn.IntervalNetwork(nn.EmbeddingBag(4, 2).eval(), layers="all")

    net(torch.tensor([[0, 1], [2, 3]])).width.sum().backward()

    assert all(gap.grad is not None and (gap.grad > 0).all() for gap in net.parameters())


# --- oracles ---


def _exactly(x: Tensor) -> list[Fraction]:
    return [Fraction(value) for value in x.flatten().tolist()]


def _ends(x: Interval) -> list[tuple[Fraction, Fraction]]:
    """Return the ends as the rule sees them: the point with its gaps, added without rounding."""
    parts = (_exactly(part) for part in (x.point, x.below, x.above))
    return [(c - b, c + a) for c, b, a in zip(*parts, strict=True)]


def _product(x: tuple[Fraction, Fraction], y: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def _sum(terms: list[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
    return sum((t[0] for t in terms), Fraction(0)), sum((t[1] for t in terms), Fraction(0))


def _assert_near(bounds: Interval, true: list[tuple[Fraction, Fraction]], *, exact: bool) -> None:
    for (lower, upper), (low, high) in zip(_ends(bounds), true, strict=True):
        slack = Fraction(1, 10**14) * (1 + abs(low) + abs(high))
        assert lower <= low + slack and upper >= high - slack
        if exact:
            assert lower >= low - slack and upper <= high + slack


@pytest.mark.parametrize("pattern", ["positive", "negative", "straddling", "some gaps", "tiny", "large"])
def test_sums_products_and_pools_agree_with_exact_rationals(pattern: str) -> None:
    random = torch.Generator().manual_seed(7)
    x, y = (real(4).draw(random, pattern) for _ in range(2))
    w, bias = real(2, 4).draw(random, pattern), real(2).draw(random, pattern)
    xs, ys, bs = _ends(x), _ends(y), _ends(bias)
    rows = [_ends(Interval(w.point[i], w.below[i], w.above[i])) for i in range(2)]
    points = [[(c, c) for c in _exactly(w.point[i])] for i in range(2)]

    total, product, pool = x + y, x * y, inn.apply(aten.avg_pool1d.default, x.map(lambda p: p[None]), [2])
    highest = inn.apply(aten.max_pool1d.default, x.map(lambda p: p[None]), [2])
    by_points, by_intervals = (inn.apply(aten.linear.default, x, weight, bias) for weight in (w.point, w))

    _assert_near(total, [_sum(list(pair)) for pair in zip(xs, ys, strict=True)], exact=True)
    _assert_near(product, [_product(*pair) for pair in zip(xs, ys, strict=True)], exact=True)
    halves = [(xs[i], xs[i + 1]) for i in (0, 2)]
    _assert_near(pool, [tuple(end / 2 for end in _sum(list(pair))) for pair in halves], exact=True)  # type: ignore[misc]
    _assert_near(highest, [(max(a[0], b[0]), max(a[1], b[1])) for a, b in halves], exact=True)
    for bounds, weights, exact in ((by_points, points, True), (by_intervals, rows, False)):
        true = [_sum([*map(_product, row, xs), b]) for row, b in zip(weights, bs, strict=True)]
        _assert_near(bounds, true, exact=exact)


ORACLES = {
    "exp": (aten.exp.default, mpmath.iv.exp),
    "log": (aten.log.default, mpmath.iv.log),
    "sqrt": (aten.sqrt.default, mpmath.iv.sqrt),
    "sin": (aten.sin.default, mpmath.iv.sin),
    "cos": (aten.cos.default, mpmath.iv.cos),
    "square": (aten.square.default, lambda x: x**2),
    "cube": (None, lambda x: x**3),
    "reciprocal": (aten.reciprocal.default, lambda x: 1 / x),
    "sigmoid": (aten.sigmoid.default, lambda x: 1 / (1 + mpmath.iv.exp(-x))),
    "tanh": (aten.tanh.default, lambda x: 1 - 2 / (mpmath.iv.exp(2 * x) + 1)),
    "softplus": (aten.softplus.default, lambda x: mpmath.iv.log(1 + mpmath.iv.exp(x))),
    "cosh": (aten.cosh.default, lambda x: (mpmath.iv.exp(abs(x)) + mpmath.iv.exp(-abs(x))) / 2),
}
LOOSE = {"cosh"}  # where the oracle itself counts its argument twice


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("pattern", ["positive", "straddling", "tiny"])
def test_functions_agree_with_rigorous_interval_arithmetic(name: str, pattern: str) -> None:
    op, oracle = ORACLES[name]
    x = real(8).draw(torch.Generator().manual_seed(3), "positive" if name in ("log", "sqrt", "reciprocal") else pattern)

    bounds = x**3 if op is None else inn.apply(op, x)

    for i, (low, high) in enumerate(zip(x.lower.tolist(), x.upper.tolist(), strict=True)):
        true = oracle(mpmath.iv.mpf([low, high]))
        slack = 1e-12 * (1 + abs(float(true.b)))
        assert bounds.lower[i] <= float(true.a) + slack or name in LOOSE
        assert bounds.upper[i] >= float(true.b) - slack or name in LOOSE
        assert bounds.lower[i] >= float(true.a) - slack and bounds.upper[i] <= float(true.b) + slack


# --- half precision: numbers that are ordinary, and whose squares are not ---


def test_a_quotient_keeps_its_gaps_where_a_square_would_be_too_large_or_too_small() -> None:
    large = Interval(*(torch.tensor([value], dtype=torch.float16) for value in (400.0, 100.0, 100.0)))
    small = Interval(*(torch.tensor([value], dtype=torch.float16) for value in (4.3e-4, 3.4e-4, 3.4e-4)))

    for divisor in (large, small):
        bounds = inn.apply(aten.div.Tensor, torch.ones(1, dtype=torch.float16), divisor)

        assert bounds.lower.item() <= 1.002 / divisor.upper.item()
        assert bounds.upper.item() >= 0.998 / divisor.lower.item()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "norm",
    [
        nn.LayerNorm(8, elementwise_affine=False),
        nn.LayerNorm(8),
        nn.RMSNorm(8),
        nn.Sequential(nn.Unflatten(1, (4, 2)), nn.GroupNorm(2, 4)),
        nn.Sequential(nn.Unflatten(1, (2, 4)), nn.InstanceNorm1d(2)),
    ],
    ids=lambda norm: type(norm[-1] if isinstance(norm, nn.Sequential) else norm).__name__,
)
def test_norms_keep_their_gaps_in_half_precision(norm: nn.Module, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), norm).to(dtype).eval()
    net = inn.IntervalNetwork(model, ["0.bias"])
    net.set_gaps("0.bias", 50.0, 50.0)
    x = (200 * torch.randn(16, 8)).to(dtype)

    bounds, outside = net.predict(x), torch.zeros((), dtype=torch.int64)

    with torch.no_grad():
        for _ in range(100):
            moved = (model[0].bias + 49 * (2 * torch.rand(8, dtype=torch.float64) - 1)).to(dtype)
            y = torch.func.functional_call(model, {"0.bias": moved}, (x,))
            slack = 4 * torch.finfo(dtype).eps * (1 + y.abs())
            outside += ((y < bounds.lower - slack) | (y > bounds.upper + slack)).sum()
    assert int(outside) == 0 and (bounds.width > 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_root_mean_square_norm_takes_torchs_epsilon_in_half_precision(dtype: torch.dtype) -> None:
    """Torch takes that of float32, beside which small squares still count."""
    point = torch.tensor([[0.01, -0.02, 0.03, 0.01]], dtype=dtype)
    x = Interval(point, 0.2 * point.abs(), 0.2 * point.abs())

    bounds = inn.apply(aten.rms_norm.default, x, [4])

    for signs in itertools.product((-0.2, 0.2), repeat=4):
        moved = (point * (1 + torch.tensor(signs, dtype=dtype))).clamp(x.lower, x.upper)
        value = aten.rms_norm.default(moved, [4])
        slack = 8 * torch.finfo(dtype).eps * value.abs()
        assert (bounds.lower <= value + slack).all() and (value - slack <= bounds.upper).all()


@pytest.mark.parametrize("eps", [1e-5, 1e-7])
def test_a_channel_without_variance_keeps_its_gaps_in_half_precision(eps: float) -> None:
    norm = nn.BatchNorm1d(1, eps=eps).half().eval()
    norm.running_var.zero_()
    x = Interval.of(torch.tensor([[0.01]], dtype=torch.float16))
    x = Interval(x.point, x.point / 8, x.point / 8)

    bounds = inn.IntervalNetwork(norm, layers=[])(x)

    assert (norm(x.upper.half()) <= (1 + 4 * torch.finfo(torch.float16).eps) * bounds.upper).all()
    assert bounds.upper.isfinite().all()


def test_a_softplus_may_have_any_threshold() -> None:
    x = _interval([-1.0, 500.0], [2.0, 600.0])

    bounds = inn.apply(aten.softplus.default, x, 1.0, 1000.0)

    torch.testing.assert_close(bounds.upper, aten.softplus.default(x.upper, 1.0, 1000.0))


def test_a_group_norm_takes_an_empty_batch() -> None:
    model = nn.Sequential(nn.Conv1d(1, 4, 1), nn.GroupNorm(2, 4)).eval()

    assert inn.IntervalNetwork(model, layers="all")(torch.ones(0, 1, 5)).shape == (0, 4, 5)


class Weighted(nn.Module):
    """A function of one weight and an input."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], weight: Tensor) -> None:
        super().__init__()
        self.function, self.w = function, nn.Parameter(weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.w, x)


def _assert_inside(
    function: Callable[[Tensor, Tensor], Tensor], weight: Tensor, below: float, above: float, x: Tensor, **form: Any
) -> None:
    """Check the model at both ends of its weight, which has the same gaps everywhere."""
    net = inn.IntervalNetwork(Weighted(function, weight).eval(), **({"layers": "all"} | form))
    net.set_gaps("w", below, above)
    bounds = net(x).detach()
    eps = torch.finfo(bounds.gap_dtype).eps
    interval = net.weight_intervals()["w"].detach()
    for end in (interval.lower, interval.point, interval.upper):
        value = function(end, x)
        slack = 4 * eps * bounds.width + 1e-6 * value.abs()
        assert ((bounds.lower - slack <= value) & (value <= bounds.upper + slack)).all()


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize(
    ("function", "x"),
    [
        (
            lambda x: F.grid_sample(
                F.relu(x), torch.tensor([[[[-0.25, 0.0]]]]), mode="bicubic", align_corners=True
            ).flatten(1),
            torch.tensor([[[[0.0, 0.0, 0.0, 1.0]]]]),
        ),
        (lambda x: F.softplus(x, beta=-1.0), torch.zeros(1, 1)),
        (lambda x: F.softplus(x, threshold=-5.0), torch.full((1, 1), -3.0)),
        (lambda x: torch.exp(1j * x).to(torch.float32), torch.full((1, 1), 3.0)),
        (lambda x: F.relu(x).to(torch.int8).float(), torch.full((1, 1), 200.0)),
    ],
    ids=["bicubic sampling", "softplus, negative beta", "softplus, negative threshold", "complex exp", "int8"],
)
def test_what_may_be_negative_is_not_taken_for_non_negative(function: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """A layer behind a value that never is negative takes a form that holds for no other."""
    _assert_inside(lambda w, x: F.linear(function(x), w), torch.ones(1, 1), 0.5, 0.1, x)


_MANY = torch.zeros(4000, dtype=torch.int64)


@pytest.mark.parametrize(
    ("function", "x", "gaps"),
    [
        (lambda x: x.new_zeros(1).index_add(0, _MANY, x), torch.ones(4000), (0.01, 0.01)),
        (lambda x: x.new_zeros(1).scatter_add(0, _MANY, x), torch.ones(4000), (0.01, 0.01)),
        (lambda x: x.new_zeros(1).index_put((_MANY,), x, accumulate=True), torch.ones(4000), (0.01, 0.01)),
        (lambda x: F.adaptive_avg_pool3d(x, 2), torch.ones(1, 1, 32, 32, 32), (0.01, 0.01)),
        (lambda x: F.fold(x, (60, 60), (40, 40))[..., 30, 30], torch.ones(1, 1600, 441), (0.01, 0.01)),
        (lambda x: x.prod()[None], torch.ones(500), (0.0, 0.001)),
        (lambda x: x.cumprod(0), torch.ones(500), (0.0, 0.001)),
    ],
    ids=["index_add", "scatter_add", "index_put", "adaptive pool", "fold", "prod", "cumprod"],
)
def test_many_small_gaps_add_up_in_bfloat16(
    function: Callable[[Tensor], Tensor], x: Tensor, gaps: tuple[float, float]
) -> None:
    _assert_inside(lambda w, x: function(w * x), torch.ones(1), *gaps, x, gap_dtype=torch.bfloat16)


def test_the_conjugate_of_joined_values_is_taken_once() -> None:
    def function(w: Tensor, x: Tensor) -> Tensor:
        h = torch.complex(w * x, 2 * x)
        return torch.vdot(torch.cat((h, h)), torch.complex(torch.ones(4), torch.ones(4)) * 1j).real[None]

    _assert_inside(function, torch.ones(1), 0.1, 0.1, torch.ones(2))


def test_a_tangent_of_what_is_not_a_number_has_no_bounds() -> None:
    bounds = inn.apply(aten.tan.default, Interval(torch.zeros(1), torch.tensor([torch.nan]), torch.full((1,), 0.4)))

    assert bounds.upper.isposinf().all() or bounds.upper.isnan().all()


def test_a_product_does_not_cancel_where_a_far_end_lies_near_zero() -> None:
    u = Interval(*(torch.tensor([value]) for value in (1.0, 0.0, 836567.6875)))
    v = Interval(*(torch.tensor([value]) for value in (1.3089896440505981, 1.3089908361434937, 0.0)))

    assert (u * v).lower.item() == pytest.approx((u.upper * v.lower).item(), rel=1e-5)


def test_gaps_of_half_precision_are_not_lost_where_the_result_is_of_full() -> None:
    half = Interval(*(torch.tensor([value], dtype=torch.float16) for value in (0.5, 0.1, 0.1)))

    bounds = inn.apply(aten.mul.Tensor, half, torch.tensor([1e-8]))
    joined = inn.apply(aten.cat.default, [half, Interval(*(torch.tensor([1e-8]) for _ in range(3)))])

    assert bounds.above.item() == pytest.approx(1e-9, rel=1e-3)
    assert joined.above[1].item() == pytest.approx(1e-8)


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_a_complex_interval_may_be_cast_to_its_real_part() -> None:
    x = Interval(*(torch.tensor([value], dtype=torch.complex64) for value in (1 + 2j, 0.1 + 0.2j, 0.3 + 0.4j)))

    bounds = inn.apply(aten._to_copy.default, x, dtype=torch.float32)

    assert bounds.gap_dtype == torch.float32
    torch.testing.assert_close((bounds.below, bounds.above), (torch.tensor([0.1]), torch.tensor([0.3])))


def test_bounds_of_a_matrix_exponential_hold_where_torchs_own_errs_in_small_steps() -> None:
    point = torch.tensor([[0.0666, 0.0], [0.1603, 0.0]], dtype=torch.float64)
    below = torch.tensor([[0.2874, 0.2430], [0.0538, 0.1293]], dtype=torch.float64)
    above = torch.tensor([[0.1750, 0.5303], [0.3331, 0.5317]], dtype=torch.float64)

    bounds = inn.apply(aten.linalg_matrix_exp.default, Interval(point, below, above))

    assert bounds.contains(torch.linalg.matrix_exp(point + above), atol=1e-14).all()
