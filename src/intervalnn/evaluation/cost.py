"""Cost: how long a call takes, and how far memory rises above where it stood before."""

from __future__ import annotations

import platform
import time
import weakref
from collections.abc import Callable
from typing import Any

import torch

from intervalnn import __version__
from intervalnn.torch_private import TorchDispatchMode, key_of, pytree

__all__ = ["LiveBytes", "peak_bytes", "seconds", "synchronize", "versions"]


def synchronize(device: str) -> None:
    """Wait until the device has done all that it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(run: Callable[[], Any], device: str, calls: int = 1) -> float:
    """Return the wall time of one call."""
    synchronize(device)
    start = time.perf_counter()
    for _ in range(calls):
        run()
    synchronize(device)
    return (time.perf_counter() - start) / calls


def peak_bytes(run: Callable[[], Any], device: str) -> int:
    """Return how far memory rises above where it stands before the call."""
    synchronize(device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        synchronize(device)
        peak: int = torch.cuda.max_memory_allocated() - before
        return peak
    with LiveBytes() as live:
        run()
    most: int = live.peak
    return most


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of all tensors made inside it and still alive, and the most there ever were."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self.seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation, and count what it has made."""
        result = func(*args, **(kwargs or {}))
        given = {key_of(leaf.untyped_storage()) for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)}
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and key_of(leaf.untyped_storage()) not in given:
                self._count(leaf.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, size = key_of(storage), storage.nbytes()
        if key in self.seen:
            return
        self.seen.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._release, key, size)

    def _release(self, key: int, size: int) -> None:
        self.seen.discard(key)
        self.now -= size


def versions(device: str) -> dict[str, str]:
    """Return what a number depends on beside the settings."""
    found = {
        "intervalnn": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "machine": platform.machine(),
    }
    if device == "cuda":
        return found | {"device": torch.cuda.get_device_name(), "cuda": str(torch.version.cuda)}
    threads = torch.get_num_threads()
    return found | {"device": f"CPU, {threads} thread{'s' if threads > 1 else ''}"}
