"""Classes: any metric over a stream of batches and over several processes, as ``torchmetrics.Metric``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from intervalnn.metrics.summary import NO_MOMENTS, Mean, mean_of, merged, moments
from intervalnn.metrics.tally import Tally
from intervalnn.prediction import Prediction

try:
    from torchmetrics import Metric
except ImportError as error:
    raise ImportError("the streaming metrics need torchmetrics: pip install intervalnn[metrics]") from error

__all__ = ["Pooled", "SampleMean"]

SampleMetric = Callable[[Prediction, Tensor], Tensor]


class Streaming(Metric):
    """What both share: states of fixed size, in float64, that add up over batches and processes."""

    full_state_update = False
    is_differentiable = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # A MetricCollection updates only one of several metrics whose states are equal after the first
        # batch, which they may be by accident. NaN equals nothing, so each of ours is updated.
        self.add_state("apart", torch.tensor(torch.nan), dist_reduce_fx="sum")


class SampleMean(Streaming):
    """The mean over samples of any metric ``(prediction, target) -> (batch,)``.

    Samples for which it is undefined are left out, and counted in :meth:`summary`.

    Args:
        function: The metric; use :func:`functools.partial` for its options.
        kwargs: Those of :class:`torchmetrics.Metric`.

    Example:
        >>> from intervalnn.metrics import mse
        >>> metric, zero = SampleMean(mse), torch.zeros(2, 3)
        >>> metric.update(Prediction(zero, zero, zero, zero), torch.ones(2, 3))
        >>> metric.update(Prediction(zero, zero, zero, zero), torch.zeros(2, 3))
        >>> metric.compute(), metric.summary()
        (tensor(0.5000, dtype=torch.float64), Mean(mean=0.5, sd=0.5773502691896257, defined=4, total=4))
    """

    moments: Tensor

    def __init__(self, function: SampleMetric, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.function = function
        self.add_state("moments", torch.tensor(NO_MOMENTS, dtype=torch.float64), dist_reduce_fx=merged)

    def update(self, prediction: Prediction, target: Tensor) -> None:
        """Take in the samples of a batch."""
        values = self.function(prediction, target)
        if values.shape != (len(target),):
            raise ValueError(
                f"a metric must return one number per sample, ({len(target)},), got {tuple(values.shape)}; see Pooled"
            )
        found = moments(values).to(self.moments.device)
        self.moments = merged(torch.stack((self.moments, found)))

    def compute(self) -> Tensor:
        """Return the mean of the samples for which it is defined; NaN where there is none."""
        return self.moments.new_tensor(mean_of(self.moments).mean)

    def summary(self) -> Mean:
        """Return mean, standard deviation, and how many samples there were, defined and in all."""
        with self.sync_context():
            return mean_of(self.moments)


class Pooled(Streaming):
    """Any :class:`~intervalnn.metrics.Tally` over a stream: curves, strata, maps, quantiles.

    Args:
        tally: What to count.
        kwargs: Those of :class:`torchmetrics.Metric`.

    Example:
        >>> from intervalnn.metrics import Directions
        >>> metric, zero, one = Pooled(Directions(thresholds=(1.0, 4.0))), torch.zeros(1, 2), torch.ones(1, 2)
        >>> metric.update(Prediction(zero, one, 3 * one, one), torch.tensor([[1.0, -1.0]]))
        >>> metric.compute().accuracy
        tensor([0.5000,    nan], dtype=torch.float64)
    """

    sums: Tensor

    def __init__(self, tally: Tally[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tally = tally
        self.add_state("sums", tally.empty(), dist_reduce_fx="sum")

    def update(self, prediction: Prediction, target: Tensor) -> None:
        """Take in the components of a batch."""
        self.sums += self.tally.count(prediction, target).to(self.sums.device)

    def compute(self) -> Any:
        """Return what the tally makes of its sums; a dictionary for a dataclass, which torchmetrics would refuse."""
        result = self.tally.result(self.sums)
        if is_dataclass(result) and not isinstance(result, type):
            return {field.name: getattr(result, field.name) for field in fields(result)}
        return result
