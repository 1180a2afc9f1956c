"""Bounds in lower precision, and of numbers that are not finite.

The margin. Let ``e`` be the machine epsilon of the gaps and ``s`` the largest ``|point| + width``
among the outputs. Bounds computed in a lower precision contain those computed in float64 from the
same arguments up to ``32 e (1 + s)``: each gap is a sum of a few rounded terms of size up to ``s``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor

import intervalnn as inn
from intervalnn import Interval
from properties.case import Case, intervals, is_interval, with_intervals
from properties.cases import CASES, comparisons

aten = torch.ops.aten
PRECISIONS = {
    "float32": (torch.float32, torch.float32),
    "bfloat16": (torch.bfloat16, torch.bfloat16),
    "bfloat16 around float32": (torch.float32, torch.bfloat16),
}
# They jump where a value passes a limit, and rounding may carry it there: no margin holds.
JUMPS = {
    aten.floor, aten.ceil, aten.round, aten.trunc, aten.sign, aten.sgn, aten.fmod, aten.remainder, aten.threshold,
    aten.hardshrink, aten.tan, aten.grid_sampler, aten.grid_sampler_2d, aten.grid_sampler_3d, aten.div, aten.atan2,
    aten.fake_quantize_per_tensor_affine_cachemask, aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
    aten.fake_quantize_per_channel_affine_cachemask,
}  # fmt: skip


def _jumps(case: Case) -> bool:
    if case in comparisons.CASES:
        return True
    counts = case.op.overloadpacket in (aten._cdist_forward, aten.linalg_vector_norm) and 0 in case.args
    rounded = case.op.overloadpacket is aten.div and case.kwargs.get("rounding_mode") is None
    return counts or (case.op.overloadpacket in JUMPS and not rounded)


def _is_real(case: Case) -> bool:
    return not any(x.dtype.is_complex for x in intervals(case.draw(0, "positive")))


SMOOTH = [case for case in CASES if not _jumps(case) and _is_real(case)]


def _convert(args: Any, point: torch.dtype, gap: torch.dtype) -> Any:
    def convert(x: Any) -> Any:
        if isinstance(x, Interval):
            return Interval(x.point.to(point), x.below.to(gap), x.above.to(gap))
        return x.to(point) if isinstance(x, Tensor) and x.is_floating_point() else x

    return pytree.tree_map(convert, args, is_leaf=is_interval)


def _has_kernel(case: Case, args: Any) -> bool:
    try:
        case.plain(with_intervals(args, [x.point for x in intervals(args)]))
    except (RuntimeError, NotImplementedError):
        return False
    return True


@pytest.mark.rotating
@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_bounds_in_lower_precision_contain_the_true_ones_up_to_the_margin(case: Case) -> None:
    for (name, (point, gap)), pattern in itertools.product(PRECISIONS.items(), ("positive", "straddling", "tiny")):
        args = _convert(case.draw(0, pattern), point, gap)
        if not _has_kernel(case, args):
            continue  # torch itself has none in this dtype

        rough, true = case.bounds(args), case.bounds(_convert(args, torch.float64, torch.float64))

        for low, high in zip(rough, true, strict=True):
            assert low.dtype.is_complex or point != gap or low.gap_dtype in (gap, low.dtype), "the gaps are promoted"
            if low.dtype.is_complex or not low.numel():
                continue
            size = (high.point.abs() + high.width).double().nan_to_num(0.0, 0.0, 0.0).amax()
            margin = 32 * torch.finfo(gap).eps * (1 + size)
            for mine, theirs in ((low.below, high.below), (low.above, high.above)):
                missing = theirs.double() - mine.double()
                assert not (missing > margin).any(), f"{name}, {pattern}: {missing.max()} > {margin}"


def _broken(x: Interval, what: str) -> Interval:
    parts = [part.clone() for part in (x.point, x.below, x.above)]
    chosen = {"point": [0], "above": [2], "both gaps": [1, 2]}
    value, where = what.split(" ", 1)
    for index in chosen[where]:
        parts[index].view(-1)[0] = float(value)
    return Interval(*parts)


# Of an index that is not finite, the model itself makes an error.
@pytest.mark.rotating
@pytest.mark.parametrize("case", [c for c in CASES if _is_real(c) and c not in comparisons.PLACES], ids=str)
def test_what_is_not_finite_never_gives_finite_bounds_that_are_wrong(case: Case) -> None:
    faults = ("nan both gaps", "inf both gaps", "inf above", "nan point", "inf point")
    for pattern, what in itertools.product(("positive", "straddling"), faults):
        args = case.draw(0, pattern)
        xs = intervals(args)
        for which, x in enumerate(xs):
            if not x.numel():
                continue
            broken = [_broken(x, what) if index == which else x for index, x in enumerate(xs)]

            bounds = _if_any(case.bounds, with_intervals(args, broken))

            for value in _inside(broken[which], what, x) if bounds else ():
                points = [value if index == which else x.point for index, x in enumerate(xs)]
                results = _if_any(case.plain, with_intervals(args, points))
                for bound, result in zip(bounds, results or (), strict=bool(results)):
                    assert not _is_wrong(bound, result), f"{what}, {pattern}: {result} outside {bound}"


def _if_any(call: Callable[[Any], list[Any]], args: Any) -> list[Any]:
    """Return nothing where torch itself has no result, as of a matrix that is singular or not finite."""
    try:
        return call(args)
    except torch.linalg.LinAlgError:
        return []


def _inside(broken: Interval, what: str, sound: Interval) -> list[Tensor]:
    """Return values that the broken interval contains: of an endless one, some that are far apart."""
    if "point" in what:
        return [broken.point]
    far = torch.tensor([-1e3, -3.0, 0.0, 3.0, 1e3], dtype=torch.float64)
    first = far[far >= sound.lower.view(-1)[0]] if what == "inf above" else far
    values = [sound.point.clone() for _ in first]
    for value, number in zip(values, first, strict=True):
        value.view(-1)[0] = number
    return values


def _is_wrong(bound: Interval, value: Tensor) -> bool:
    if bound.dtype.is_complex:
        bound, value = bound.map(torch.view_as_real), torch.view_as_real(value)
    lower, upper = bound.lower, bound.upper
    slack = 1e-9 * (1 + value.abs()).nan_to_num(posinf=0.0)
    hides = ~value.isfinite() & lower.isfinite() & upper.isfinite()
    return bool(((lower > value + slack) | (upper < value - slack) | hides).any())


def _matrix(w: Tensor) -> Tensor:
    return w.T.contiguous()


# How much of a large gap is added to a small one, in epsilons: sums of half precision are kept in float32.
ROUNDINGS = {torch.float16: 4, torch.bfloat16: 4, torch.float32: 64}
LOPSIDED: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
    "linear": (aten.linear.default, lambda w: w, (5, 8)),
    "matmul": (aten.matmul.default, _matrix, (5, 8)),
    "convolution": (aten.conv1d.default, lambda w: w[:, :, None], (2, 8, 5)),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("moving", ["input", "weight", "both"])
@pytest.mark.parametrize("name", LOPSIDED)
def test_a_gap_is_not_lost_beside_a_much_larger_one(name: str, moving: str, dtype: torch.dtype) -> None:
    op, shaped, size = LOPSIDED[name]
    eps = torch.finfo(dtype).eps
    for seed, ratio in itertools.product(range(3), (1, 10, 1 / eps, 100 / eps)):
        draw = torch.Generator().manual_seed(seed)

        def around(point: Tensor, moves: bool, ratio: float = ratio, draw: torch.Generator = draw) -> Any:
            below, above = (0.01 * torch.rand(point.shape, generator=draw, dtype=torch.float64) for _ in range(2))
            return Interval(point, below / ratio, above).to(dtype) if moves else point.to(dtype)

        # All of one sign, so that each side has the gaps of one side alone.
        x = around(torch.rand(size, generator=draw, dtype=torch.float64), moving != "weight")
        w = around(shaped(torch.rand(3, 8, generator=draw, dtype=torch.float64)), moving != "input")

        rough, true = inn.apply(op, x, w), inn.apply(op, x.to(torch.float64), w.to(torch.float64))

        for mine, theirs in ((rough.below, true.below), (rough.above, true.above)):
            assert (mine.double() >= (1 - 4 * eps) * theirs).all(), ratio
            assert (mine.double() <= (1 + 4 * eps) * theirs + 2 * ROUNDINGS[dtype] * eps * true.width).all(), ratio


def test_a_gap_is_not_lost_in_a_long_sum_beside_a_much_larger_one() -> None:
    draw = torch.Generator().manual_seed(0)
    x, point = torch.randn(4, 16384, generator=draw), torch.randn(8, 16384, generator=draw)
    w = Interval(point, 0.01 * point.abs(), 100 * point.abs())

    rough = inn.apply(aten.linear.default, x, w)
    true = inn.apply(aten.linear.default, x.double(), w.to(torch.float64))

    assert (rough.below >= (1 - 1e-6) * true.below).all() and (rough.above >= (1 - 1e-6) * true.above).all()


def _lopsided(x: Interval, how: str) -> Interval:
    below, above = x.below.clone(), x.above.clone()
    if how == "little above":
        above *= 1e-4
    elif x.numel() > 1:
        below, above = 0.1 * below, 0.1 * above
        above.view(-1)[0] *= 1e4
    return Interval(x.point, below, above)


# The taps of a bicubic kernel are rounded by themselves, and times one large gap this is seen in the small ones.
UNEVEN = {aten.upsample_bicubic2d, aten._upsample_bicubic2d_aa}


@pytest.mark.rotating
@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_small_gaps_are_not_lost_beside_large_ones(case: Case) -> None:
    """Here the margin of each component is made of its own point and gap, not of the largest."""
    precisions = PRECISIONS | {"float16": (torch.float16, torch.float16)}
    for (name, (point, gap)), how in itertools.product(precisions.items(), ("little above", "one is large")):
        if how == "one is large" and case.op.overloadpacket in UNEVEN:
            continue
        args = case.draw(0, "straddling")
        args = _convert(with_intervals(args, [_lopsided(x, how) for x in intervals(args)]), point, gap)
        if not _has_kernel(case, args):
            continue

        rough, true = case.bounds(args), case.bounds(_convert(args, torch.float64, torch.float64))

        for low, high in zip(rough, true, strict=True):
            if low.dtype.is_complex or not low.numel():
                continue
            for mine, theirs in ((low.below, high.below), (low.above, high.above)):
                own, coarse = torch.finfo(point).eps * (0.01 + high.point.abs() + theirs), torch.finfo(gap).eps * theirs
                missing = theirs.double() - mine.double()
                finite = theirs.isfinite() & ~mine.isnan()
                assert not (finite & (missing > 32 * (own + coarse))).any(), f"{name}, {how}: {missing.max()}"
