"""Signals: predictions of one-dimensional signals with their bounds, as the paper shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from intervalnn.evaluation.report.style import BAND, POINT, SCORE, TARGET, figure, tidy

__all__ = ["columns", "story"]

Arrays = Mapping[str, np.ndarray[Any, Any]]


def columns(settings: Mapping[str, Arrays], names: Sequence[str], sample: int) -> Any:
    """Draw one signal: a column per setting; input and target, then two rows per method (Fig. 2 and App. C).

    The upper row has target, prediction and bounds, the lower one the score against the absolute error.
    """
    rows = 1 + 2 * len(names)
    drawn = figure(6.4 * len(settings), 1.5 + 2.5 * len(names))
    grid = drawn.subplots(
        rows, len(settings), sharex=True, squeeze=False, height_ratios=[1.1, *([1.2, 0.8] * len(names))]
    )
    for column, (title, arrays) in enumerate(settings.items()):
        x, y = (arrays[key][sample, 0] for key in ("x", "y"))
        top = grid[0][column]
        top.plot(x, color="#888888", lw=1.2, label="input")
        top.plot(y, color=TARGET, lw=1.0, label="target")
        top.set_title(title, fontsize=11)
        for number, name in enumerate(names):
            point, below, above, score = (
                arrays[f"{name}/{part}"][sample, 0] for part in ("point", "below", "above", "score")
            )
            bands, errors = grid[1 + 2 * number][column], grid[2 + 2 * number][column]
            bands.fill_between(range(len(y)), point - below, point + above, color=BAND, alpha=0.6, lw=0, label="bounds")
            bands.plot(y, color=TARGET, lw=0.9, label="target")
            bands.plot(point, color=POINT, lw=0.9, label="prediction")
            errors.fill_between(range(len(y)), abs(point - y), color="#bbbbbb", lw=0, label="absolute error")
            errors.plot(score, color=SCORE, lw=1.0, label="score")
            if column == 0:
                bands.set_ylabel(name, fontsize=9)
    for row in grid:
        for axes in row:
            tidy(axes)
            axes.margins(x=0)
    for axes in (grid[0][-1], grid[1][-1], grid[2][-1]):
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    drawn.align_ylabels(grid[:, 0])
    return drawn


def story(arrays: Arrays, name: str, sample: int, *, coverage: float) -> Any:
    """Draw one signal: what was measured, what is predicted with its bounds, and the score next to the error."""
    x, y, point, below, above, score = (
        arrays[key][sample, 0]
        for key in ("x", "y", *(f"{name}/{part}" for part in ("point", "below", "above", "score")))
    )
    drawn = figure(10, 6.4)
    top, middle, bottom = drawn.subplots(3, 1, sharex=True, height_ratios=(1, 1.5, 1))
    places = np.arange(len(y))
    top.plot(x, color="#777777", lw=1.5, label="measurement, the input")
    middle.fill_between(
        places, point - below, point + above, color=BAND, alpha=0.5, lw=0, label=f"bounds, {coverage:.0%}"
    )
    middle.plot(y, color=TARGET, lw=1.2, label="truth")
    middle.plot(point, color=POINT, lw=1.2, label="prediction, unchanged")
    bottom.fill_between(places, abs(y - point), color="#bbbbbb", lw=0, label="absolute error")
    bottom.plot(score, color=SCORE, lw=1.4, label="uncertainty score")
    height = 1.12 * max(score.max(), abs(y - point).max())
    for sign, color, label in ((1, "#009e73", "wider above"), (-1, "#cc79a7", "wider below")):
        strong = places[sign * (above - below) > 0.2 * (above + below)]
        bottom.scatter(strong, np.full(len(strong), height), color=color, marker="|", s=30, label=label)
    for axes in (top, middle, bottom):
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
        axes.margins(x=0)
        tidy(axes)
    bottom.set_xlabel("position")
    return drawn
