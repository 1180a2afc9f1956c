"""Tests pass in the background too, where a shell lets Ctrl-C be ignored."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

STOPPING = "import signal, conftest; signal.raise_signal(signal.SIGINT)"


@pytest.mark.rotating
@pytest.mark.skipif(os.name != "posix", reason="a process that ignores a signal is started as POSIX has it")
def test_ctrl_c_stops_a_test_although_the_run_was_started_without_it() -> None:
    command = [sys.executable, "-c", STOPPING]

    ended = subprocess.run(
        command, cwd=Path(__file__).parents[1], preexec_fn=_ignoring, capture_output=True, text=True, check=False
    )

    assert "KeyboardInterrupt" in ended.stderr


def _ignoring() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
