"""Summary: many numbers in few, with what is undefined left out and counted."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor

from intervalnn.metrics.checks import share

__all__ = ["NO_MOMENTS", "Mean", "mean_defined", "mean_of", "merged", "moments", "wilson"]


class Mean(NamedTuple):
    """The mean of what is defined.

    Attributes:
        mean: NaN where nothing is defined.
        sd: The standard deviation of the sample; NaN where fewer than two are defined.
        defined: How many numbers were averaged.
        total: How many there were, with the undefined ones.
    """

    mean: float
    sd: float
    defined: int
    total: int


def mean_defined(values: Tensor) -> Mean:
    """Return mean and spread of the numbers that are not NaN, and how many these are.

    Infinite numbers are defined: the mean of a PSNR is infinite where one of them is.

    Example:
        >>> mean_defined(torch.tensor([1.0, math.nan, 3.0]))
        Mean(mean=2.0, sd=1.4142135623730951, defined=2, total=3)
    """
    return mean_of(moments(values))


# Count, sum, sum of squares around the mean, and count with the undefined: of nothing.
NO_MOMENTS = (0.0, 0.0, 0.0, 0.0)


def moments(values: Tensor) -> Tensor:
    """Return count, sum and sum of squares around the mean of the defined numbers, and the count of all."""
    flat = values.detach().double().flatten()
    defined = flat[~flat.isnan()]
    around = (defined - defined.mean()).square().sum() if len(defined) else flat.new_zeros(())
    counts = flat.new_tensor([len(defined), len(flat)])
    return torch.stack((counts[0], defined.sum(), around, counts[1]))


def merged(parts: Tensor) -> Tensor:
    """Return the moments of all, from those of the parts, ``(parts, 4)``; without cancellation."""
    count, total, around, all_ = parts.sum(0)
    filled = parts[parts[:, 0] > 0]
    means = filled[:, 1] / filled[:, 0]
    between = (filled[:, 0] * (means - total / count).square()).sum()
    return torch.stack((count, total, around + between, all_))


def mean_of(found: Tensor) -> Mean:
    """Return the mean that moments stand for."""
    count, total, around, all_ = found.tolist()
    mean = total / count if count else math.nan
    sd = math.sqrt(around / (count - 1)) if count > 1 and math.isfinite(mean) else math.nan
    return Mean(mean, sd, int(count), int(all_))


def wilson(hits: Tensor | float, n: Tensor | float, confidence: float = 0.95) -> tuple[Tensor, Tensor]:
    """Return lower and upper limit of the probability of a hit, after ``hits`` out of ``n`` (Wilson, 1927).

    The trials must be independent. The components of one image are not, so that limits from
    counts of components are too narrow; for honest ones count images, or resample them.

    Example:
        >>> lower, upper = wilson(90, 100)
        >>> print(f"{lower:.4f} {upper:.4f}")
        0.8256 0.9448
    """
    z = NormalDist().inv_cdf((1 + share("confidence", confidence)) / 2)
    hits = torch.as_tensor(hits, dtype=torch.float64)
    n = torch.as_tensor(n, dtype=torch.float64, device=hits.device)
    if bool(((hits < 0) | (hits > n)).any()):
        raise ValueError("hits must lie between 0 and n; give counts, not shares")
    spread = hits * (n - hits) / n.clamp(min=1e-300)
    center, reach = (hits + z * z / 2) / (n + z * z), z * (spread + z * z / 4).sqrt() / (n + z * z)
    return (center - reach).clamp(min=0.0), (center + reach).clamp(max=1.0)
