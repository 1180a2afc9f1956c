"""Discrete: a truth value or a whole number that may change inside an interval, and the ends between which it stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from intervalnn.interval import Interval
from intervalnn.torch_private import pytree

__all__ = ["Discrete"]


@dataclass(frozen=True, slots=True, eq=False)
class Discrete:
    """What a comparison, a count or a cast to whole numbers may give inside an interval.

    Truth values are ordered as ``False < True``. So an answer that is the same everywhere has equal ends, and
    one that may change lies between ``False`` and ``True``.

    Attributes:
        point: What the underlying model computes.
        lower: The least value.
        upper: The largest value.

    Example:
        >>> x = Interval(torch.tensor([1.0, 1.0]), torch.tensor([0.5, 2.0]), torch.zeros(2))
        >>> answer = torch.ops.aten.gt.Scalar
        >>> from intervalnn import apply
        >>> apply(answer, x, 0.0).lower, apply(answer, x, 0.0).upper
        (tensor([ True, False]), tensor([True, True]))
    """

    point: Tensor
    lower: Tensor
    upper: Tensor

    @staticmethod
    def of(x: Discrete | Tensor) -> Discrete:
        """Return ``x`` itself if it may change, else the value that is just ``x``."""
        return x if isinstance(x, Discrete) else Discrete(x, x, x)

    @staticmethod
    def around(point: Tensor, lower: Tensor, upper: Tensor) -> Discrete:
        """Return the values from ``lower`` to ``upper``, widened where they miss ``point``."""
        return Discrete(point, torch.minimum(lower, point), torch.maximum(upper, point))

    @property
    def sure(self) -> Tensor:
        """Where the value is the same everywhere inside."""
        return self.lower == self.upper

    @property
    def shape(self) -> torch.Size:
        """Shape of the point, and of both ends."""
        return self.point.shape

    @property
    def dtype(self) -> torch.dtype:
        """Data type of the point, and of both ends."""
        return self.point.dtype

    @property
    def device(self) -> torch.device:
        """Device of the point, and of both ends."""
        return self.point.device

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.point.dim()

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension."""
        return self.point.size() if dim is None else self.point.size(dim)

    def map(self, fn: Callable[[Tensor], Tensor]) -> Discrete:
        """Return ``fn`` of the point and of each end, for a function that never decreases."""
        return Discrete(fn(self.point), fn(self.lower), fn(self.upper))

    def interval(self, dtype: torch.dtype) -> Interval:
        """Return the same values as floating-point numbers."""
        point, lower, upper = (part.to(dtype) for part in (self.point, self.lower, self.upper))
        return Interval.around(point, lower, upper)


def _unflatten(parts: Iterable[Any], _context: None) -> Discrete:
    """Put the parts together unchecked: a tree of tensors may hold anything while it is mapped."""
    return Discrete(*parts)


# So that discrete values pass through torch.compile, torch.export and activation checkpointing, as intervals do.
pytree.register_pytree_node(
    Discrete,
    lambda x: ([x.point, x.lower, x.upper], None),
    _unflatten,
    serialized_type_name="intervalnn.Discrete",
    flatten_with_keys_fn=lambda x: (
        [(pytree.GetAttrKey(name), getattr(x, name)) for name in ("point", "lower", "upper")],
        None,
    ),
)
