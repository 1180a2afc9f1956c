"""Progress: a bar with the numbers of the training, or nothing."""

from __future__ import annotations

import math

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["Bar"]


class Bar:
    """A progress bar with loss, coverage and mean width.

    Args:
        epochs: How many epochs there will be.
        steps: How many steps each of them has.
        done: Epochs that are done already.
        shown: Whether to show anything.
    """

    def __init__(self, epochs: int, steps: int, *, done: int, shown: bool) -> None:
        self.epochs, self.steps, self.shown = epochs, steps, shown
        # Narrow enough for all of it to have a place in 80 columns.
        columns = (BarColumn(12), TimeRemainingColumn(compact=True), TextColumn("{task.fields[text]}"))
        self.bar = Progress(*columns, disable=not shown)
        self.task = self.bar.add_task("fit", total=epochs * steps, completed=done * steps, text="")

    def __enter__(self) -> Bar:
        if self.shown:  # else rich 13 ends with an empty line
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.bar.stop()

    def step(self) -> None:
        """Go one step forward."""
        self.bar.advance(self.task)

    def show(self, epoch: int, loss: float, coverage: float, width: float, validation: float = math.nan) -> None:
        """Show numbers of the epoch, counted from 0; those that are NaN are left out."""
        parts = [f"{epoch + 1}/{self.epochs}", f"loss {loss:.3g}"]
        if not math.isnan(coverage):
            parts += [f"coverage {coverage:.3f}", f"width {width:.3g}"]
        if not math.isnan(validation):
            parts.append(f"validation {validation:.3g}")
        self.bar.update(self.task, text=" ".join(parts))
