"""Max pooling: the largest entry of each window. Average pooling, which is linear, is in structure."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import known_ends
from intervalnn.rules.monotone import Function, by_ends
from intervalnn.rules.sorting import INDICES, values_and_indices
from intervalnn.table import aten, rule


@rule(aten.max_pool1d, aten.max_pool2d, aten.max_pool3d, sign="keeps")
def max_pool(fn: Function, x: Interval, kernel: list[int], *rest: Any) -> Interval:
    """Bound the largest entry of each window; where compiled, entry by entry, lest both ends are written out first."""
    if torch.compiler.is_dynamo_compiling() and _apart(kernel, *rest):
        return by_ends(lambda end: largest(end, kernel), x)
    if torch.compiler.is_exporting():  # other runtimes pass over what is not a number
        lower, upper = (fn(end, kernel, *rest) for end in known_ends(x))
        return Interval.around(fn(x.point, kernel, *rest), lower, upper, x.gap_dtype)
    return by_ends(fn, x, kernel, *rest)


def _apart(
    kernel: list[int], stride: Any = (), padding: Any = (0,), dilation: Any = (1,), ceil_mode: bool = False
) -> bool:
    """Say whether windows lie side by side, and are small."""
    edges = set(padding) == {0} and set(dilation) == {1} and not ceil_mode
    return edges and list(stride) in ([], list(kernel)) and math.prod(kernel) <= 8


def largest(x: Tensor, kernel: list[int]) -> Tensor:
    """Return the largest entry of each window, where windows lie side by side."""
    for dim, size in enumerate(reversed(kernel), start=1):
        x = x.narrow(-dim, 0, x.size(-dim) // size * size)
    views = [x]
    for dim, size in enumerate(kernel, start=x.dim() - len(kernel)):
        views = [view[(slice(None),) * dim + (slice(at, None, size),)] for view in views for at in range(size)]
    return functools.reduce(torch.maximum, views)


rule(
    aten.max_pool2d_with_indices, aten.max_pool3d_with_indices, aten.adaptive_max_pool1d, aten.adaptive_max_pool2d,
    aten.adaptive_max_pool3d, sign="keeps", hidden={1: INDICES},
)(values_and_indices)  # fmt: skip
