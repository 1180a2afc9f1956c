"""The command line: thin commands over the library; torch is imported only where it is needed."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="intervalnn")
def main() -> None:
    """Interval neural networks: bounds, uncertainty and direction for trained networks."""


@main.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/demo"),
    show_default=True,
    help="Folder to write to.",
)
def demo(out: Path) -> None:
    """Fit bounds to a small network, from training to picture, on the CPU."""
    from rich.console import Console

    from intervalnn.demo import demo as run

    run(out, Console())
