"""``inn demo``: all of it on a small problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from intervalnn.cli.command import command
from intervalnn.cli.extras import require
from intervalnn.cli.screen import Screen
from intervalnn.files.whole import check_writable

__all__ = ["demo"]


@command(writes=False)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/demo"),
    show_default=True,
    help="Folder to write to.",
)
def demo(screen: Screen, *, out: Path) -> dict[str, Any]:
    """Show it all on a small problem: training, bounds, pictures.

    A small network is trained and given bounds, and methods are compared, on the CPU.
    """
    require("inn demo", "report", "matplotlib")
    check_writable(out / "README.md")
    from rich.console import Console

    from intervalnn.paper.demo import demo as run

    found = run(out, Console(quiet=screen.quiet or screen.json))
    return {"out": out, "picture": out / "demo.png", "noises": list(found)}
