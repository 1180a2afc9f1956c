"""Calibration: coverage promised on new data, for any method, by scaling its gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from intervalnn.calibration.groups import Groups
from intervalnn.calibration.misses import ROUNDING, Missed, factors, missed
from intervalnn.calibration.risk import allowed_share, images_needed
from intervalnn.data.pairs import predicted
from intervalnn.prediction import Method, Prediction, refuse_unfitted, without

__all__ = ["Calibration", "calibrate"]

Level = Literal["component", "image", "single image"]

_WIDER = {  # how to open gaps that are zero, by whether the method is an interval network
    True: "give gaps to more layers (the bias of the last among them), move the bounds out with solve_offsets",
    False: "fit the method longer or for a higher coverage, so that it has gaps there",
}


def calibrate(
    method: Method,
    loader: Iterable[Any],
    *,
    coverage: float | None = None,
    alpha: float | None = None,
    level: Level = "component",
    delta: float = 0.1,
    groups: Literal["width"] | Tensor | Callable[[Prediction], Tensor] | None = None,
) -> Calibration:
    """Choose the factor by which to scale the gaps so that coverage holds on new data.

    Both gaps are scaled around the point, so that the direction survives. The images of the loader must be drawn from
    the same distribution as new images, and must not have been used for training. Components of one image depend on
    each other, so the number of images counts, not the number of components. Every image counts the same, whatever its
    size. Memory does not grow with the number of images. Under ``torch.distributed`` each process brings its own
    images.

    Args:
        method: Its ``calibration`` is set to the result; methods of this library apply it. One that learns from
            data must have been fitted.
        loader: Yields pairs ``(x, y)``, or mappings with ``"input"`` and ``"target"``.
        coverage: The share of components that shall lie inside their bounds; 0.9 by default.
        alpha: The share that may lie outside; ``1 - coverage``, to be given instead of it.
        level: What is promised, see :attr:`Calibration.promise`. ``"component"``: the share
            missed is at most ``alpha`` on average (conformal risk control). ``"image"``: also
            for the calibration images that were drawn, but for an unlucky draw of probability
            ``delta`` (risk-controlling prediction sets). ``"single image"``: at most ``alpha``
            is missed within a new image, with probability ``1 - delta`` (split conformal).
        delta: The probability with which the two latter may fail.
        groups: Give each group a factor and a promise of its own. ``"width"``: four groups by
            the width of the bounds; the first batch says where they begin, and does not count
            otherwise, for else the promise would not be exact. A tensor of integers: the region
            of each component of an image. A function: from a prediction to such integers.

    Example:
        >>> class Constant:
        ...     def predict(self, x: Tensor) -> Prediction:
        ...         one = torch.ones_like(x)
        ...         return Prediction(x, below=one, above=one, score=one)
        >>> y = torch.linspace(-2, 2, 99)[:, None]
        >>> calibration = calibrate(Constant(), [(torch.zeros(99, 1), y)], coverage=0.9)
        >>> calibration.factors  # the 90th of 99 distances from the point, 1.8367, rounded up
        tensor([1.8377])
        >>> print(calibration.promise)
        Of the components of a new image drawn like the 99 for calibration, a share of at most 0.1 lies outside \
