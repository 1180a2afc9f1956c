"""Style: how every figure looks, in colours that colour-blind readers tell apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from intervalnn.files.printable import printable
from intervalnn.files.whole import replacing

__all__ = ["BAND", "COLORS", "GRID", "POINT", "SCORE", "TARGET", "figure", "label", "save", "tidy"]

# Okabe and Ito's palette, as far as it is needed.
POINT, BAND, SCORE, TARGET, GRID = "#d55e00", "#56b4e9", "#0072b2", "#000000", "#dddddd"
COLORS = {
    "INN": "#0072b2",
    "INN, published": "#56b4e9",
    "INN, published, beta in proportion to the error": "#009e73",
    "MC dropout": "#d55e00",
    "ProbOut": "#cc79a7",
    "ProbOut, published": "#cc79a7",
    "quantile heads": "#e69f00",
}


LONG = 30  # characters of a name in a figure, which it would else squeeze to nothing


def label(name: object) -> str:
    """Return a name as a figure shows it."""
    text = printable(name)
    return text if len(text) <= LONG else f"{text[: LONG - 1]}…"


def figure(width: float, height: float) -> Any:
    """Return an empty figure, in inches; no state is shared with others."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def tidy(axes: Any) -> None:
    """Leave out what is not data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def save(drawn: Any, path: Path) -> list[Path]:
    """Write a figure for the screen (PNG) and for print (PDF), whole or not at all."""
    written = []
    for form, options in (("png", {"dpi": 150}), ("pdf", {"metadata": {"CreationDate": None}})):
        written.append(path.with_name(f"{path.name}.{form}"))
        with replacing(written[-1]) as temporary:
            drawn.savefig(temporary, format=form, **options)
        drawn.set_layout_engine("none")  # it is laid out, and stays as it is
    return written
