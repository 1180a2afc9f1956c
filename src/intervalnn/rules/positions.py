"""Where the largest or the smallest entry stands: a whole number that may change inside an interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import known_ends
from intervalnn.rules.comparison import has_ends, reach
from intervalnn.rules.discrete_values import Discrete
from intervalnn.table import aten, rule


@rule(aten.argmax)
def argmax(fn: Callable[..., Tensor], x: Interval, dim: int | None = None, keepdim: bool = False) -> Discrete:
    """Bound where the largest entry stands."""
    return _place(fn(x.point, dim, keepdim), x, dim)


@rule(aten.argmin)
def argmin(fn: Callable[..., Tensor], x: Interval, dim: int | None = None, keepdim: bool = False) -> Discrete:
    """Bound where the smallest entry stands."""
    return _place(fn(x.point, dim, keepdim), -x, dim)


@rule(aten.max.dim, aten.min.dim, sign="keeps")
def extremum(fn: Any, x: Interval, dim: int, keepdim: bool = False) -> tuple[Interval, Discrete]:
    """Bound the largest or the smallest entry, and where it stands."""
    (point, place), (lower, _), (upper, _) = (fn(part, dim, keepdim) for part in (x.point, *known_ends(x)))
    values = Interval.around(point, lower, upper, x.gap_dtype)
    return values, _place(place, x if fn is aten.max.dim else -x, dim)


def _place(point: Tensor, x: Interval, dim: int | None) -> Discrete:
    """Return where the largest entry may stand: the range from the first to the last entry that may be the largest."""
    if dim is None:
        x, dim = x.map(torch.flatten), 0
    if not x.dim():
        return Discrete.of(point)
    lower, upper = reach(x)
    may_be = (upper >= lower.amax(dim, keepdim=True)) | ~has_ends(x).all(dim, keepdim=True)
    places = torch.arange(x.size(dim), device=x.device).view([-1] + [1] * (x.dim() - dim % x.dim() - 1))
    first = torch.where(may_be, places, x.size(dim)).amin(dim).view(point.shape)
    last = torch.where(may_be, places, -1).amax(dim).view(point.shape)
    still = (x.width == 0).all(dim).view(point.shape)  # of equal entries the model itself chooses one
    return Discrete.around(point, torch.where(still, point, first), torch.where(still, point, last))
