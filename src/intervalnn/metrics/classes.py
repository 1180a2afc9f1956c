"""Classes: the metrics over a stream of batches and over several processes, as ``torchmetrics.Metric``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from intervalnn.metrics.checks import from_bounds, share
from intervalnn.metrics.correlation import pwcc
from intervalnn.metrics.intervals import coverage as covered
from intervalnn.metrics.intervals import mean_width, winkler
from intervalnn.metrics.sketches import WidthQuantile
from intervalnn.metrics.sparsification import Sparsification
from intervalnn.metrics.summary import NO_MOMENTS, Mean, mean_of, merged, moments, wilson
from intervalnn.metrics.tally import Tally
from intervalnn.prediction import Prediction

try:
    from torchmetrics import Metric
except ImportError as error:
    raise ImportError("the streaming metrics need torchmetrics: pip install intervalnn[metrics]") from error

__all__ = ["AUSE", "PWCC", "IntervalCoverage", "IntervalScore", "MeanIntervalWidth", "MedianIntervalWidth"]
__all__ += ["Pooled", "SampleMean"]

SampleMetric = Callable[[Prediction, Tensor], Tensor]


class Streaming(Metric):
    """What all of them share: states of fixed size, in float64, that add up over batches and processes."""

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


class PWCC(SampleMean):
    """The mean over samples of :func:`intervalnn.metrics.pwcc`."""

    higher_is_better = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(pwcc, **kwargs)


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


class AUSE(Pooled):
    """The area between the sparsification curve of all components and the oracle's.

    In the normalisation of :func:`intervalnn.metrics.sparsification_curve`, but over the whole
    stream, whose scores and errors it knows to a part in 512; see :class:`intervalnn.metrics.Sparsification`.
    """

    higher_is_better = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(Sparsification(), **kwargs)

    def compute(self) -> Tensor:
        """Return the area; NaN where there is no error at all."""
        return self.tally.result(self.sums).area  # type: ignore[no-any-return]


class _Bounds(Streaming):
    """The mean over components of a metric that looks at bounds alone."""

    function: SampleMetric
    total: Tensor
    components: Tensor

    def __init__(self, function: SampleMetric, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.function = function
        for name in ("total", "components"):
            self.add_state(name, torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, *parts: Prediction | Tensor) -> None:
        """Take in a batch: ``(prediction, target)``, or ``(lower, upper, target)``."""
        prediction, target = _pair(parts)
        values = self.function(prediction, target)
        self.total += (values.sum() * (target.numel() / len(target))).to(self.total.device)
        self.components += target.numel()

    def compute(self) -> Tensor:
        """Return the mean over all components of all samples."""
        return self.total / self.components


def _pair(parts: tuple[Prediction | Tensor, ...]) -> tuple[Prediction, Tensor]:
    match parts:
        case (Prediction() as prediction, Tensor() as target):
            return prediction, target
        case (Tensor() as lower, Tensor() as upper, Tensor() as target):
            return from_bounds(lower, upper), target
    got = ", ".join(type(part).__name__ for part in parts)
    raise TypeError(f"update needs (prediction, target) or (lower, upper, target), got ({got})")


class IntervalCoverage(_Bounds):
    """The share of all components with ``lower <= target <= upper``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(covered, **kwargs)

    def interval(self, confidence: float = 0.95) -> tuple[Tensor, Tensor]:
        """Return the limits of the coverage if components were independent; see :func:`intervalnn.metrics.wilson`.

        Those of an image are not. ``SampleMean(coverage)`` has the spread from image to image.
        """
        with self.sync_context():
            return wilson(self.total.round(), self.components, confidence)


class MeanIntervalWidth(_Bounds):
    """The mean width over all components; ``update(lower, upper)`` will do, too."""

    higher_is_better = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(mean_width, **kwargs)

    def update(self, *parts: Prediction | Tensor) -> None:
        """Take in a batch: ``(prediction, target)``, ``(lower, upper, target)`` or ``(lower, upper)``."""
        if len(parts) == 2 and isinstance(parts[0], Tensor):
            parts = (*parts, parts[0])
        super().update(*parts)


class MedianIntervalWidth(Pooled):
    """The median width over all components, to a part in 1024."""

    higher_is_better = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(WidthQuantile(0.5), **kwargs)

    def update(self, *parts: Prediction | Tensor) -> None:
        """Take in a batch: ``(prediction, target)``, or ``(lower, upper, target)``."""
        super().update(*_pair(parts))


class IntervalScore(_Bounds):
    """The mean interval score over all components; see :func:`intervalnn.metrics.winkler`.

    Args:
        coverage: The share that the bounds should cover.
        kwargs: Those of :class:`torchmetrics.Metric`.
    """

    higher_is_better = False

    def __init__(self, coverage: float = 0.9, **kwargs: Any) -> None:
        self.coverage = share("coverage", coverage)
        super().__init__(self._score, **kwargs)

    def _score(self, prediction: Prediction, target: Tensor) -> Tensor:
        return winkler(prediction, target, coverage=self.coverage)
