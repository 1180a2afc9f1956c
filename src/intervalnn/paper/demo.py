"""What ``inn demo`` shows: the 1D experiment at quick scale, from training to figures, on the CPU."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from intervalnn.data.readers.npy import Npz
from intervalnn.evaluation.report.signals import story
from intervalnn.evaluation.report.style import save
from intervalnn.evaluation.results import Results
from intervalnn.files.printable import printable
from intervalnn.paper.experiments.comparison import COVERAGE
from intervalnn.paper.experiments.reproduce import reproduce_deconvolution
from intervalnn.paper.experiments.tab_deconvolution import results

__all__ = ["demo"]

COLUMNS = {
    "coverage": "as fitted",
    "coverage at equal coverage": "calibrated",
    "winkler at equal coverage": "interval score",
    "pearson": "correlation",
}


def demo(folder: Path, console: Console) -> dict[float, Results]:
    """Run it all, write runs, figures and tables into ``folder``, and say what to look at."""
    start = time.perf_counter()
    console.print(
        "A network that undoes a blur is trained; its last four layers become intervals; these are fitted to "
        f"{COVERAGE:.0%} coverage and compared with other methods, each calibrated on signals it has not seen."
    )
    with console.status("starting") as status:
        reproduce_deconvolution(folder, scale="quick", say=status.update)
    picture = save(story(_examples(folder), "INN", 0, coverage=COVERAGE), folder / "demo")[0]
    found = results(folder)
    for noise, each in found.items():
        console.print(_table(f"Noise {noise:g}: coverage, score and correlation with the error on test signals", each))
    console.print(
        "Interval score at equal coverage: narrow bounds that hold; lower is better. All take the same few steps "
        "here, which is hardest on methods that train a network of their own; inn reproduce deconv --scale paper makes "
        "full fits.\n"
    )
    console.print(
        f"Wrote [bold]{named(picture)}[/] (look at it first), the figures of the paper in {named(folder / 'figures')}, "
        f"and all numbers in {named(folder / 'README.md')}; {time.perf_counter() - start:.0f} s."
    )
    return found


def named(path: Path) -> str:
    """Return a path as a console with markup shows it."""
    return escape(printable(path))


def _examples(folder: Path) -> dict[str, np.ndarray]:
    return dict(Npz(min(folder.glob("noise-*-seed-0.npz"))))


def _table(title: str, found: Results) -> Table:
    table = Table("method", *COLUMNS.values(), title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for name in sorted(found.methods, key=lambda n: found.spread(n, "winkler at equal coverage").mean):
        values = [found.spread(name, metric) for metric in COLUMNS]
        table.add_row(name, *(str(value) if np.isnan(value.mean) else f"{value.mean:.3f}" for value in values))
    return table
