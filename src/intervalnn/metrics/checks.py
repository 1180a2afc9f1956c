"""Checks: a prediction and its target side by side, once it is known that they can be compared."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from intervalnn.prediction import Prediction

__all__ = ["Components", "compared", "share"]


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Predictions and targets as ``(batch, components)``, in float64 whatever they came in.

    Attributes:
        distance: ``target - point``.
        below: The gaps below the point.
        above: The gaps above it.
        score: The uncertainty.
        deviation: The standard deviation of a normal density, for methods that have one.
    """

    distance: Tensor
    below: Tensor
    above: Tensor
    score: Tensor
    deviation: Tensor | None

    @property
    def error(self) -> Tensor:
        """The absolute error."""
        return self.distance.abs()

    @property
    def width(self) -> Tensor:
        """The width of the bounds."""
        return self.below + self.above

    @property
    def inside(self) -> Tensor:
        """Whether the target lies within the bounds, from the gaps: ends that are rounded lose some."""
        return (self.distance <= self.above) & (-self.distance <= self.below)

    @property
    def missed(self) -> Tensor:
        """How far the target lies outside the bounds, on either side."""
        return (self.distance - self.above).clamp(min=0.0) + (-self.distance - self.below).clamp(min=0.0)


def compared(prediction: Prediction, target: Tensor) -> Components:
    """Return the components of a prediction and its target; refuse what no metric can judge."""
    _check_kinds(prediction, target)
    _check_shapes(prediction.point, target)
    target = target.detach().to(prediction.point.device)
    below, above = _amount(prediction.below, "gap below"), _amount(prediction.above, "gap above")
    score, deviation = _amount(prediction.score, "score"), prediction.deviation
    distance = _flat(target, "target") - _flat(prediction.point, "point")
    return Components(distance, below, above, score, None if deviation is None else _amount(deviation, "deviation"))


def _check_kinds(prediction: Prediction, target: Tensor) -> None:
    if not isinstance(prediction, Prediction):
        raise TypeError(f"a metric needs a Prediction, got a {type(prediction).__name__}; see Prediction.of")
    if not isinstance(target, Tensor):
        raise TypeError(f"the target must be a tensor, got a {type(target).__name__}; see torch.as_tensor")
    if prediction.point.is_complex() or target.is_complex():
        raise TypeError("complex predictions cannot be ordered; compare real and imaginary part apart")


def _check_shapes(point: Tensor, target: Tensor) -> None:
    if target.shape != point.shape:
        raise ValueError(
            f"target must have shape {tuple(point.shape)}, like the prediction, got {tuple(target.shape)}; "
            "reshape one of them"
        )
    if point.ndim == 0:
        raise ValueError("the first dimension must be that of the samples, got a single number; use unsqueeze(0)")
    if point.numel() == 0:
        raise ValueError(f"there must be at least one sample and one component, got shape {tuple(point.shape)}")


def _flat(part: Tensor, name: str) -> Tensor:
    if not bool(part.isfinite().all()):
        raise ValueError(f"the {name} must be finite, got NaN or infinity; leave out such samples")
    return part.detach().double().reshape(len(part), -1)


def _amount(part: Tensor, name: str) -> Tensor:
    flat = _flat(part, name)
    if bool((flat < 0).any()):
        raise ValueError(f"the {name} of a prediction must be >= 0, got {float(flat.min())}; see Prediction")
    return flat


def share(name: str, value: float) -> float:
    """Return a share that lies strictly between 0 and 1; refuse others."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")
    return value
