"""Screen: what a command shows, to people on the terminal or to scripts as JSON, and how it ends."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from intervalnn.files.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Failed", "Screen", "Stopped", "describe"]

T = TypeVar("T")


class Failed(click.ClickException):
    """A command failed: the exit code is 1, since 2 is click's own, for wrong usage."""

    word = "Error"

    def show(self, file: Any = None) -> None:
        """Write the message to the error stream."""
        click.echo(f"{click.style(self.word, fg='red', bold=True)}: {self.format_message()}", file=file, err=True)


class Stopped(Failed):
    """A command was stopped by Ctrl-C."""

    word, exit_code = "Stopped", 130


class Screen:
    """Where a command shows what it does.

    Results go to the standard output, all else (progress, warnings, errors) to the error stream.

    Args:
        quiet: Show nothing but errors.
        json: Write one JSON object at the end, and nothing else, to the standard output.

    Attributes:
        leads: Whether this process is the first of those that ``torchrun`` started; the others show nothing.
    """

    def __init__(self, *, quiet: bool = False, json: bool = False) -> None:
        self.leads = os.environ.get("RANK", "0") == "0"  # torchrun numbers its processes
        self.quiet, self.json = quiet or not self.leads, json
        self._warnings: list[str] = []
        self._output = sys.stdout  # where JSON goes, whatever takes its place while a command works

    @property
    def console(self) -> Console:
        """The standard output, or nothing where nobody wants to read."""
        from rich.console import Console

        return Console(quiet=self.quiet or self.json, highlight=False, markup=False, emoji=False)

    @property
    def progress(self) -> bool:
        """Whether to show progress bars: someone must be there to see them."""
        return not (self.quiet or self.json) and sys.stderr.isatty()

    def say(self, what: Any) -> None:
        """Show a text or anything that rich can show; a text moves no cursor, whatever names of files are in it."""
        self.console.print(printable(what, lines=True) if isinstance(what, str) else what)

    def wrote(self, path: Path) -> None:
        """Say what was written."""
        self.say(f"Wrote {printable(path)}")

    def track(self, items: Iterable[T], text: str) -> Iterable[T]:
        """Yield items, with a progress bar."""
        from rich.progress import track

        return track(items, text, transient=True) if self.progress else items

    def hint(self, *words: object) -> None:
        """Show a command to go on with, in one line so that it can be copied."""
        if all(printable(word) == str(word) for word in words):  # others cannot be copied from a terminal
            self.console.print("Next: inn", shlex.join(map(str, words)), style="dim", soft_wrap=True)

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Keep the standard output for results: bars go to the error stream, and so does what users' code prints."""
        from rich import get_console

        bars = get_console()  # which the library's own progress bars use
        with contextlib.ExitStack() as stack:
            before, bars.stderr = bars.stderr, True
            stack.callback(setattr, bars, "stderr", before)
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\..*")  # from inside torch
            warnings.showwarning = self._warn
            if self.json:
                stack.enter_context(contextlib.redirect_stdout(sys.stderr))
            yield

    def _warn(self, message: Warning | str, *_: Any, **__: Any) -> None:
        from rich import get_console  # which makes room for it above a progress bar

        self._warnings.append(str(message))
        if not self.quiet:
            text = printable(f"Warning: {message}", lines=True)
            get_console().print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)

    def finish(self, command: str, found: Mapping[str, Any]) -> None:
        """Write what a command found, for scripts, and what it warned of."""
        if self.json and self.leads:
            warned = {"warnings": self._warnings} if self._warnings else {}
            content = {"command": command, **_plain(found), **warned}
            click.echo(json.dumps(content, allow_nan=False), file=self._output)


def describe(error: Exception) -> str:
    """Return what to tell of an error to someone who does not know the code."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, OSError) and error.strerror:  # without its number
        text = error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    text = "\n".join([text, *getattr(error, "__notes__", [])])
    if _is_ours(error) or isinstance(error, ValueError | OSError | ImportError):
        return text
    if type(error).__name__ == "OutOfMemoryError":
        return f"the device has not enough memory; take a smaller --batch-size ({text.splitlines()[0]})"
    return f"{type(error).__name__}: {text}\nWith --debug it says where."


def _is_ours(error: Exception) -> bool:
    """Say whether the library raised an error itself: it then says all that there is to say."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("intervalnn.")


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it, with null for what is not a number."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
