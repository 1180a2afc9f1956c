"""Schematic: a small interval network, every value and every weight drawn as the interval that it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from intervalnn.evaluation.report.style import BAND, POINT, TARGET, figure

__all__ = ["network"]

Ends = tuple[float, float, float]  # lower, point, upper
HEIGHT = 0.62  # of a node, in units of the distance between two


def network(values: Sequence[Sequence[Ends]], weights: Sequence[Sequence[Sequence[Ends]]]) -> Any:
    """Draw the layers from left to right.

    Each node shows its interval on a scale of its layer, the point in it as a line. A connection is the darker, the
    larger its weight, and the wider, the wider its interval.
    """
    drawn = figure(8.4, 4.6)
    axes = drawn.subplots()
    places = [[(3.0 * i, j - (len(layer) - 1) / 2) for j in range(len(layer))] for i, layer in enumerate(values)]
    for i, layer in enumerate(weights):
        largest = max(abs(point) for row in layer for _, point, _ in row)
        widest = max(upper - lower for row in layer for lower, _, upper in row)
        for j, row in enumerate(layer):
            for k, (lower, point, upper) in enumerate(row):
                (x0, y0), (x1, y1) = places[i][k], places[i + 1][j]
                shade = 0.15 + 0.75 * abs(point) / largest
                width = 0.6 + 7 * (upper - lower) / widest
                axes.plot([x0 + 0.25, x1 - 0.25], [y0, y1], color=BAND, lw=width, alpha=0.35, zorder=1)
                axes.plot([x0 + 0.25, x1 - 0.25], [y0, y1], color=TARGET, lw=0.8, alpha=shade, zorder=2)
    for column, ends in zip(places, values, strict=True):
        low, high = min(v[0] for v in ends), max(v[2] for v in ends)
        span = (high - low) or 1.0
        for (x, y), own in zip(column, ends, strict=True):
            _node(axes, x, y, [(v - low) / span - 0.5 for v in own], own[0], own[2])
    _titles(axes, places)
    axes.set_axis_off()
    axes.set_ylim(-2.7, 2.5)
    return drawn


def _node(axes: Any, x: float, y: float, at: list[float], lower: float, upper: float) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x - 0.25, y - HEIGHT / 2), 0.5, HEIGHT, fc="white", ec="#888888", lw=0.8, zorder=3))
    bottom, middle, top = (y + HEIGHT * 0.9 * position for position in at)
    axes.add_patch(Rectangle((x - 0.18, bottom), 0.36, top - bottom, fc=BAND, ec="none", zorder=4))
    axes.plot([x - 0.18, x + 0.18], [middle, middle], color=POINT, lw=2, zorder=5)
    text = f"{lower:.2f}" if upper == lower else f"[{lower:.2f}, {upper:.2f}]"
    axes.text(x, y - HEIGHT / 2 - 0.05, text, ha="center", va="top", fontsize=7, zorder=6,
              bbox={"fc": "white", "ec": "none", "pad": 0.4, "alpha": 0.8})  # fmt: skip


def _titles(axes: Any, places: Sequence[Sequence[tuple[float, float]]]) -> None:
    names = ["input: a point", *["hidden: intervals"] * (len(places) - 2), "output: bounds"]
    for column, name in zip(places, names, strict=True):
        axes.text(column[0][0], 2.35, name, ha="center", fontsize=9)
    axes.text(
        places[0][0][0] - 0.25, -2.6, "red: the underlying network's value; blue: the interval around it, on the scale "
        "of its layer;\nconnections: the darker, the larger the weight, and the wider, the wider its interval",
        fontsize=7.5, color="#444444",
    )  # fmt: skip
