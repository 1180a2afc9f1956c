"""Tally: sums of fixed size from which a number or a curve over all data is made."""

from __future__ import annotations

from typing import Protocol, TypeVar

from torch import Tensor

from intervalnn.prediction import Prediction

__all__ = ["Tally", "tallied"]

Result = TypeVar("Result", covariant=True)


class Tally(Protocol[Result]):
    """Counts batch by batch; the sums of several batches, or processes, are added.

    Example:
        >>> import torch
        >>> from intervalnn.metrics import WidthQuantile
        >>> tally, sums, zero = WidthQuantile(), WidthQuantile().empty(), torch.zeros(1, 1)
        >>> for width in (1.0, 2.0, 30.0):
        ...     sums += tally.count(Prediction(zero, zero, zero + width, zero + width), zero)
        >>> print(f"{tally.result(sums):.2f}")
        2.00
    """

    def empty(self) -> Tensor:
        """Return the sums of no data."""
        ...

    def count(self, prediction: Prediction, target: Tensor, /) -> Tensor:
        """Return the sums of a batch."""
        ...

    def result(self, sums: Tensor, /) -> Result:
        """Return what the sums stand for."""
        ...


def tallied(tally: Tally[Result], prediction: Prediction, target: Tensor) -> Result:
    """Return the result for a single batch."""
    return tally.result(tally.count(prediction, target))
