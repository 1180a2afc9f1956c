"""A long evaluation of large images keeps to the memory of a short one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_images() -> None:
    script = Path(__file__).parent / "memory.py"

    done = subprocess.run([sys.executable, str(script), "60"], capture_output=True, text=True, check=True)

    peak = json.loads(done.stdout)
    assert peak["after compute"] < 2048  # MiB, of which torch and torchmetrics alone take more than 400
    assert peak["60"] - peak["20"] < 16  # fragments take up to 6; a number kept for each pixel would take 40 or more
