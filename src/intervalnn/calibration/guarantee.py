"""Guarantee: what the interval loss itself promises (App. A), and which tightness gives which coverage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import torch
from torch import Tensor

from intervalnn.calibration.processes import summed
from intervalnn.data.pairs import predicted
from intervalnn.prediction import Method, Prediction, without

__all__ = ["MarkovCurve", "Offsets", "beta_for_coverage", "beta_from_residuals", "markov_curve", "solve_offsets"]


# --- the two conditions of the bound ---


@dataclass(frozen=True, slots=True)
class Offsets:
    """How far to move the bounds out, the same for every component; negative to move them in.

    Attributes:
        below: What is added to the gaps below.
        above: What is added to the gaps above.

    Example:
        >>> one = torch.ones(1)
        >>> moved = Offsets(below=0.5, above=-2.0)(Prediction(one, below=one, above=one, score=2 * one))
        >>> moved.lower, moved.upper, moved.score
        (tensor([-0.5000]), tensor([1.]), tensor([1.5000]))
    """

    below: float
    above: float

    def __call__(self, prediction: Prediction) -> Prediction:
        """Return the prediction with its bounds moved; a score that is the width stays the width."""
        dtype = torch.promote_types(prediction.point.dtype, torch.float32)
        below = (prediction.below.to(dtype) + self.below).clamp(min=0.0)
        above = (prediction.above.to(dtype) + self.above).clamp(min=0.0)
        wider = (below - prediction.below) + (above - prediction.above)
        return Prediction(prediction.point, below, above, (prediction.score + wider).clamp(min=0.0))


def solve_offsets(method: Method, loader: Iterable[Any], *, beta: float) -> Offsets:
    """Return the smallest offsets with which the coverage bound holds on these data (App. A).

    The coverage bound has a condition: targets exceed the upper bound, and fall below the lower bound, by at most
    ``beta / 2`` on average. The condition holds where the loss (Eq. 2) is minimal in the last layer's biases, but
    training stops before the minimum. The mean exceedance falls piecewise linearly as an offset grows, so sorting finds
    the smallest offset exactly.

    All images count the same. Memory holds three numbers for each component; if these do not fit, take a part of the
    training data.

    Args:
        method: Its ``calibration`` and ``offsets``, if any, are left aside.
        loader: Yields pairs ``(x, y)``, or mappings with ``"input"`` and ``"target"``.
        beta: The tightness parameter of the interval loss.
    """
    _positive(beta)
    below, above, images = [], [], 0
    for prediction, target in predicted(without(method, "calibration", "offsets"), loader):
        distance = target.double() - prediction.point.double()
        below.append(_side(-distance, prediction.below))
        above.append(_side(distance, prediction.above))
        images += len(target)
    return Offsets(*(_smallest_offset(torch.cat(side, 1), images * beta / 2) for side in (below, above)))


def _side(distance: Tensor, gap: Tensor) -> Tensor:
    """Return distance, gap and weight of the targets on one side of the point, and of the largest gap."""
    weight = torch.full_like(distance, len(distance) / distance.numel())  # so that images count the same
    kept = (distance > 0) | (gap == gap.max())
    return torch.stack((distance.clamp(min=0.0)[kept], gap.double()[kept], weight[kept])).cpu()


def _smallest_offset(side: Tensor, allowed: float) -> float:
    """Return the smallest offset at which the weighted sum of ``(distance - gap - offset)+`` is at most ``allowed``.

    Where gap and offset add up to less than zero, the whole distance counts. So as the offset falls, the sum rises with
    a component's weight from ``distance - gap`` on, and is constant from ``-gap`` on.
    """
    distance, gap, weight = side
    knots, order = torch.cat((distance - gap, -gap)).sort(descending=True)
    slopes = torch.cat((weight, -weight))[order].cumsum(0).clamp(min=0.0)  # sums of weights, but for rounding
    sums = torch.cat((knots.new_zeros(1), (slopes[:-1] * -knots.diff()).cumsum(0)))
    last = int(torch.searchsorted(sums, allowed, right=True)) - 1
    if last == len(knots) - 1:
        return float(knots[last])  # even without gaps
    return float(knots[last] - (allowed - sums[last]) / slopes[last])


# --- the bound itself ---


@dataclass(frozen=True, slots=True, eq=False)
class MarkovCurve:
    """What the coverage bound promises and what is found, for each factor (App. A).

    The paper states the bound given ``x``, but its proof shows it on average over ``x`` only,
    and over the components: ``promised`` and ``inside`` are such averages. What it says of
    single inputs is weaker, ``promised_inputs``: a share of at least ``1 - 1 / (factor * alpha)``
    of them has at most a share of ``alpha`` of its components outside.

    Attributes:
        factors: Multiples of ``beta`` by which the bounds are moved out.
        promised: ``1 - 1 / factor``; at least 0.
        inside: Share of the components strictly inside the bounds thus moved.
        promised_inputs: ``1 - 1 / (factor * alpha)``; at least 0.
        inputs: Share of the images with at most a share of ``alpha`` of their components outside.
        alpha: The share that an image may have outside.
        beta: The tightness parameter.
        missed_below: How far targets lie below the lower bound, on average.
        missed_above: How far they lie above the upper bound.
    """

    factors: Tensor
    promised: Tensor
    inside: Tensor
    promised_inputs: Tensor
    inputs: Tensor
    alpha: float
    beta: float
    missed_below: float
    missed_above: float

    @property
    def holds(self) -> bool:
        """Whether the condition of the bound is met on these data, so that it must hold on them."""
        return max(self.missed_below, self.missed_above) <= self.beta / 2 * (1 + 1e-6)


def markov_curve(
    method: Method,
    loader: Iterable[Any],
    *,
    beta: float,
    factors: Sequence[float] | Tensor = (1, 2, 5, 10, 20, 50, 100),
    alpha: float = 0.1,
    offsets: Offsets | None = None,
) -> MarkovCurve:
    """Return the coverage bound beside the coverage found, for the bounds that the method predicts.

    The bound is a statement about the data on which the loss was minimised, and may fail on other data. For coverage on
    other data use :func:`intervalnn.calibrate`.

    Args:
        method: Anything that predicts.
        loader: Yields pairs ``(x, y)``, or mappings with ``"input"`` and ``"target"``.
        beta: The tightness parameter of the interval loss.
        factors: Multiples of ``beta`` by which to move the bounds out, the paper's lambda.
        alpha: The share of its components that an image may have outside.
        offsets: What to move the bounds by before.
    """
    _positive(beta)
    multiples = torch.as_tensor(factors, dtype=torch.float64)
    if not bool((multiples > 0).all()):
        raise ValueError(f"factors must be positive, got {float(multiples.min())} at the least")
    sums = torch.zeros(3 + 2 * len(multiples), dtype=torch.float64)
    for prediction, target in predicted(method, loader):
        sums = sums.to(target.device) + markov_sums(
            offsets(prediction) if offsets else prediction, target, beta, multiples, alpha
        )
    return markov_of(summed(sums).cpu(), beta, multiples, alpha)


def markov_of(sums: Tensor, beta: float, multiples: Tensor, alpha: float) -> MarkovCurve:
    """Return the curve that the sums of :func:`markov_sums` over all batches stand for."""
    below, above = (sums[1:3] / sums[0]).tolist()
    inside, inputs = (sums[3:] / sums[0]).view(2, -1)
    promised, of_inputs = ((1 - 1 / (multiples * share)).clamp(min=0.0) for share in (1.0, alpha))
    return MarkovCurve(multiples, promised, inside, of_inputs, inputs, alpha, beta, below, above)


def markov_sums(prediction: Prediction, target: Tensor, beta: float, multiples: Tensor, alpha: float) -> Tensor:
    """Return the number of images, how far they exceed either bound, and for each factor how many are inside."""
    distance = target.double() - prediction.point.double()
    below = (-distance - prediction.below.double()).reshape(len(target), -1)
    above = (distance - prediction.above.double()).reshape(len(target), -1)
    beyond = torch.maximum(below, above)
    inside = torch.stack([(beyond < multiple * beta).double().mean(1) for multiple in multiples.tolist()])
    few_outside = (1 - inside <= alpha + 1e-12).double()
    exceeded = [part.clamp(min=0.0).mean(1).sum() for part in (below, above)]
    return torch.cat((torch.stack([distance.new_tensor(len(target)), *exceeded]), inside.sum(1), few_outside.sum(1)))


# --- which tightness for which coverage ---


def beta_for_coverage(coverage: float, mae: float, *, errors: Literal["laplace", "gaussian"] = "laplace") -> float:
    """Return the tightness at which bounds of constant width cover this share, for errors of known shape.

    The paper takes ``beta`` near the mean absolute error; at that value the best width is zero.
    For errors ``r``, the interval loss is least where the upper gap ``u`` has
    ``E[(r - u)+] = beta / 2``. For Laplace errors this gives ``coverage = 1 - beta / mae``.

    Args:
        coverage: Share of the targets inside.
        mae: Mean absolute error of the underlying model.
        errors: The shape of its errors, which are symmetric around zero.

    Example:
        >>> round(beta_for_coverage(0.9, mae=0.02), 6), round(beta_for_coverage(0.9, mae=0.02, errors="gaussian"), 6)
        (0.002, 0.001047)
    """
    _share(coverage)
    if errors == "laplace":
        return (1 - coverage) * mae
    if errors != "gaussian":
        raise ValueError(f"errors must be 'laplace' or 'gaussian', got {errors!r}; see also beta_from_residuals")
    normal = NormalDist()
    gap = normal.inv_cdf((1 + coverage) / 2)
    return 2 * mae * math.sqrt(math.pi / 2) * (normal.pdf(gap) - gap * (1 - coverage) / 2)


def beta_from_residuals(residuals: Tensor, coverage: float) -> float:
    """Return the largest tightness at which bounds of constant width cover this share of the residuals.

    A residual ``r > 0`` is covered when the best gap above, ``E[(R - u)+] = beta / 2``, is at
    least ``r``: when ``beta <= 2 E[(R - r)+]``; and likewise below. So each residual has a
    largest ``beta`` of its own, and the answer is a quantile of them. Nothing is assumed of the
    shape. Bounds that adapt to the input cover a little more or less.

    Args:
        residuals: ``target - point`` of the underlying model, of any shape.
        coverage: Share of the residuals inside.
    """
    _share(coverage)
    flat = residuals.detach().flatten().double()
    if not len(flat) or not bool(flat.isfinite().all()):
        raise ValueError("residuals must be finite and at least one; leave out NaN and infinity")
    largest = torch.cat((_largest_beta(flat[flat > 0], len(flat)), _largest_beta(-flat[flat < 0], len(flat))))
    inside = math.ceil(coverage * len(flat) - 1e-9) - int((flat == 0).sum())  # of those that need a gap
    if inside <= 0:
        raise ValueError(f"a share of {coverage} of the residuals is zero: bounds of any tightness cover it")
    beta = float(largest.sort(descending=True).values[inside - 1])
    if beta <= 0:
        raise ValueError(
            f"no beta covers {coverage} of {len(flat)} residuals, for the largest one is always missed; take more"
        )
    return beta


def _largest_beta(distance: Tensor, total: int) -> Tensor:
    """Return ``2 E[(D - d)+]`` at each distance ``d``, in falling order of ``d``."""
    ordered = distance.sort(descending=True).values
    count = torch.arange(len(ordered), dtype=torch.float64, device=ordered.device)
    return 2 * (ordered.cumsum(0) - ordered - count * ordered).clamp(min=0.0) / total


def _positive(beta: float) -> None:
    if not beta > 0:
        raise ValueError(f"beta must be positive, got {beta}")


def _share(coverage: float) -> None:
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage}")
