"""Time and peak memory of several variants, interleaved in one run and reported as ratios."""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from intervalnn.evaluation.cost import peak_bytes, seconds, versions

Variant = Callable[[], Any]


def compare(
    variants: dict[str, Variant],
    baseline: str,
    device: str,
    repeats: int,
    calls: int = 1,
    turn: AbstractContextManager[Any] | None = None,
) -> list[dict[str, Any]]:
    """Time every variant once per repeat, and form its ratio to the baseline inside each repeat.

    What happens once, such as compiling, happens before; then it waits for its ``turn``, if any.
    """
    for run in variants.values():
        for _ in range(3 if device == "cuda" else 1):
            run()
    with turn or nullcontext():
        return _compare(variants, baseline, device, repeats, calls)


def _compare(
    variants: dict[str, Variant], baseline: str, device: str, repeats: int, calls: int
) -> list[dict[str, Any]]:
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


def table(rows: list[dict[str, Any]], baseline: str) -> str:
    lines = [
        f"| variant | time, ms | x {baseline} | [min, max] | peak memory, MiB |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r['variant']} | {1e3 * r['seconds']:.2f} | **{r['ratio']:.2f}** | "
        f"[{r['ratio_min']:.2f}, {r['ratio_max']:.2f}] | {r['peak_mib']:.0f} |"
        for r in rows
    ]
    return "\n".join(lines)


def write(
    path: Path,
    title: str,
    settings: dict[str, Any],
    device: str,
    rows: list[dict[str, Any]],
    baseline: str = "plain",
) -> None:
    """Write the results as JSON and as a Markdown page beside it, whole or not at all."""
    command = re.sub(r" --out \S+", "", "python " + " ".join(sys.argv))
    record = {"title": title, "command": command, "settings": settings, "versions": versions(device), "rows": rows}
    page = f"# {title}\n\n`{command}`\n\n{record['versions']}\n\n{settings}\n\n{table(rows, baseline)}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix, text in ((".json", json.dumps(record, indent=1)), (".md", page)):
        temporary = path.with_suffix(suffix + ".part")
        temporary.write_text(text)
        temporary.replace(path.with_suffix(suffix))
    print(page)
