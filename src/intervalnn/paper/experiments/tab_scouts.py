"""What scouts gain, and how evenly each method covers: by subject, for a subject's samples depend on each other."""

from __future__ import annotations

import statistics

from intervalnn.evaluation.results import Results
from intervalnn.evaluation.statistics import Groups
from intervalnn.paper.experiments.comparison import COVERAGE, longer_heads
from intervalnn.paper.experiments.tables import WINKLER, both, over_mae, scaled, subjects_of

__all__ = ["OURS", "table", "within"]

OURS = "INN with scout"
WITH_SCOUT = (OURS, "scout alone")
EVEN = 0.05  # how far the coverage of a subject may lie from the promise and still count as even


def table(found: Results, unit: str = "subject") -> str:
    """Return what scouts gain over each method; nothing where no run has them.

    Args:
        found: The runs.
        unit: What is drawn by the bootstrap, and covered evenly or not; each sample is one where no subjects are kept.
    """
    names = scaled(found)
    if OURS not in names:
        return ""
    groups = subjects_of(found) or _each_its_own(found)
    lines = [
        "\n## Scouts\n",
        _in_short(found, names, groups, unit),
        f"\nAt equal coverage. p: paired bootstrap that draws each {unit} with all of its samples. Coverage of a "
        f"single {unit}: the least and the largest, and the share within {EVEN:.0%} of {COVERAGE:.0%}. Trained numbers "
        "and seconds are those of the fit.\n",
        f"| method | Winkler / MAE | {OURS}, times this | p | least coverage of a {unit} | largest "
        f"| within ±{EVEN:.0%} | trained numbers | seconds to fit | of these on the CPU |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in names:
        other = "| | " if name == OURS else f"| {_times(found, name):.3f} | {_p(found, name, groups):.2g} "
        least, largest, share = within(found, name, groups)
        fits = [run.settings["curves"][name]["fit"] for run in found.runs]
        cost = " | ".join(f"{statistics.fmean(fit[key] for fit in fits):.0f}" for key in ("seconds", "CPU seconds"))
        lines.append(
            f"| {name} | {both(over_mae(found, name, WINKLER), '.2f')} {other}| {least:.3f} | {largest:.3f} "
            f"| {share:.0%} | {fits[0]['parameters']} | {cost} |"
        )
    return "\n".join(lines)


def within(found: Results, name: str, groups: Groups) -> tuple[float, float, float]:
    """Return the least and the largest coverage of a group at equal coverage, and the share that is even."""
    values = found.by_group(name, "coverage at equal coverage", groups).values()
    even = statistics.fmean(abs(value - COVERAGE) <= EVEN for value in values)
    return min(values), max(values), even


def _in_short(found: Results, names: list[str], groups: Groups, unit: str) -> str:
    longer = longer_heads(found.runs[0].settings["scale"]["longer"])
    others = [name for name in names if name not in (*WITH_SCOUT, longer, "ensemble")]
    compared = [(f"the best method without a scout at equal steps, {others[0]}", others[0])] if others else []
    compared += [(longer, longer)] if longer in names else []
    parts = [
        f"{_times(found, name):.3f} times that of {text} (p {_p(found, name, groups):.2g})" for text, name in compared
    ]
    subjects = len({name for run in groups for name in run})
    return f"{OURS} has an interval score of {' and '.join(parts)}, on {subjects} {unit}s." if parts else ""


def _times(found: Results, name: str) -> float:
    pairs = zip(over_mae(found, OURS, WINKLER), over_mae(found, name, WINKLER), strict=True)
    return statistics.fmean(ours / other for ours, other in pairs)


def _p(found: Results, name: str, groups: Groups) -> float:
    return found.compare_by(groups, WINKLER, OURS, name).p


def _each_its_own(found: Results) -> Groups:
    samples = (len(values) for values in found.per_run(OURS, WINKLER))
    return [[f"{number}: {i}" for i in range(count)] for number, count in enumerate(samples)]
