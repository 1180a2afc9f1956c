"""``inn report``: results as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from intervalnn.cli.command import command, refuse_existing
from intervalnn.cli.screen import Screen

__all__ = ["report"]


@command(example="inn report results --out report.html")
@click.argument("results", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="Page to write.",
)
def report(screen: Screen, *, results: Path, out: Path, overwrite: bool) -> dict[str, Any]:
    """Write results as one HTML page, with tables and figures.

    RESULTS is a folder that inn evaluate, inn demo or inn reproduce wrote to.
    """
    from intervalnn.evaluation.report.html import write_report

    refuse_existing(out, overwrite, ends=".html", reads=(results,))
    for kind in ("tables", "figures"):
        refuse_existing(out.with_name(f"{out.stem}-{kind}"), overwrite, folder=True, reads=(results,))
    written = write_report(results, out)
    screen.wrote(written)
    return {"out": written}
