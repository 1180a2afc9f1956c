"""Images: predictions of images with their uncertainty and error, as the paper shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from intervalnn.evaluation.report.style import BAND, POINT, TARGET, figure, tidy

__all__ = ["comparison", "profile"]

Arrays = Mapping[str, np.ndarray[Any, Any]]
SHARP = 99.5  # the percentile of an uncertainty or error at which its colours end


def comparison(arrays: Arrays, names: Sequence[str], sample: int, *, title: str) -> Any:
    """Draw input and target, then a column per method: prediction, uncertainty, absolute error, and direction.

    Errors share one scale, so that they can be compared. Each uncertainty has its own, since a width and a
    standard deviation are not the same unit. An arrow points at the largest error of the first method's prediction.
    """
    rows = ("prediction", "uncertainty", "absolute error", "direction")
    drawn = figure(2.2 * (1 + len(names)) + 0.8, 2.25 * len(rows) + 0.4)
    grid = drawn.subplots(len(rows), 1 + len(names), squeeze=False)
    x, y = (arrays[key][sample, 0] for key in ("x", "y"))
    errors = {name: abs(arrays[f"{name}/point"][sample, 0] - y) for name in names}
    most = max(float(np.percentile(error, SHARP)) for error in errors.values())
    worst = _worst(errors[names[0]])
    grey = {"cmap": "gray", "vmin": 0.0, "vmax": 1.0}
    for axes, image, label in zip(grid[:2, 0], (x, y), ("input", "target"), strict=True):
        axes.imshow(image, **grey)
        axes.set_title(label, fontsize=9)
        _point_at(axes, worst, y.shape[0])
    for axes in grid[2:, 0]:
        axes.set_visible(False)
    for column, name in zip(grid.T[1:], names, strict=True):
        parts = {part: arrays[f"{name}/{part}"][sample, 0] for part in ("point", "below", "above", "score")}
        column[0].imshow(parts["point"], **grey)
        column[0].set_title(name, fontsize=9)
        _judge(drawn, column[1:], parts, errors[name], most)
        for axes in column[:3]:
            _point_at(axes, worst, y.shape[0])
    for axes in grid.ravel():
        axes.set_xticks([])
        axes.set_yticks([])
    for label, row in zip(rows, grid[:, 1:], strict=True):
        row[0].set_ylabel(label if label != "direction" else "direction\n(orange: wider above)", fontsize=9)
    drawn.suptitle(title, fontsize=10)
    return drawn


def _judge(drawn: Any, places: Any, parts: Arrays, error: np.ndarray[Any, Any], most: float) -> None:
    """Draw uncertainty, error and direction below each other; the last stays empty where no gap is the wider one."""
    score, tilt = parts["score"], parts["above"] - parts["below"]
    tilt = tilt / np.maximum(parts["above"] + parts["below"], 1e-12)
    shown = [
        places[0].imshow(score, cmap="viridis", vmin=0.0, vmax=float(np.percentile(score, SHARP)) or 1.0),
        places[1].imshow(error, cmap="viridis", vmin=0.0, vmax=most),
        places[2].imshow(tilt, cmap="PuOr_r", vmin=-1.0, vmax=1.0),
    ]
    for axes, image in zip(places, shown, strict=True):
        bar = drawn.colorbar(image, ax=axes, fraction=0.046, pad=0.02)
        bar.ax.tick_params(labelsize=6)
    if not np.abs(tilt).max() > 1e-6:
        shown[2].colorbar.remove()
        places[2].clear()
        places[2].set_frame_on(False)


def _worst(error: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Return where a block of a sixteenth of the image's side has the largest mean error."""
    side = max(1, error.shape[0] // 16)
    sums = np.pad(error, ((1, 0), (1, 0))).cumsum(0).cumsum(1)
    blocks = sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    row, column = np.unravel_index(blocks.argmax(), blocks.shape)
    return int(row) + side // 2, int(column) + side // 2


def _point_at(axes: Any, place: tuple[int, int], size: int) -> None:
    row, column = place
    away = size / 8
    down, right = (away if row < size / 2 else -away), (away if column < size / 2 else -away)
    axes.annotate(
        "",
        xy=(column, row),
        xytext=(column + right, row + down),
        arrowprops={"arrowstyle": "->", "color": "#e69f00", "lw": 1.4},
    )


def profile(arrays: Arrays, names: Sequence[str], sample: int) -> Any:
    """Draw the row of an image with the largest error: target, prediction and bounds of each method."""
    y = arrays["y"][sample, 0]
    row, _ = _worst(abs(arrays[f"{names[0]}/point"][sample, 0] - y))
    drawn = figure(9, 2.2 * len(names))
    panels = drawn.subplots(len(names), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, names, strict=True):
        point, below, above = (arrays[f"{name}/{part}"][sample, 0, row] for part in ("point", "below", "above"))
        axes.fill_between(range(len(point)), point - below, point + above, color=BAND, alpha=0.6, lw=0, label="bounds")
        axes.plot(y[row], color=TARGET, lw=0.9, label="target")
        axes.plot(point, color=POINT, lw=0.9, label="prediction")
        axes.set_ylabel(name, fontsize=8)
        axes.margins(x=0)
        tidy(axes)
    panels[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    panels[-1].set_xlabel(f"column, in row {row}", fontsize=8)
    return drawn
