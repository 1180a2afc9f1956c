"""Write benchmarks/results/README.md from the files beside it: one table, the ratio of every variant in every run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"
INTRODUCTION = """# Results

Written by `python benchmarks/summary.py` from the files beside it, each of which holds the command, the settings and
the versions that made it (the script of `kernel-*` lost, and is in the history alone). Time is a ratio to the plain
forward of the same run (in `memory-*` to the plain training step, in `export-*` to ONNX Runtime's plain forward, in
`kernel-*` to the compiled layer); peak memory is in MiB, and left open where a CUDA graph holds it. A floor is what
the products take at the measured matrix rate, and one pass over memory between them; beside it stands what the
products take by themselves, called one by one as without compiling.

MC dropout is twice as slow in the default layout as in channels last, where it costs what ten plain passes cost:
compiled, its masks make torch fall back to a slow pass in that layout. So compare with either. CUDA graphs
(`--mode reduce-overhead`) save the calls of kernels, for which small inputs and training steps at 256x256 wait; the
ratios of these vary with the CPU beside the GPU.
Aims on the H200: all layers 2.4, and 2.0 with a gap per input; last 7 1.4. Every variant takes what its products take
by themselves and one pass over memory, to 5 %; so with a gap below and one above each weight, both aims would need
faster convolutions than the vendor's, and a kernel of our own (`kernel-h200`) is slower. Symmetric gaps reach 2.4, and
1.4 but for the scatter; a gap per input reaches both. A training step: all layers 3, last 7 1.8. On a CPU, where gaps
are in float32 too, a step for all layers has 11 products for the plain one's 3, so 3 is out of reach there; it has 8
with symmetric gaps, and 5 with a gap per input.

The cost of bounds grows as that of the plain forward (`growth-*`): on a GPU, small settings wait for the calls of
kernels, of which bounds have more, and with CUDA graphs (`growth-h200-graphs`) only those below a millisecond do; on
the CPU, large tensors wait for memory unless it is kept (`--keep-memory`).
"""


def section(path: Path) -> str:
    record = json.loads(path.read_text())
    lines = [
        f"\n## {path.stem}\n",
        f"`{record['command']}` ({record['versions']['device']}, torch {record['versions']['torch']})\n",
    ]
    if "kind" in record["rows"][0]:
        return "\n".join(lines + kinds(record["rows"]))
    lines += ["| variant | time | peak memory |", "| --- | --- | --- |"]
    for row in record["rows"]:
        memory = "" if "reduce-overhead" in record["command"] else f"{row['peak_mib']:.0f}"
        lines.append(f"| {row['variant']} | {row['ratio']:.2f} | {memory} |")
    return "\n".join(lines)


def kinds(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "Interval score at equal coverage (1D task, quick scale) by what has a gap of its own, times that of every "
        "weight, and how often the wide side is the right one:\n",
        "| noise | layers | kind | score / MAE | x weight | direction |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return lines + [
        f"| {r['noise']:g} | {r['layers']} | {r['kind']} | {r['score']:.2f} | {r['score, x weight']:.3f} | "
        f"{r['direction']:.1%} |"
        for r in rows
    ]


def main() -> None:
    rows = {path: json.loads(path.read_text()).get("rows") for path in sorted(FOLDER.glob("*.json"))}
    paths = [path for path, own in rows.items() if own and {"ratio", "kind"} & own[0].keys()]
    page = INTRODUCTION + "\n".join(section(path) for path in paths) + "\n"
    (FOLDER / "README.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
