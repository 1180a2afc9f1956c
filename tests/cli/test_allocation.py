"""Memory that is kept: the pages of a tensor are not asked for again by the next one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from intervalnn.cli.allocation import keep_freed_memory

PROGRAM = """
import resource
import torch
from intervalnn.cli.allocation import keep_freed_memory

if {keep}:
    assert keep_freed_memory()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

x = torch.randn(2**24)  # 64 MiB, more than the C library would keep by itself
for _ in range(10):  # how many of the first still need new pages depends on where small blocks lie
    x + 1
before = faults()
for _ in range(10):
    x + 1
print(faults() - before)
"""


def page_faults(keep: bool) -> int:
    program = PROGRAM.format(keep=keep)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.rotating
@pytest.mark.skipif(sys.platform != "linux", reason="only the C library of Linux hands memory back like this")
def test_kept_memory_is_used_again() -> None:
    handed_back, kept = page_faults(keep=False), page_faults(keep=True)

    if handed_back < 100:
        pytest.skip(f"this system counts no page faults ({handed_back} in ten new tensors of 64 MiB)")
    assert kept < handed_back / 10


def test_a_system_that_cannot_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert keep_freed_memory() is False
