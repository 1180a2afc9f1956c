"""``inn reproduce``: the tables and figures of the paper."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import click

from intervalnn.cli.extras import require
from intervalnn.files.limits import MAX_GIB
from intervalnn.files.printable import printable
from intervalnn.files.whole import check_writable

__all__ = ["reproduce"]

FOLDER = click.Path(file_okay=False, path_type=Path)
SEED = click.IntRange(0, 2**32 - 1)  # what all generators of random numbers take, and some more are counted from it


@click.group()
def reproduce() -> None:
    """Make the tables and figures of the paper."""


def _shared(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all experiments have."""
    for option in (
        click.option("--draw-only", is_flag=True, help="Draw figures and tables from the runs that are there."),
        click.option(
            "--out", type=FOLDER, default=None, help="Folder to write to; by default results/EXPERIMENT/SCALE."
        ),
        click.option("--device", default="cpu", show_default=True, help="Where to train, such as cuda."),
        click.option(
            "--method",
            "methods",
            multiple=True,
            help='Measure this method, such as "INN with scout", and no other; may be given several times.',
        ),
        click.option("--seed", "seeds", type=SEED, multiple=True, help="Which runs; may be given several times."),
    ):
        command = option(command)
    return command


def _checked(device: str) -> str:
    """Return a device that is there."""
    from intervalnn.cli.models import device_of

    return str(device_of(device))


def _run(folder: Path, make: Callable[[Callable[[str], None]], list[Path]]) -> None:
    """Make or draw an experiment, and say where to look."""
    from rich.console import Console
    from rich.markup import escape

    require("inn reproduce", "report", "matplotlib")
    check_writable(folder / "README.md")
    console, start = Console(), time.monotonic()

    def log(what: str) -> None:
        text = f"{time.monotonic() - start:6.0f} s  {printable(what)}"
        console.print(text, highlight=False, markup=False)

    try:
        if console.is_terminal:
            with console.status("starting") as status:
                written = make(lambda what: status.update(escape(printable(what))))
        else:
            written = make(log)
    except (FileNotFoundError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    console.print(f"Wrote {len(written)} files; look at [bold]{escape(printable(written[0]))}[/] first.")


@reproduce.command()
@click.option("--scale", type=click.Choice(["quick", "small", "paper", "longer"]), default="quick", show_default=True)
@_shared
def deconv(
    scale: str, seeds: tuple[int, ...], methods: tuple[str, ...], device: str, out: Path | None, draw_only: bool
) -> None:
    """The 1D deconvolution: every method, figure and number. A run that was stopped goes on."""
    from intervalnn.paper.experiments.reproduce import draw_deconvolution, reproduce_deconvolution

    folder = out or Path("results/deconv") / scale
    if draw_only:
        _run(folder, lambda say: draw_deconvolution(folder, say=say))
    else:
        _run(
            folder,
            lambda say: reproduce_deconvolution(
                folder, scale=scale, seeds=seeds or None, methods=methods, device=_checked(device), say=say
            ),
        )


def _images(task: str, about: str) -> None:
    @reproduce.command(task, help=f"{about}: every method, figure and number. A run that was stopped goes on.")
    @click.option(
        "--scale", type=click.Choice(["quick", "small", "medium", "paper"]), default="quick", show_default=True
    )
    @click.option(
        "--data",
        "source",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Folder of CT data: DICOM, NIfTI, LoDoPaB-CT, arrays or images; by default made-up patients.",
    )
    @click.option("--values", help="What the numbers of arrays and images are, such as hu or hu+1024.")
    @click.option("--max-gib", default=MAX_GIB, help="GiB that a volume may unpack to, unless it has as many itself.")
    @_shared
    def command(
        scale: str,
        source: Path | None,
        values: str | None,
        max_gib: float,
        seeds: tuple[int, ...],
        methods: tuple[str, ...],
        device: str,
        out: Path | None,
        draw_only: bool,
    ) -> None:
        from intervalnn.paper.experiments.reproduce import draw_images, reproduce_images

        folder = out or Path("results") / task / scale
        if draw_only:
            _run(folder, lambda say: draw_images(folder, say=say))
        else:
            _run(
                folder,
                lambda say: reproduce_images(
                    folder,
                    task=task,
                    scale=scale,
                    source=source,
                    values=values,
                    max_gib=max_gib,
                    seeds=seeds or None,
                    methods=methods,
                    device=_checked(device),
                    say=say,
                ),
            )


for _task, _about in {
    "ct": "Limited-angle tomography",
    "mri": "Undersampled MRI",
    "denoising": "Gaussian denoising",
    "photos": "Super-resolution of photos, those of scikit-image",
}.items():
    _images(_task, _about)
