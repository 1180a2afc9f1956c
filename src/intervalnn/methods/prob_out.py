"""ProbOut: a normal density for each component, by its likelihood (the paper's baseline, Sec. 4 and 5)."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from intervalnn.methods.headed import Headed
from intervalnn.prediction import Prediction
from intervalnn.training import losses

__all__ = ["ProbOut"]


class ProbOut(Headed):
    """A network of its own that predicts mean and variance of a normal density for each component.

    It starts as a copy of the underlying model, with the size of the model's errors as the deviation
    everywhere, and both go where the likelihood leads; so the point is its own, not the model's.
    ``fit(..., recipe="paper")`` trains it as published for the 1D task (Sec. 4). For CT the paper has 400
    epochs at a rate of 1e-7, which is too little to learn much; the default is the fair choice.

    Args:
        model: Any trained module that returns one tensor.
        coverage: Share of the targets that the bounds are to contain, if ``fit`` is not told another.
        heads: As for :class:`QuantileHeads`.
        last: As for :class:`QuantileHeads`.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 1)
        >>> method = ProbOut(model)
        >>> method
        ProbOut(Linear, coverage=0.9)
        >>> p = method.predict(torch.ones(1, 2))  # until it is fitted
        >>> torch.equal(p.point, model(torch.ones(1, 2))), p.deviation
        (True, tensor([[1.]]))
    """

    outputs = 1
    own = True
    paper: ClassVar[dict[str, float]] = {"epochs": 100, "lr": 1e-4}  # Sec. 4

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Return the mean and the logarithm of the variance."""
        mean, (offset,) = self._point_and_offsets(*args, **kwargs)
        scale = self.heads.scale
        return mean, 2 * scale.log() + offset / scale

    def _loss(self) -> losses.Loss:
        return losses.gaussian

    def _predict(self, *args: Any, **kwargs: Any) -> Prediction:
        mean, log_variance = self(*args, **kwargs)
        return Prediction.symmetric(mean, (log_variance / 2).exp(), coverage=self.coverage)