the bounds: on average over new images and over draws of the images for calibration.
    """
    alpha = _share_missed(coverage, alpha)
    if level not in get_args(Level):
        raise ValueError(f"level must be one of {', '.join(map(repr, get_args(Level)))}, got {level!r}")
    if not 0 < delta < 1:
        raise ValueError(f"delta, the probability to fail, must lie between 0 and 1, got {delta}")
    refuse_unfitted(method, f"this {type(method).__name__}")
    grouped, pairs = _grouped(groups, predicted(without(method, "calibration"), loader))
    found = missed(pairs, grouped, alpha=alpha if level == "single image" else None)
    limit, confidence = {"component": (alpha, None), "image": (alpha, delta), "single image": (delta, None)}[level]
    wider = _WIDER[hasattr(method, "solve_offsets")]
    chosen = [
        # A region that no image has, or a number that a function never gives, is no group.
        _smallest(each, limit, confidence, grouped.name(group), wider)
        if each.images or grouped.kind == "width"
        else math.nan
        for group, each in enumerate(found)
    ]
    images = [each.images for each in found]
    before = [1 - each.unscaled if each.images else math.nan for each in found]
    calibration = Calibration(
        torch.tensor(chosen), images, level=level, coverage=1 - alpha, delta=delta, groups=grouped, before=before
    )
    method.calibration = calibration  # type: ignore[attr-defined]
    return calibration


class Calibration(nn.Module):
    """Factors for the gaps, and what they promise.

    The factors are buffers, saved with the state of the method that holds them. ``settings``
    is all the rest, as plain values: ``Calibration.from_settings(settings)`` and then
    ``load_state_dict`` restore it.

    Args:
        factors: One for each group.
        images: How many images chose each factor.
        level: What is promised, as in :func:`calibrate`.
        coverage: The share of components inside that is promised.
        delta: The probability with which the promise may fail, where it may.
        groups: Which factor each component takes.
        before: What was kept of the images before the gaps were scaled: of each group the mean share of components
            inside, or at ``level="single image"`` the share of images that keep the promised share.
    """

    factors: Tensor

    def __init__(
        self,
        factors: Tensor,
        images: list[int],
        *,
        level: Level,
        coverage: float,
        delta: float,
        groups: Groups,
        before: list[float] | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("factors", factors)
        self.images = images
        self.level = level
        self.coverage = round(coverage, 12)
        self.delta = delta
        self.groups = groups
        self.before = [math.nan] * len(images) if before is None else before

    @property
    def alpha(self) -> float:
        """The share of components that may lie outside."""
        return round(1 - self.coverage, 12)

    def forward(self, prediction: Prediction) -> Prediction:
        """Return the prediction with its gaps, its score and its deviation scaled.

        The gaps come back in float32 at least: rounding coarser ones would cost coverage.
        """
        factors = self._factors_of(prediction)
        dtype = torch.promote_types(prediction.point.dtype, torch.float32)
        below, above, score = (
            part.to(dtype) * factors for part in (prediction.below, prediction.above, prediction.score)
        )
        deviation = None if prediction.deviation is None else prediction.deviation.to(dtype) * factors
        return Prediction(prediction.point, below, above, score, deviation)

    def _factors_of(self, prediction: Prediction) -> Tensor:
        """Return the factor of each component; only a function can name a group that was never met."""
        factors = self.factors.to(prediction.point.device)
        if self.groups.kind == "one":
            return factors[0]
        group = self.groups(prediction)
        if self.groups.kind == "function":
            new = [i for i in group.unique().tolist() if i >= len(self.images) or not self.images[i]]
            if new:
                raise ValueError(f"group {new[0]} was not met in calibration, so nothing is promised for it")
        return factors[group]

    @property
    def promise(self) -> str:
        """What holds on new data, in words."""
        counts = sorted({count for count in self.images if count})
        n = " to ".join(map(str, counts[:: max(len(counts) - 1, 1)]))
        share, sure = f"a share of at most {self.alpha:g}", f"with probability at least {round(1 - self.delta, 12):g}"
        text = {
            "component": f"Of the components of a new image drawn like the {n} for calibration, {share} lies outside "
            "the bounds: on average over new images and over draws of the images for calibration.",
            "image": f"Of the components of new images drawn like the {n} for calibration, {share} lies outside "
            f"the bounds on average over new images: {sure} over the draw of the images for calibration.",
            "single image": f"Of the components of a new image drawn like the {n} for calibration, {share} lies "
            f"outside the bounds: {sure} over the draw of this image and of those for calibration.",
        }[self.level]
        if self.groups.kind == "one":
            return text
        return f"{text} This holds for each group of components, among the images that have some of it."

    def settings(self) -> dict[str, Any]:
        """Return all but the buffers, as plain values."""
        return {
            "level": self.level,
            "coverage": self.coverage,
            "delta": self.delta,
            "images": list(self.images),
            "before": [None if math.isnan(kept) else round(kept, 6) for kept in self.before],
            "groups": self.groups.settings(),
        }

    @staticmethod
    def from_settings(settings: dict[str, Any], *, groups: Callable[[Prediction], Tensor] | None = None) -> Calibration:
        """Return a calibration whose buffers are still to be loaded; till then its factors are NaN.

        Args:
            settings: What :meth:`settings` returned.
            groups: The function that the groups came from, if they did: it cannot be saved.
        """
        before = [
            math.nan if kept is None else kept for kept in settings.get("before", [None] * len(settings["images"]))
        ]
        rest = {**settings, "groups": Groups.from_settings(settings["groups"], groups), "before": before}
        return Calibration(torch.full((len(settings["images"]),), float("nan")), **rest)

    def __str__(self) -> str:
        return self.promise

    def extra_repr(self) -> str:
        """Return the one line that printing the calibration adds."""
        return f"level={self.level!r}, coverage={self.coverage:g}, images={self.images}"


def _share_missed(coverage: float | None, alpha: float | None) -> float:
    if coverage is not None and alpha is not None:
        raise ValueError("give coverage or alpha, not both: one is 1 minus the other")
    name, value = ("alpha", alpha) if alpha is not None else ("coverage", 0.9 if coverage is None else coverage)
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")
    return value if alpha is not None else round(1 - value, 12)  # 1 - 0.9 is less than 0.1


def _grouped(groups: Any, pairs: Iterator[tuple[Prediction, Tensor]]) -> tuple[Groups, Iterator[Any]]:
    """Return the groups, and the batches left to calibrate on."""
    if not isinstance(groups, str):
        return Groups.of(groups), pairs
    grouped = Groups.of(groups, next(pairs)[0])
    second = next(pairs, None)
    if second is None:
        raise ValueError("groups='width' takes the first batch to choose the groups, and there is no second one")
    return grouped, chain([second], pairs)


def _smallest(missed: Missed, limit: float, confidence: float | None, where: str, wider: str) -> float:
    """Return the smallest factor that keeps the promise; the losses fall as the factor grows."""
    enough = images_needed(limit, confidence)
    if missed.images < enough:
        raise ValueError(
            f"this promise takes at least {enough} images{where}, got {missed.images}; "
            "calibrate on more, promise less, or make fewer groups"
        )
    allowed = allowed_share(missed.images, limit, confidence)
    too_much = missed.losses > allowed * missed.images + ROUNDING
    if bool(too_much[-1]):
        share = float(missed.losses[-1]) / missed.images
        raise ValueError(
            f"no factor keeps this promise: at most a share of {allowed:.3g}{where} may be missed, and scaling "
            f"leaves a share of {share:.3g} uncovered, because gaps on the side of the target are zero; {wider}, "
            "or promise less"
        )
    return float(factors()[too_much.sum()])
