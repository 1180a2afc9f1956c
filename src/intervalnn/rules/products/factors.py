"""Factors: what the first factor of a product may be, and how far it reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval, cut

__all__ = ["Factor", "Joined", "Repeated", "by_part", "joined", "point_of", "reach", "sum_and_difference", "upper"]

Value = Interval | Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Values joined into the first factor of a product, which joins what it makes of each of them.

    So the join is never written to memory. Points have no gaps to multiply, and a skip connection often is a point. So
    only the parts from the first to the last interval take part in the products of the gaps.
    """

    parts: tuple[Value, ...]
    dim: int

    @property
    def point(self) -> Tensor:
        """The joined points."""
        return torch.cat([point_of(part) for part in self.parts], self.dim)

    @property
    def moving(self) -> tuple[Value, ...]:
        """The parts from the first to the last that has gaps."""
        moves = [i for i, part in enumerate(self.parts) if isinstance(part, Interval)]
        return self.parts[moves[0] : moves[-1] + 1]

    def whole(self) -> Interval:
        """Return the parts as one interval."""
        return Interval(self.point, *self.gaps(self.parts))

    def gaps(self, parts: tuple[Value, ...]) -> tuple[Tensor, Tensor]:
        """Return the gaps below and above of some of the parts, joined."""
        dtype = next(part.gap_dtype for part in self.parts if isinstance(part, Interval))
        sides = [
            (p.below, p.above) if isinstance(p, Interval) else (torch.zeros_like(p, dtype=dtype),) * 2 for p in parts
        ]
        below, above = (torch.cat(column, self.dim) for column in zip(*sides, strict=True))
        return below, above


def joined(parts: list[Value], dim: int) -> Joined:
    """Return the parts, to be joined along ``dim`` where a product needs them."""
    return Joined(tuple(parts), dim)


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """Values that stand side by side several times, the first factor of a convolution.

    :class:`~intervalnn.rules.products.repeats.Repeats` says how often.

    Attributes:
        point: Their points, as often as they stand there, with zeros around them: what the model's own call takes.
        values: Each of them once, with its gaps.
    """

    point: Tensor
    values: Interval


Factor = Interval | Joined | Tensor


def point_of(x: Any) -> Any:
    """Return the point of a factor, and anything else as it is."""
    return x.point if isinstance(x, Interval | Joined | Repeated) else x


def by_part(x: Factor, make: Callable[[Value], tuple[Tensor, ...]], *, moving: bool = False) -> tuple[Tensor, ...]:
    """Return the results of ``make``, joined over the parts of a joined factor.

    Args:
        x: The factor.
        make: What to make of each part.
        moving: Leave out parts before the first and behind the last that has gaps.
    """
    if not isinstance(x, Joined):
        return make(x)
    parts = x.moving if moving else x.parts
    return tuple(torch.cat(column, x.dim) for column in zip(*map(make, parts), strict=True))


def upper(x: Value) -> Tensor:
    """Return the upper end."""
    return x.upper if isinstance(x, Interval) else x


def reach(x: Value) -> tuple[Tensor, Tensor]:
    """Return ``x+ + x-`` and ``x+ - x-``, where ``x+`` is how far the factor may be above zero, ``x-`` below."""
    if isinstance(x, Tensor):
        return x.abs(), x
    high, low = cut(x.upper), cut(-x.lower)
    return high + low, high - low


def sum_and_difference(x: Value, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return sum and difference of the gaps, rounded no more coarsely than ``dtype``, in which they are multiplied."""
    if isinstance(x, Interval):
        below, above = (gap.to(torch.promote_types(gap.dtype, dtype)) for gap in (x.below, x.above))
        return above + below, above - below
    none = torch.zeros_like(x)
    return none, none
