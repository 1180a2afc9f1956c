"""Words: what the numbers of a group say, in sentences, and what each metric means."""

from __future__ import annotations

import math
from typing import NamedTuple

from intervalnn.evaluation.report.groups import Group
from intervalnn.evaluation.statistics import Comparison

__all__ = ["KINDS", "Meaning", "Verdict", "also_best", "meaning", "percent", "promises", "verdict"]

EQUAL = " at equal coverage"
LEVEL = 0.05  # of Results.best


class Meaning(NamedTuple):
    """What a metric is.

    Attributes:
        kind: One of :data:`KINDS`.
        name: What to call it in a sentence.
        text: What it is, in words.
    """

    kind: str
    name: str
    text: str


# In the order of the table.
KINDS = ("calibrated", "as fitted", "uncertainty score", "prediction", "as published", "others")

MEANINGS = {
    "coverage": Meaning("as fitted", "coverage", "Share of the components that lie inside their bounds."),
    "width": Meaning("as fitted", "width", "Mean width of the bounds."),
    "mean_width": Meaning("as fitted", "width", "Mean width of the bounds."),
    "median_width": Meaning("as fitted", "median width", "Median width of the bounds."),
    "winkler": Meaning(
        "as fitted", "interval score", "Winkler's interval score: width, and a price for what is missed."
    ),
    "pinball": Meaning("as fitted", "pinball loss", "Pinball loss of both bounds as quantiles."),
    "score": Meaning("uncertainty score", "mean score", "Mean uncertainty score."),
    "pearson": Meaning("uncertainty score", "Pearson", "Correlation of score and absolute error within a sample."),
    "spearman": Meaning("uncertainty score", "Spearman", "Correlation of the ranks of score and absolute error."),
    "pwcc": Meaning(
        "uncertainty score", "PWCC", "Precision-weighted correlation coefficient of score and absolute error."
    ),
    "ause": Meaning(
        "uncertainty score",
        "AUSE",
        "Area between the sparsification curve of the score and that of the error itself; 0 is perfect.",
    ),
    "direction_accuracy": Meaning(
        "uncertainty score", "direction right", "How often the target lies on the wider side."
    ),
    "crps": Meaning("uncertainty score", "CRPS", "Continuous ranked probability score of the predicted density."),
    "nll": Meaning("uncertainty score", "NLL", "Negative log-likelihood of the predicted density."),
    "mse": Meaning("prediction", "MSE", "Mean squared error of the prediction."),
    "mae": Meaning("prediction", "MAE", "Mean absolute error of the prediction."),
    "centre_mae": Meaning("prediction", "centre's MAE", "Mean absolute error of the middle between the bounds."),
    "psnr": Meaning("prediction", "PSNR", "Peak signal-to-noise ratio of the prediction, in dB."),
    "ssim": Meaning("prediction", "SSIM", "Structural similarity of prediction and target."),
    "paper_coverage": Meaning("as published", "coverage", "Coverage that counts misses above the bounds only."),
    "paper_pwcc": Meaning("as published", "PWCC", "PWCC with a cosine in place of the correlation."),
}


def meaning(metric: str) -> Meaning:
    """Return what a metric is; of a user's own metric only the name is known."""
    if metric.endswith(EQUAL):
        plain = meaning(metric.removesuffix(EQUAL))
        return Meaning(
            "calibrated", plain.name, plain.text.removesuffix(".") + ", after calibration on held-out samples."
        )
    return MEANINGS.get(metric, Meaning("others", metric.replace("_", " "), ""))


def percent(share: float, digits: int = 4) -> str:
    r"""Return a share in percent.

    Example:
        >>> percent(0.9), percent(0.995), percent(0.88123, 3)
        ('90\xa0%', '99.5\xa0%', '88.1\xa0%')
    """
    return f"{100 * share:.{digits}g}\N{NO-BREAK SPACE}%"


class Verdict(NamedTuple):
    """Which method leads, and whether that is more than chance.

    Attributes:
        leader: The method with the best mean.
        sure: Whether it is better than every other one beyond chance.
        text: The rest of the sentence that begins with its name.
    """

    leader: str
    sure: bool
    text: str


