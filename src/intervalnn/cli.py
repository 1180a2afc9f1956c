"""The command line: thin commands over the library; torch is imported only where it is needed."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["main"]

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="intervalnn")
def main() -> None:
    """Interval neural networks: bounds, uncertainty and direction for trained networks."""


@main.command()
@click.option("--out", type=FOLDER, default=Path("results/demo"), show_default=True, help="Folder to write to.")
def demo(out: Path) -> None:
    """Fit bounds to a small network and compare methods, from training to pictures, on the CPU."""
    from rich.console import Console

    from intervalnn.demo import demo as run

    run(out, Console())


@main.group()
def reproduce() -> None:
    """Make the tables and figures of the paper."""


@reproduce.command()
@click.option("--scale", type=click.Choice(["quick", "paper", "longer"]), default="quick", show_default=True)
@click.option("--seed", "seeds", type=int, multiple=True, help="Which runs; may be given several times.")
@click.option("--device", default="cpu", show_default=True, help="Where to train, such as cuda.")
@click.option("--out", type=FOLDER, default=None, help="Folder to write to; by default results/deconv/SCALE.")
@click.option("--draw-only", is_flag=True, help="Draw figures and tables from the runs that are there.")
def deconv(scale: str, seeds: tuple[int, ...], device: str, out: Path | None, draw_only: bool) -> None:
    """The 1D deconvolution: every method, figure and number. A run that was stopped goes on."""
    from rich.console import Console

    from intervalnn.experiments.reproduce import draw_deconvolution, reproduce_deconvolution

    console = Console()
    folder = out or Path("results/deconv") / scale
    try:
        with console.status("starting") as status:
            if draw_only:
                written = draw_deconvolution(folder, say=status.update)
            else:
                written = reproduce_deconvolution(
                    folder, scale=scale, seeds=seeds or None, device=device, say=status.update
                )
    except (FileNotFoundError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    console.print(f"Wrote {len(written)} files; look at [bold]{written[0]}[/] first.")
