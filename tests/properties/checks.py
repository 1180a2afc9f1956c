"""What the tests of the rules compare, each with the tolerance that rounding needs and no more."""

from __future__ import annotations

import torch
from torch import Tensor

from intervalnn import Interval
from properties.case import Case

aten = torch.ops.aten


def real_parts(x: Tensor) -> Tensor:
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def is_rounded(case: Case) -> bool:
    """Say whether the result of a case is rounded: a staircase, through which the gradient goes straight on."""
    return case.op in (aten.to.dtype, aten.to.other) or "fake_quantize" in str(case.op) or case.kwargs.get("dtype") in (
        torch.float32, torch.bfloat16, torch.complex64,
    )  # fmt: skip


def tolerance(value: Tensor, relative: float) -> Tensor:
    """Return what rounding may cost, in the dtype of the value; an infinite value costs nothing."""
    relative = max(relative, 2 * torch.finfo(value.dtype).eps)
    return relative * (1 + value.abs()).nan_to_num(posinf=0.0)


def assert_gaps(bounds: Interval) -> None:
    """Assert that the gaps have the shape of the point, and are complex if it is, and not negative."""
    for gap in (bounds.below, bounds.above):
        assert gap.shape == bounds.shape
        assert gap.is_complex() == bounds.point.is_complex()
        assert not (real_parts(gap) < 0).any()


def assert_inside(bounds: Interval, value: Tensor, context: str, relative: float = 1e-12) -> None:
    """Assert that a value, or a stack of them, lies within bounds; an end that is not a number is none."""
    point, lower, upper, value = (
        real_parts(part.detach()) for part in (bounds.point, bounds.lower, bounds.upper, value)
    )
    slack = tolerance(value, relative) + tolerance(point, relative)  # the ends are sums with the point
    outside = (lower > value + slack) | (upper < value - slack)
    ends = [end.expand_as(value)[outside] for end in (lower, upper)]
    assert not outside.any(), f"{context}: {value[outside]} outside {ends[0]} to {ends[1]}"


def assert_wider(wide: Interval, narrow: Interval, context: str, relative: float = 1e-12) -> None:
    """Assert that the gaps of one interval are at least those of another around the same point."""
    for side in ("below", "above"):
        small, large = (real_parts(getattr(x, side).detach()) for x in (narrow, wide))
        slack = tolerance(real_parts(narrow.point.detach()).abs() + small, relative)
        lost = ~(large >= small - slack) & ~large.isnan()
        assert not lost.any(), f"{context}: {side} {large[lost]} less than {small[lost]}"


def same(x: Tensor, y: Tensor) -> bool:
    """Say whether two tensors are equal bit for bit, where they are numbers."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    return torch.equal(real_parts(x).nan_to_num(), real_parts(y).nan_to_num())
