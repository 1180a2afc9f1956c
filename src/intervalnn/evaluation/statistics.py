"""Statistics: a metric over runs, and two methods compared on the same samples."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from intervalnn.evaluation.tables import number

__all__ = ["DRAWS", "Comparison", "Groups", "Spread", "Values", "by_group", "compared", "compared_by", "spread"]

DRAWS = 10_000  # of the bootstrap
Values = np.ndarray[Any, Any]  # one number per sample, NaN where it is undefined
Groups = Sequence[Sequence[str]]  # for each run the group of each sample, such as its subject


class Spread(NamedTuple):
    """A metric of a method over runs.

    Attributes:
        mean: Mean over runs of the mean over samples; NaN where no sample has a value.
        sd: Standard deviation over runs; NaN if there is just one.
        undefined: How many samples have no value and were left out, of all runs.
        samples: How many samples there are, of all runs.
    """

    mean: float
    sd: float
    undefined: int
    samples: int

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "undefined"
        return number(self.mean, 4) + ("" if math.isnan(self.sd) else f" ± {number(self.sd, 2)}")


class Comparison(NamedTuple):
    """How much larger a metric is for one method than for another, on the same samples.

    Attributes:
        difference: The first method's mean minus the second's.
        lower: Lower end of the interval that holds the true difference with 95 % confidence.
        upper: Upper end of it.
        p: The two-sided p-value of the bootstrap; never below that of a sign test in which all pairs agree.
        pairs: How many samples, or groups of samples, have a value for both.
    """

    difference: float
    lower: float
    upper: float
    p: float
    pairs: int


def spread(runs: Sequence[Values]) -> Spread:
    """Return mean and standard deviation over runs."""
    means = [float(np.mean(v[~np.isnan(v)])) for v in runs if not np.isnan(v).all()]
    undefined, samples = sum(int(np.isnan(v).sum()) for v in runs), sum(len(v) for v in runs)
    mean = statistics.fmean(means) if means else math.nan
    sd = statistics.stdev(means) if len(means) > 1 and math.isfinite(mean) else math.nan
    return Spread(mean, sd, undefined, samples)


def compared(runs: Iterable[tuple[Values, Values]], *, draws: int, seed: int) -> Comparison:
    """Compare two methods by a bootstrap that draws samples within each run.

    Args:
        runs: The values of both methods for the same samples, run by run.
        draws: How often to draw.
        seed: Of the draws.
    """
    rng, shift, total, pairs = np.random.default_rng(seed), np.zeros(draws), [], 0
    for a, b in runs:
        both = a - b
        both = both[~np.isnan(both)]
        if not len(both):
            continue
        pairs += len(both)
        total.append(float(both.mean()))
        shift += _resampled_means(both, draws, rng)
    if not total:
        return Comparison(math.nan, math.nan, math.nan, math.nan, 0)
    return _judged(statistics.fmean(total), shift / len(total), pairs)


def compared_by(runs: Iterable[tuple[Values, Values]], groups: Groups, *, draws: int, seed: int) -> Comparison:
    """Compare two methods by a bootstrap that draws groups, each with all of its samples in all runs.

    Samples of a group depend on each other, such as the slices of a subject, and so do runs on the same samples. The
    difference is that of the means over the samples of all runs.

    Args:
        runs: The values of both methods for the same samples, run by run.
        groups: The group of each sample.
        draws: How often to draw.
        seed: Of the draws.
    """
    found = list(_grouped((a - b for a, b in runs), groups).values())
    if not found:
        return Comparison(math.nan, math.nan, math.nan, math.nan, 0)
    sums, counts = np.array([sum(own) for own in found]), np.array([len(own) for own in found])
    rng, shift = np.random.default_rng(seed), np.empty(draws)
    for start in range(0, draws, 500):
        chosen = rng.integers(0, len(found), (min(500, draws - start), len(found)))
        shift[start : start + 500] = sums[chosen].sum(1) / counts[chosen].sum(1)
    return _judged(float(sums.sum() / counts.sum()), shift, len(found))


def by_group(runs: Iterable[Values], groups: Groups) -> dict[str, float]:
    """Return the mean over the samples of each group, in all runs; groups without a value are left out."""
    return {name: statistics.fmean(own) for name, own in _grouped(runs, groups).items()}


def _grouped(runs: Iterable[Values], groups: Groups) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for values, names in zip(runs, groups, strict=True):
        for name, value in zip(names, values.tolist(), strict=True):
            if not math.isnan(value):
                found[name].append(value)
    return found


def _judged(difference: float, shift: Values, pairs: int) -> Comparison:
    """Return what so many differences of resampled pairs say."""
    lower, upper = np.quantile(shift, [0.025, 0.975], method="inverted_cdf")  # infinite ones, too
    beyond = min(float((shift <= 0).mean()), float((shift >= 0).mean()))
    fewest = max(1 / len(shift), 2.0 ** (1 - pairs))  # differences of one sign, by chance
    p = min(1.0, max(2 * beyond, fewest))
    return Comparison(difference, float(lower), float(upper), p, pairs)


def _resampled_means(values: Values, draws: int, rng: np.random.Generator) -> Values:
    """Return the means of bootstrap resamples, a few draws at a time, to limit memory."""
    n, sizes = len(values), [min(500, draws - start) for start in range(0, draws, 500)]
    return np.concatenate([values[rng.integers(0, n, (size, n))].mean(1) for size in sizes])
