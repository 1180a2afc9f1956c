"""ErrorPredictor: a network that predicts how far the model is off."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from intervalnn.interval import Interval
from intervalnn.methods.headed import Headed
from intervalnn.prediction import Prediction
from intervalnn.training import losses

__all__ = ["ErrorPredictor"]

ONE = 0.5413248546129181  # softplus(ONE) is 1


class ErrorPredictor(Headed):
    """The underlying model's own prediction, and how far it is off, learnt from its errors.

    Two heads, for two questions have two answers. The score is the error to be expected, learnt by
    the squared error; the bounds are at the distance within which the wanted share of the errors
    stays, learnt by the pinball loss, so that they cover it before any calibration. With one head
    and the absolute error instead, both were worse on the 1D task.

    Args:
        model: Any trained module that returns one tensor.
        coverage: Share of the targets that the bounds are to contain, if ``fit`` is not told another.
        heads: As for :class:`QuantileHeads`.
        last: As for :class:`QuantileHeads`.

    Example:
        >>> import torch
        >>> p = ErrorPredictor(torch.nn.Linear(2, 1)).predict(torch.ones(1, 2))  # until it is fitted
        >>> p.score, p.below, p.above
        (tensor([[1.]]), tensor([[1.]]), tensor([[1.]]))
    """

    outputs = 2

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Interval, Tensor]:
        """Return the bounds and the expected error."""
        point, offsets = self._point_and_offsets(*args, **kwargs)
        scale = self.heads.scale
        gap, error = scale * F.softplus(offsets / scale + ONE)
        return Interval(point, gap, gap), error

    def _loss(self) -> losses.Loss:
        return losses.error(coverage=self.coverage, unit=float(self.heads.scale))

    def _predict(self, *args: Any, **kwargs: Any) -> Prediction:
        bounds, error = self(*args, **kwargs)
        return Prediction(bounds.point, bounds.below, bounds.above, error)
