"""Explanation: which layers open the bounds, as a table and as a plot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from intervalnn.files.printable import printable
from intervalnn.files.whole import replacing

__all__ = ["Explanation", "Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """One parameter of the underlying model.

    Attributes:
        name: Its name.
        sensitivity: Mean output width per unit of gap on both sides of all its entries.
        gap: Mean gap, over its entries and both sides.
        width: Sensitivity times gap: the width that it opens, if alone and small.
        share: Its part in the sum of these widths.
    """

    name: str
    sensitivity: float
    gap: float
    width: float
    share: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Sensitivity, gap and width of every parameter that has gaps, in the order of the model."""

    rows: tuple[Row, ...]

    @staticmethod
    def of(found: Mapping[str, tuple[float, float]]) -> Explanation:
        """Make an explanation of sensitivities and mean gaps."""
        widths = {name: sensitivity * gap for name, (sensitivity, gap) in found.items()}
        total = sum(widths.values()) or 1.0
        rows = (Row(name, s, gap, widths[name], widths[name] / total) for name, (s, gap) in found.items())
        return Explanation(tuple(rows))

    def table(self) -> Table:
        """Return the table, for a rich console."""
        table = Table("parameter", title="What opens the bounds")
        for heading in ("sensitivity", "mean gap", "width", "share"):
            table.add_column(heading, justify="right")
        for row in self.rows:
            numbers = (f"{value:.3g}" for value in (row.sensitivity, row.gap, row.width))
            table.add_row(Text(printable(row.name)), *numbers, f"{row.share:.1%}")
        return table

    def __str__(self) -> str:
        console = Console(width=100, no_color=True)
        with console.capture() as captured:
            console.print(self.table())
        return captured.get()

    def plot(self, path: str | Path) -> Path:
        """Write a plot of sensitivity, gap and width by parameter; needs matplotlib."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10, 1 + 0.25 * len(self.rows)), layout="constrained")
        left, middle, right = figure.subplots(1, 3, sharey=True)
        places = range(len(self.rows))
        for axes, color, label, values in (
            (left, "#4477aa", "output width per unit of gap", [row.sensitivity for row in self.rows]),
            (middle, "#228833", "mean gap", [row.gap for row in self.rows]),
        ):
            axes.scatter(values, places, color=color, s=16)
            axes.set(xlabel=label, axisbelow=True)
            axes.grid(axis="y", color="#dddddd")
            known = [math.log10(value) for value in values if 0 < value < math.inf]
            if known:  # whole powers of ten, so that their labels have room
                axes.set(xscale="log", xlim=(10.0 ** math.floor(min(known)), 10.0 ** (math.floor(max(known)) + 1)))
        right.barh(places, [row.width for row in self.rows], color="#ee6677")
        right.set_xlabel("output width that its gaps open")
        names = [printable(row.name) for row in self.rows]
        left.set_yticks(places, names, fontsize=8, parse_math=False)  # a dollar in a name is a dollar
        left.invert_yaxis()
        path = Path(path)
        kind, kinds = path.suffix.removeprefix(".").lower() or "png", figure.canvas.get_supported_filetypes()
        if kind not in kinds:
            raise ValueError(f"{path} must end in one of .{', .'.join(kinds)}")
        with replacing(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=150)
        return path
