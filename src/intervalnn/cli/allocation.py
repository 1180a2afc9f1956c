"""Allocation: what the C library does with memory that tensors on the CPU have freed."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, in <malloc.h>
_LARGEST = 2**30  # of a block that is kept, in bytes
_MOST = 2**31 - 1  # that is kept at the end of the heap, the largest number that mallopt takes


def keep_freed_memory() -> bool:
    """Let this process keep the memory that tensors on the CPU free, for the next ones.

    By itself the C library of Linux hands every large block back, and the system clears each page of the next one as
    it is first touched. Bounds of images make many large tensors, so that this takes a good part of the time.
    Kept memory is given back only when the process ends, and its peak may rise.

    Call it once, before the first large tensor; it holds for the whole process. Programs of one's own get the same by
    the environment variables ``MALLOC_MMAP_THRESHOLD_`` and ``MALLOC_TRIM_THRESHOLD_``.

    Returns:
        Whether the C library took it; False elsewhere than on Linux with glibc.
    """
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # a C library without it
        return False
    return all([mallopt(_MMAP_THRESHOLD, _LARGEST), mallopt(_TRIM_THRESHOLD, _MOST)])
