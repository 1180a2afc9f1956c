"""The part of ``docs/coverage.md`` about networks of public packages, from what ``examine_outside.py`` has kept."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

FOUND = Path(__file__).parent / "coverage-outside.json"
TITLE = "## Networks of other packages"
HEAD = """
{title}

Each network below was tried in a process of its own, in an environment with its package: with intervals around every
parameter, and once more around those of its last two layers. Beside the point and the draws, four things were checked:
the gaps of every parameter that moves the output widen the bounds, the model is as it was before the capture, a second
input gets its own answer, and gaps in the last two layers give bounds with a width. A network that fails one of them is
**wrong**. A network that does not run here by itself, or takes more than {seconds} seconds, is *not tried*.

In the tables, *seconds* are CPU time, and *reached* is how much of its gap an output used at most in the draws. Bounds
pile up through many layers; so this is next to nothing unless the gaps of the last two layers decide it.

{good} of {tried} convert, {refused} are refused, {wrong} are wrong or crash, and {untried} were not tried.
{draws:,} draws, {outside} outputs outside. The point is bit-identical in {identical} networks; in the others it
is at most {farthest:.0e} away from the model's own output, relative to the largest output. {unbounded}

Written by `make coverage-outside`, with Python {python} and torch {torch}.

{summary}"""
COLUMNS = "| network | parameters | seconds | point | draws | outside | reached |\n|---|---|---|---|---|---|---|\n"
SAYS = {"refused": "refused", "untried": "not tried", "wrong": "**wrong**", "crashed": "**crashed**"}


def part() -> str:
    """Return the part; nothing if nothing was examined yet."""
    if not FOUND.exists():
        return ""
    found = json.loads(FOUND.read_text(encoding="utf-8"))
    by_package: dict[str, list[dict[str, Any]]] = {}
    for row in found["networks"]:
        by_package.setdefault(row["library"], []).append(row)
    text = _head(found["networks"], by_package, found["versions"], found["seconds"])
    return text + "".join(_section(package, rows) for package, rows in by_package.items())


def _head(rows: list[Any], by_package: dict[str, Any], versions: dict[str, str], seconds: int) -> str:
    good = [row for row in rows if row["kind"] == "converts"]
    kinds = Counter(row["kind"] for row in rows)
    endless = [f"{row['name']} ({row['library']})" for row in good if row["unbounded"] > 0]
    return HEAD.format(
        title=TITLE, seconds=seconds, good=len(good), tried=len(rows) - kinds["untried"], refused=kinds["refused"],
        wrong=kinds["wrong"] + kinds["crashed"], untried=kinds["untried"],
        draws=sum(row["draws"] for row in rows), outside=sum(row["outside"] for row in rows),
        identical=sum(row["difference"] == 0 for row in good), farthest=max(row["difference"] for row in good),
        unbounded=f"Some bounds are infinite: {', '.join(endless)}." if endless else "All bounds are finite.",
        python=versions["Python"], torch=versions["torch"], summary=_summary(by_package, versions),
    )  # fmt: skip


def _summary(by_package: dict[str, Any], versions: dict[str, str]) -> str:
    lines = "| package | version | networks | convert | refused | not tried |\n|---|---|---|---|---|---|\n"
    for package, rows in by_package.items():
        kinds = Counter(row["kind"] for row in rows)
        version, counts = versions.get(package, ""), [kinds[kind] for kind in ("converts", "refused", "untried")]
        lines += f"| {package} | {version} | {len(rows)} | {' | '.join(map(str, counts))} |\n"
    return lines


def _section(package: str, rows: list[dict[str, Any]]) -> str:
    good = "".join(_row(row) for row in rows if row["kind"] == "converts")
    bad = "".join(_reason(row) for row in rows if row["kind"] != "converts")
    return f"\n### {package}\n" + (f"\n{COLUMNS}{good}" if good else "") + (f"\n{bad}" if bad else "")


def _row(row: dict[str, Any]) -> str:
    point = "bit-identical" if row["difference"] == 0 else f"{row['difference']:.0e}"
    reached = f"{row['reached']:.0%}" if row["reached"] >= 0.005 else f"{row['reached']:.0e}"
    return (
        f"| {row['name']} | {row['parameters']:,} | {row['seconds']:.1f} | {point} | {row['draws']} "
        f"| {row['outside']} | {reached} |\n"
    )


def _reason(row: dict[str, Any]) -> str:
    return f"- {row['name']} is {SAYS[row['kind']]}: {'; '.join([*row['wrong'][:3], row['reason']]).strip('; ')}\n"
