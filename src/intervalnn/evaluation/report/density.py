"""Density: bounds on a density, between which it lies whatever the weights do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from intervalnn.evaluation.report.style import BAND, POINT, TARGET, figure, tidy

__all__ = ["bounds"]


def bounds(
    y: Sequence[float],
    lower: Sequence[float],
    upper: Sequence[float],
    point: Sequence[float],
    *,
    interval: tuple[float, float],
    precision: float,
) -> Any:
    """Draw both bounds of the density and that of the underlying model; vertical lines are the interval's ends."""
    drawn = figure(6.4, 3.6)
    axes = drawn.subplots()
    axes.fill_between(y, lower, upper, color=BAND, alpha=0.4, lw=0, label="the density, whatever the weights")
    axes.plot(y, upper, color="#0072b2", lw=1.2)
    axes.plot(y, lower, color="#0072b2", lw=1.2)
    axes.plot(y, point, color=POINT, lw=1.4, label="density around the prediction")
    for end in interval:
        axes.axvline(end, color=TARGET, lw=1.0, ls="--", label="interval" if end == interval[0] else None)
    axes.set(xlabel="y", ylabel=f"density, precision {precision:.3g}", ylim=(0, None))
    axes.margins(x=0)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    tidy(axes)
    return drawn
