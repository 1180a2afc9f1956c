"""Convert every network of the tests, check the bounds by draws, and write ``docs/coverage.md``.

Run it with ``make coverage-doc``; give a part of a name to see only the networks that have it in theirs.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import coverage_outside
import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "networks"))

from soundness import leaves, misses, precision, set_random_gaps  # noqa: E402 - after the path is set

import intervalnn as inn  # noqa: E402

DRAWS = 50
GROUPS = {  # title, module, names of its lists
    "Networks of every kind (tests/networks/zoo.py)": ("zoo", ["ZOO"]),
    "MONAI (tests/networks/monai_zoo.py)": ("monai_zoo", ["MONAI", "REFUSED"]),
    "Hugging Face transformers (tests/networks/transformers_zoo.py)": ("transformers_zoo", ["TRANSFORMERS", "REFUSED"]),
}
HEAD = """# Which networks convert

Each network below was given to `IntervalNetwork` as it is, without an edit, with intervals around **every**
parameter. The columns say

- *parameters*: how many it has; the networks are small, for what counts is which operations they use;
- *seconds*: how long the first call took, which captures the program (CPU, one thread);
- *point*: whether the prediction is the model's own output bit for bit, in float32; else the largest difference
  relative to the largest output, which comes from operations that had to be taken apart;
- *draws*: random weights inside the intervals, half of them at the ends, for which the model was run: in float64, or
  in float32 if it computes in nothing else;
- *outside*: how many outputs of these runs left the bounds, by more than 1e-9 of the largest output (1e-4 in float32).

What cannot be bounded is refused, with an error that names the operation and the line, and listed with it.

Written by `make coverage-doc` ({versions}).
"""
COLUMNS = "| network | parameters | converts | seconds | point | draws | outside |\n|---|---|---|---|---|---|---|\n"


@dataclass
class Row:
    """What was found of one network."""

    name: str
    parameters: int = 0
    seconds: float = 0.0
    difference: float = 0.0
    draws: int = 0
    outside: int = 0
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"| {self.name} | {self.parameters or ''} | no: {self.error} | | | | |\n"
        point = "bit-identical" if self.difference == 0 else f"{self.difference:.0e}"
        return (
            f"| {self.name} | {self.parameters:,} | yes | {self.seconds:.1f} | {point} | {self.draws} "
            f"| {self.outside} |\n"
        )


def examine(case: Any) -> Row:
    """Convert one network, and try it."""
    row = Row(case.name)
    try:
        model = case.build()
        row.parameters = sum(p.numel() for p in model.parameters())
        args, kwargs = case.call()
        net = inn.IntervalNetwork(model, layers="all")
        start = time.perf_counter()
        with torch.no_grad():
            bounds = leaves(net(*args, **kwargs))
            row.seconds = time.perf_counter() - start
            row.difference = max(map(_difference, bounds, leaves(model(*args, **kwargs))))
        dtype, rtol = precision(case)
        net = inn.IntervalNetwork(case.build(dtype), layers="all")
        set_random_gaps(net, rel=case.rel)
        args, kwargs = case.call(dtype)
        row.draws = DRAWS
        row.outside, _ = misses(net, case.build(dtype), args, kwargs, draws=DRAWS, rtol=rtol)
    except Exception as error:
        row.error = _first_line(error)
    return row


def _difference(bounds: Any, output: torch.Tensor) -> float:
    if not isinstance(bounds, inn.Interval) or torch.equal(bounds.point, output):
        return 0.0
    return float((bounds.point - output).abs().max() / output.abs().max())


def _first_line(error: Exception) -> str:
    line = str(error).strip().splitlines()[0] if str(error).strip() else ""
    site = str(Path(torch.__file__).parents[1])
    return f"`{type(error).__name__}`: {line}".replace(site + "/", "").replace(f"{ROOT}/", "").replace("|", "\\|")


def groups(wanted: str) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each group; one row with the reason if its package is missing."""
    for title, (module, lists) in GROUPS.items():
        try:
            found = importlib.import_module(module)
        except ImportError as error:
            yield title, [Row("all", error=_first_line(error))]
            continue
        cases = [case for name in lists for case in getattr(found, name)]
        yield title, [_said(examine(case)) for case in cases if wanted in case.name]


def _said(row: Row) -> Row:
    sys.stderr.write(str(row))
    return row


def versions() -> str:
    """Say what it was run with."""
    names = ("torch", "monai", "transformers", "einops")
    found = []
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return ", ".join([f"Python {platform.python_version()}", *found])


def main() -> None:
    """Write the page; with ``outside``, only the sections of other packages anew."""
    page = ROOT / "docs" / "coverage.md"
    if sys.argv[1:] == ["outside"]:
        own = page.read_text(encoding="utf-8").split(f"\n{coverage_outside.TITLE}")[0]
        page.write_text(own + coverage_outside.part(), encoding="utf-8")
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.getLogger("transformers").setLevel(logging.CRITICAL)
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    text, rows = HEAD.format(versions=versions()), []
    tables = []
    for title, found in groups(wanted):
        tables.append(f"\n## {title}\n\n{COLUMNS}{''.join(map(str, found))}")
        rows += found
    good = [row for row in rows if not row.error]
    text += (
        f"\n{len(good)} of {len(rows)} convert; {sum(row.draws for row in good):,} draws, "
        f"{sum(row.outside for row in good)} outputs outside; "
        f"{sum(row.difference == 0 for row in good)} points bit-identical.\n"
    )
    text += "".join(tables)
    if wanted:
        sys.stdout.write(text)
    else:
        page.write_text(text + coverage_outside.part(), encoding="utf-8")


if __name__ == "__main__":
    main()
