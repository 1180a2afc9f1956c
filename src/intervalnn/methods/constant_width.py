"""ConstantWidth: the floor, bounds that know nothing of the input."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from intervalnn.methods.baseline import Baseline
from intervalnn.prediction import Prediction

__all__ = ["ConstantWidth"]


class ConstantWidth(Baseline):
    """Bounds of the same width everywhere: one, until :func:`intervalnn.calibrate` has found a better one.

    Nothing is trained. Any other method has to be tighter than this one, at equal coverage, to be worth it.

    Args:
        model: Any trained module.

    Example:
        >>> method = ConstantWidth(nn.Linear(2, 1))
        >>> method
        ConstantWidth(Linear)
        >>> method.predict(torch.ones(1, 2)).width
        tensor([[1.]])
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model, coverage=0.9)

    def _predict(self, *args: Any, **kwargs: Any) -> Prediction:
        point = self.point(*args, **kwargs)
        gap = torch.full_like(point, 0.5)
        return Prediction(point, gap, gap, gap + gap)

    def extra_repr(self) -> str:
        """Return what stands between the brackets when it is printed."""
        return type(self.model).__name__
