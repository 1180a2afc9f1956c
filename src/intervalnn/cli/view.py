"""``inn view``: predictions in the browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from intervalnn.cli.command import command, refuse_existing
from intervalnn.cli.config import Config, settings
from intervalnn.cli.screen import Screen

__all__ = ["view"]


@command("view", example="inn view prediction.npz\ninn view prediction.npz --export page.html --slices 40:80")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
def view(screen: Screen, config: Config, *, path: Path, overwrite: bool) -> dict[str, Any] | None:
    """Show predictions with their bounds in the browser.

    PATH is what inn predict wrote: an npz file, a NIfTI file, or a folder of these. Only this machine can open the
    page; with --export it is written as one HTML file to hand on. The page says what is promised on new data, or that
    the network was not calibrated, where the file does.
    """
    from intervalnn.view import export_html
    from intervalnn.view import view as show

    chosen = config.view
    shown = settings(chosen, "unit", "dims", "max_gib")
    cut: dict[str, Any] = {name: _slice(text) for name, text in settings(chosen, "slices", "rows", "columns").items()}
    if chosen.export is not None:
        out = refuse_existing(chosen.export, overwrite, reads=(path,))
        if out.suffix.lower() not in (".html", ".htm"):
            raise click.UsageError(
                f"--export writes a page, whose name must end in .html or .htm, got {out}: add .html."
            )
        export_html(path, out, **shown, **cut)
        screen.wrote(out)
        return {"out": out}
    if cut:
        raise click.UsageError(f"--{min(cut)} is for --export; the viewer shows everything.")

    def say(text: str) -> None:
        screen.say(text)
        screen.finish("view", {"path": path, "address": re.findall(r"http://\S+", text)[-1]})

    show(path, port=chosen.port, open_browser=chosen.browser, **shown, say=say)
    return None


def _slice(text: str) -> slice:
    parts = text.split(":")
    try:
        numbers = [int(part) if part else None for part in parts]
        return slice(numbers[0], None if numbers[0] is None else numbers[0] + 1) if len(parts) == 1 else slice(*numbers)
    except (TypeError, ValueError):
        raise click.UsageError(f"A part is given as START:STOP:STEP, got {text!r}.") from None
