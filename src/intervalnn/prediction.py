"""Prediction: what every method returns and every metric takes; Method: what a method is."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from intervalnn.interval import Interval
from intervalnn.torch_private import shallow_copy

__all__ = ["Method", "Prediction", "is_fitted", "one", "refuse_unfitted", "stand_in", "without"]

_KEYS = ("point", "lower", "upper", "below", "above", "score", "direction")


@dataclass(frozen=True, slots=True, eq=False)
class Prediction(Mapping[str, Tensor]):
    """A prediction, how far the truth may lie below and above it, and how uncertain it is.

    Named access and mapping access give the same; anything but a name picks samples.

    Attributes:
        point: The underlying model's own prediction, ``(batch, *signal)``.
        below: How far the bounds reach below it, ``>= 0``.
        above: How far they reach above it, ``>= 0``.
        score: Uncertainty of each component, ``>= 0``.
        deviation: Standard deviation of a normal density around the point, for methods that have one.

    Example:
        >>> p = Prediction.symmetric(torch.zeros(3, 2), torch.ones(3, 2), coverage=0.9)
        >>> p.upper[0], p["upper"][0], p[1:].point.shape
        (tensor([1.6449, 1.6449]), tensor([1.6449, 1.6449]), torch.Size([2, 2]))
    """

    point: Tensor
    below: Tensor
    above: Tensor
    score: Tensor
    deviation: Tensor | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            part = getattr(self, field.name)
            if part is None and field.name == "deviation":
                continue
            if not isinstance(part, Tensor):
                raise TypeError(f"the {field.name} of a Prediction must be a tensor, got a {type(part).__name__}")
            if part.shape != self.point.shape:
                raise ValueError(
                    f"the {field.name} must have shape {tuple(self.point.shape)}, like the point, "
                    f"got {tuple(part.shape)}"
                )

    @staticmethod
    def of(bounds: Interval) -> Prediction:
        """Return bounds as a prediction, with their width as the score (Sec. 3)."""
        return Prediction(bounds.point, bounds.below, bounds.above, bounds.width)

    @staticmethod
    def symmetric(point: Tensor, deviation: Tensor, *, coverage: float) -> Prediction:
        """Return the central interval of a normal density; its deviation is the score."""
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must lie between 0 and 1, got {coverage}")
        gap = NormalDist().inv_cdf((1 + coverage) / 2) * deviation
        return Prediction(point, gap, gap, deviation, deviation)

    @staticmethod
    def cat(predictions: Sequence[Prediction]) -> Prediction:
        """Join batches into one."""
        if not predictions:
            raise ValueError("there is no prediction to join: give at least one")
        return predictions[0]._each(lambda name: torch.cat([getattr(p, name) for p in predictions]))

    @property
    def bounds(self) -> Interval:
        """The bounds as an interval."""
        return Interval(self.point, self.below, self.above)

    @property
    def lower(self) -> Tensor:
        """The lower bound."""
        return self.point - self.below

    @property
    def upper(self) -> Tensor:
        """The upper bound."""
        return self.point + self.above

    @property
    def width(self) -> Tensor:
        """``upper - lower``, from the gaps, so that small widths keep their digits."""
        return self.below + self.above

    @property
    def direction(self) -> Tensor:
        """``+1`` where the gap above is the larger, ``-1`` where that below is, 0 where neither.

        Large errors would lie on that side; the truth need not be more likely there.
        """
        return torch.sign(self.above - self.below)

    def to(self, *args: Any, **kwargs: Any) -> Prediction:
        """Return it on another device or in another dtype; the arguments are those of ``Tensor.to``."""
        return self._each(lambda name: getattr(self, name).to(*args, **kwargs))

    def cpu(self) -> Prediction:
        """Return it on the CPU."""
        return self.to("cpu")

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self._each(lambda name: getattr(self, name)[key])
        if key in _KEYS or (key == "deviation" and self.deviation is not None):
            return getattr(self, key)
        raise KeyError(f"a prediction has {', '.join(self)}, not {key!r}")

    def __iter__(self) -> Iterator[str]:
        yield from _KEYS
        if self.deviation is not None:
            yield "deviation"

    def __len__(self) -> int:
        return len(_KEYS) + (self.deviation is not None)

    def __repr__(self) -> str:
        return f"Prediction(shape={tuple(self.point.shape)}, dtype={self.point.dtype}, device={self.point.device})"

    def _each(self, part: Callable[[str], Tensor]) -> Prediction:
        names = (field.name for field in fields(self))
        return Prediction(**{name: part(name) for name in names if getattr(self, name) is not None})


class Method(Protocol):
    """Anything that predicts with bounds: an interval network, or a baseline."""

    def predict(self, *args: Any) -> Prediction:
        """Return point, bounds, score and direction."""
        ...


def one(prediction: Any) -> Prediction:
    """Return what a method predicts, once it is known to be a single prediction."""
    if not isinstance(prediction, Prediction):
        raise TypeError(f"predict must return one Prediction, got a {type(prediction).__name__}; wrap the method")
    return prediction


def is_fitted(method: Any) -> bool:
    """Say whether a method that learns from data has done so; one that says nothing of it counts as fitted.

    A baseline tells by ``fitted``. An interval network shows it: some gap is not zero, be it of a weight or of a
    scout, or offsets move its bounds.
    """
    gaps = getattr(method, "gaps", None)
    if isinstance(gaps, nn.Module):
        every = [gaps, *(scout.gaps for scout in getattr(method, "scouts", {}).values())]
        opened = any(bool(gap.any()) for own in every for gap in own.parameters())
        return opened or getattr(method, "offsets", None) is not None
    return bool(getattr(method, "fitted", True))


def refuse_unfitted(method: Any, name: str) -> None:
    """Raise if a method was never fitted, and should have been: what it predicts then means nothing."""
    if not is_fitted(method):
        raise ValueError(f"{name} was never fitted; call inn.fit(method, train) first")


def stand_in(method: Any) -> Any:
    """Return a shallow copy of a method, whose attributes may be set without changing those of the method itself.

    Other threads may predict with the method meanwhile.
    """
    return shallow_copy(method) if isinstance(method, nn.Module) else copy.copy(method)


def without(method: Any, *names: str) -> Any:
    """Return a method that does not do to its bounds afterwards what these names say, such as ``"calibration"``."""
    off = [name for name in names if getattr(method, name, None) is not None]
    method = stand_in(method) if off else method
    for name in off:
        setattr(method, name, None)
    return method
