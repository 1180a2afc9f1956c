"""Time and peak memory of several variants, interleaved in one run and reported as ratios."""

from __future__ import annotations

import json
import platform
import re
import statistics
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

Variant = Callable[[], Any]


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(run: Variant, device: str, calls: int = 1) -> float:
    synchronize(device)
    start = time.perf_counter()
    for _ in range(calls):
        run()
    synchronize(device)
    return (time.perf_counter() - start) / calls


def peak_bytes(run: Variant, device: str) -> int:
    """Return how far memory rises above where it stands before the call."""
    synchronize(device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        synchronize(device)
        return torch.cuda.max_memory_allocated() - before
    with LiveBytes() as live:
        run()
    return live.peak


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of all tensors made inside it and still alive, and the most there ever were."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {leaf.untyped_storage()._cdata for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)}
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.untyped_storage()._cdata not in given:
                self._count(leaf.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self.seen:
            return
        self.seen.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._release, key, size)

    def _release(self, key: int, size: int) -> None:
        self.seen.discard(key)
        self.now -= size


def compare(
    variants: dict[str, Variant], baseline: str, device: str, repeats: int, calls: int = 1
) -> list[dict[str, Any]]:
    """Time every variant once per repeat, and form its ratio to the baseline inside each repeat."""
    for run in variants.values():
        for _ in range(3 if device == "cuda" else 1):
            run()
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(repeats):
        for name, run in variants.items():
            times[name].append(seconds(run, device, calls))
    rows = []
    for name, run in variants.items():
        ratios = sorted(t / b for t, b in zip(times[name], times[baseline], strict=True))
        rows.append(
            {
                "variant": name,
                "seconds": statistics.median(times[name]),
                "ratio": statistics.median(ratios),
                "ratio_min": ratios[0],
                "ratio_max": ratios[-1],
                "peak_mib": peak_bytes(run, device) / 2**20,
            }
        )
    return rows


def versions(device: str) -> dict[str, str]:
    found = {"python": platform.python_version(), "torch": torch.__version__, "machine": platform.machine()}
    if device == "cuda":
        return found | {"device": torch.cuda.get_device_name(), "cuda": str(torch.version.cuda)}
    return found | {"device": f"CPU, {torch.get_num_threads()} threads"}


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| variant | time, ms | x plain | [min, max] | peak memory, MiB |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| {r['variant']} | {1e3 * r['seconds']:.2f} | **{r['ratio']:.2f}** | "
        f"[{r['ratio_min']:.2f}, {r['ratio_max']:.2f}] | {r['peak_mib']:.0f} |"
        for r in rows
    ]
    return "\n".join(lines)


def write(path: Path, title: str, settings: dict[str, Any], device: str, rows: list[dict[str, Any]]) -> None:
    """Write the results as JSON and as a Markdown page beside it, whole or not at all."""
    command = re.sub(r" --out \S+", "", "python " + " ".join(sys.argv))
    record = {"title": title, "command": command, "settings": settings, "versions": versions(device), "rows": rows}
    page = f"# {title}\n\n`{command}`\n\n{record['versions']}\n\n{settings}\n\n{table(rows)}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix, text in ((".json", json.dumps(record, indent=1)), (".md", page)):
        temporary = path.with_suffix(suffix + ".part")
        temporary.write_text(text)
        temporary.replace(path.with_suffix(suffix))
    print(page)
