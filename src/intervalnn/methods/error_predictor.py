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

    There are two heads. The first learns the expected error by the squared error; this is the score. The second learns
    a quantile of the errors by the pinball loss; this is the distance of the bounds, which so have the wanted coverage
    before any calibration. One head with the absolute error gave a worse score and worse bounds on the 1D task.

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
