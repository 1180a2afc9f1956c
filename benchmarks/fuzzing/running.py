"""Running: command lines in this process or in one of their own, and how they end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.distributed  # noqa: F401 - all that is slow to import is, before Ctrl-C may come
from click.testing import CliRunner

from fuzzing.lines import Line
from intervalnn import training  # noqa: F401
from intervalnn.cli import main
from intervalnn.evaluation.report import html  # noqa: F401
from intervalnn.paper import demo  # noqa: F401
from intervalnn.saving import exporting  # noqa: F401

__all__ = ["Ended", "run", "run_as_process"]

LONGEST = 300  # seconds after which a command hangs
AGAIN = 5  # seconds after which Ctrl-C comes again: Python drops it where it hits the callback of a weak reference
STARTING = 12  # more that a process may take to import what it needs
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
QUIET = {"BROWSER": "true", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        code: Its exit code.
        stdout: What it wrote.
        stderr: What it wrote on the error stream.
        error: What it raised, where that can be seen.
        stopped: Whether Ctrl-C came.
    """

    code: int
    stdout: str
    stderr: str
    error: BaseException | None = None
    stopped: bool = False


def run(line: Line) -> Ended:
    """Run a line in this process, in the folder that it is in."""
    path, fired = list(sys.path), []

    def stop(*_: Any) -> None:
        fired.append(True)
        raise KeyboardInterrupt

    with _alarm(line.seconds or LONGEST, stop), warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            shown = CliRunner(env=QUIET | {"COLUMNS": "200"}).invoke(main, line.words)
        finally:
            sys.path[:] = path
    error = None if isinstance(shown.exception, SystemExit) else shown.exception
    return Ended(shown.exit_code, shown.stdout, shown.stderr, error, bool(fired))


@contextlib.contextmanager
def _alarm(seconds: float, handler: Any) -> Iterator[None]:
    """Call a handler after some time; an alarm that is set already goes on afterwards."""
    before = signal.signal(signal.SIGALRM, handler)
    left = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *left)


def run_as_process(line: Line, home: Path, shell: dict[str, str]) -> Ended:
    """Run a line as a shell does."""
    command = (
        [Path(sys.executable).with_name("inn")] if len(line.words) % 2 else [sys.executable, "-m", "intervalnn.cli"]
    )
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        [*command, *line.words], cwd=home, env=os.environ | QUIET | shell, preexec_fn=_heeds, **streams
    ) as process:
        stopped = False
        try:
            outputs = process.communicate(timeout=(line.seconds or LONGEST) + STARTING)
        except subprocess.TimeoutExpired:
            stopped = True
            process.send_signal(signal.SIGINT)
            try:
                outputs = process.communicate(timeout=LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
    stdout, stderr = (output.decode("utf-8", "replace") for output in outputs)
    return Ended(process.returncode, stdout, COLOUR.sub("", stderr), None, stopped)


def _heeds() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which a search in the background would ignore, and its processes
