"""Places that cannot be written to, for real: full disks, files that may not grow, read-only folders."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def no_larger_files(limit: int = 2048) -> Iterator[None]:
    """Let the kernel refuse files above a size (EFBIG), as a quota does; needs no privileges."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))  # Python ignores the signal, so that writing fails
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """Mount a file system in memory, or skip the test where nobody may."""
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("a real disk that is full or read-only has to be mounted, which root alone may do")
    folder.mkdir()
    done = subprocess.run([mount, "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"root may not mount here: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path) -> None:
    """Write until there is no room left."""
    with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """Give a folder in which nothing may be made: by permissions, or by a mount where they do not bind."""
    if os.geteuid() == 0:
        with mounted(folder, "ro") as place:
            yield place
        return
    folder.mkdir()
    folder.chmod(0o555)
    try:
        yield folder
    finally:
        folder.chmod(0o755)
