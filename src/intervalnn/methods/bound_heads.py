"""QuantileHeads and IntervalLossHeads: both bounds straight from a network, without interval arithmetic."""

from __future__ import annotations

from typing import Any

from torch import nn

from intervalnn.calibration.guarantee import beta_for_coverage
from intervalnn.interval import Interval
from intervalnn.methods.headed import Headed
from intervalnn.methods.heads import HeadsKind
from intervalnn.prediction import Prediction
from intervalnn.training import losses

__all__ = ["IntervalLossHeads", "QuantileHeads"]


class _BoundHeads(Headed):
    """A lower and an upper bound around the underlying model's own prediction, one head for each."""

    outputs = 2

    def forward(self, *args: Any, **kwargs: Any) -> Interval:
        """Return the bounds as the heads give them; while they train, gaps may be negative."""
        point, (lower, upper) = self._point_and_offsets(*args, **kwargs)
        return Interval(point, -lower, upper)

    def _predict(self, *args: Any, **kwargs: Any) -> Prediction:
        bounds = self(*args, **kwargs)
        below, above = bounds.below.clamp(min=0.0), bounds.above.clamp(min=0.0)  # crossed bounds end at the point
        return Prediction.of(Interval(bounds.point, below, above))


class QuantileHeads(_BoundHeads):
    """The two quantiles between which the wanted share of the targets lies, by the pinball loss.

    The point stays the underlying model's own. Quantiles that cross it, or each other, are cut
    there, so no gap is negative.

    Args:
        model: Any trained module.
        coverage: Share of the targets that the bounds are to contain, if ``fit`` is not told another.
        heads: ``"layer"`` widens the last weight layer of one copy of the model; ``"copy"`` trains
            one whole copy for each bound, whatever the model does after its last layer.
        last: Name of the last weight layer; by default the one that was registered last.

    Example:
        >>> import torch
        >>> method = QuantileHeads(nn.Linear(2, 1))
        >>> method
        QuantileHeads(Linear, coverage=0.9)
        >>> method.predict(torch.ones(1, 2)).width  # until it is fitted
        tensor([[0.]])
    """

    def _loss(self) -> losses.Loss:
        return losses.pinball(coverage=self.coverage)


class IntervalLossHeads(_BoundHeads):
    """Bounds from heads by the paper's loss (Eq. 2): an ablation of the interval network without interval arithmetic.

    Args:
        model: Any trained module.
        beta: The price of width; by default the one that gives the coverage for Laplace errors.
        coverage: As for :class:`QuantileHeads`.
        heads: As for :class:`QuantileHeads`.
        last: As for :class:`QuantileHeads`.

    Example:
        >>> IntervalLossHeads(nn.Linear(2, 1), beta=2e-3)
        IntervalLossHeads(Linear, coverage=0.9, beta=0.002)
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        beta: float | None = None,
        coverage: float = 0.9,
        heads: HeadsKind = "layer",
        last: str | None = None,
    ) -> None:
        super().__init__(model, coverage=coverage, heads=heads, last=last)
        if beta is not None and not beta > 0:
            raise ValueError(f"beta must be positive, or None to follow from the coverage, got {beta}")
        self.beta = beta

    def _loss(self) -> losses.Loss:
        return losses.interval(
            beta=beta_for_coverage(self.coverage, float(self.heads.scale)) if self.beta is None else self.beta
        )

    def extra_repr(self) -> str:
        """Return what stands between the brackets when it is printed."""
        return super().extra_repr() + ("" if self.beta is None else f", beta={self.beta:g}")