def verdict(group: Group) -> Verdict | None:
    """Return which method is best; None if no metric says what is better."""
    results, metric = group.results, group.ranked_by
    if metric is None:
        return None
    leader, *others = group.ranked
    value, best = results.spread(leader, metric), f"{group.first.better[metric]} is better"
    if not others:
        text = f"is the only method: {meaning(metric).name} {value} ({best}). There is nothing to compare it with."
        return Verdict(leader, False, text)
    extreme = "lowest" if group.first.better[metric] == "lower" else "highest"
    has = f"has the {extreme} {meaning(metric).name} at {percent(group.first.coverage)} coverage, {value}"
    if metric.removesuffix(EQUAL) == metric:
        has += ", though not calibrated to equal coverage"
    if results.best(metric) == leader:
        every = "every other method" if len(others) > 1 else others[0]
        return Verdict(leader, True, f"{has}: ahead of {every} beyond chance{_runs_ahead(group, leader)}.")
    tied = {name: results.compare(metric, leader, name) for name in others}
    close = {name: found for name, found in tied.items() if not found.p < LEVEL / len(others)}
    parts = "; ".join(f"{name} {_difference(found)}" for name, found in close.items())
    return Verdict(leader, False, f"{has}, but not beyond chance. Differences that may be chance: {parts}.")


def _difference(found: Comparison) -> str:
    if not found.pairs:
        return "(no sample in common)"
    return f"({found.difference:+.3g}, 95 % interval {found.lower:+.3g} to {found.upper:+.3g}, p = {found.p:.2g})"


def _runs_ahead(group: Group, leader: str) -> str:
    """Return in how many runs the leader is ahead, because the bootstrap does not cover the variation between runs."""
    runs, metric = group.results.runs, group.ranked_by
    assert metric is not None
    if len(runs) < 2:
        return ""
    sign = 1.0 if group.first.better[metric] == "lower" else -1.0
    per_run = [
        {name: sign * float(group.results.per_run(name, metric)[i].mean()) for name in group.results.methods}
        for i in range(len(runs))
    ]
    ahead = sum(all(not other < means[leader] for other in means.values()) for means in per_run)
    return f", and in {'each' if ahead == len(runs) else ahead} of {len(runs)} runs"


def also_best(group: Group) -> dict[str, list[str]]:
    """Return the methods that are best beyond chance in other metrics, and in which; published ones do not count."""
    found: dict[str, list[str]] = {}
    for metric in group.results.metrics:
        known, best = meaning(metric), group.results.best(metric)
        if best is None or metric == group.ranked_by or known.kind == "as published":
            continue
        apart = f" {known.kind}" if known.kind in ("calibrated", "as fitted") else ""
        found.setdefault(best, []).append(known.name + apart)
    return found


def promises(group: Group) -> list[str]:
    """Return whether coverage kept its promise, before and after calibration."""
    said = []
    for metric, when in (("coverage", "As fitted"), ("coverage" + EQUAL, "Calibrated on held-out samples")):
        if metric in group.results.metrics:
            said.append(f"{when}, {_promise(group, metric)}")
    return said


def _promise(group: Group, metric: str) -> str:
    limits = {name: group.limits(name, metric) for name in group.results.methods}
    limits = {name: each for name, each in limits.items() if not math.isnan(each[0])}
    wanted = group.first.coverage
    short = {name: mean for name, (mean, _, upper) in limits.items() if upper < wanted}
    wide = {name: mean for name, (mean, lower, _) in limits.items() if 1 - lower < (1 - wanted) / 2}
    if not short:
        kept = f"coverage keeps the promise of {percent(wanted)} for {_all(len(limits))}, up to chance"
    else:
        rest = "" if len(short) == len(limits) else "; the others keep it, up to chance"
        of = _all(len(limits)) if not rest else f"{len(short)} of {len(limits)} methods"
        kept = f"coverage falls short of the {percent(wanted)} asked for, beyond chance, for {of}: {_list(short)}{rest}"
    return kept + (
        f". Bounds could be narrower, for they miss less than half as often as they may: {_list(wide)}."
        if wide
        else "."
    )


def _all(count: int) -> str:
    return {1: "the one method", 2: "both methods"}.get(count, f"all {count} methods")


def _list(means: dict[str, float]) -> str:
    return ", ".join(f"{name} ({percent(mean, 3)})" for name, mean in means.items())
