"""Norms of vectors and the distances between them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import around, point_of, unmoved
from intervalnn.rules.kinks import norm_beyond
from intervalnn.table import aten, rule

Value = Interval | Tensor


@rule(aten.linalg_vector_norm, sign="nonnegative", complexes=True)
def vector_norm(fn: Any, x: Interval, *args: Any, **kwargs: Any) -> Interval:
    """Bound a norm, non-decreasing in the size of every entry."""
    size = abs(x)
    if x.dtype.is_complex:  # which torch rounds otherwise than their moduli
        dtype = kwargs.get("dtype")
        bounds = vector_norm(fn, size, *args, **kwargs | {"dtype": dtype and dtype.to_real()})
        return Interval(fn(x.point, *args, **kwargs), bounds.below, bounds.above)
    nearest = torch.where(size.lower > 0, size.lower, 0.0)  # also where it is not a number
    lower = fn(nearest, *args, **kwargs)
    upper = norm_beyond(lambda sizes: fn(sizes, *args, **kwargs), size.upper, kwargs.get("dim", [*args, None, None][1]))
    bounds = Interval.around(fn(x.point, *args, **kwargs), lower, upper, size.gap_dtype)
    return unmoved(size.width.sum(*_axes(x, *args[1:])) == 0, bounds)


def _axes(x: Interval, dims: Any = None, keepdim: bool = False) -> tuple[list[int], bool]:
    """Return over which dimensions a norm is taken, and whether they are kept."""
    if isinstance(dims, int):
        return [dims], keepdim
    return list(dims or range(x.dim())), keepdim


@rule(aten.dist, takes=(0, 1), sign="nonnegative")
def dist(fn: Any, x: Value, y: Value, p: float = 2) -> Interval:
    """Bound the distance between two tensors, each taken as one vector."""
    distance = vector_norm(torch.linalg.vector_norm, Interval.of(x) - y, p)
    return around(fn(point_of(x), point_of(y), p), distance.below, distance.above, x, y)


@rule(aten._cdist_forward, takes=(0, 1), sign="nonnegative")
def cdist(fn: Any, x: Value, y: Value, p: float, mode: int | None) -> Interval:
    """Bound the distances between all rows of ``x`` and of ``y``."""
    rows = Interval.of(x).map(lambda part: part.unsqueeze(-2))
    columns = Interval.of(y).map(lambda part: part.unsqueeze(-3))
    distance = vector_norm(torch.linalg.vector_norm, rows - columns, p, -1)
    return around(fn(point_of(x), point_of(y), p, mode), distance.below, distance.above, x, y)


@rule(aten._pdist_forward, sign="nonnegative")
def pdist(fn: Any, x: Interval, p: float = 2) -> Interval:
    """Bound the distances between all pairs of rows."""
    first, second = torch.triu_indices(x.size(0), x.size(0), 1, device=x.device)
    distance = vector_norm(torch.linalg.vector_norm, x[first] - x[second], p, -1)
    return around(fn(x.point, p), distance.below, distance.above, x)
