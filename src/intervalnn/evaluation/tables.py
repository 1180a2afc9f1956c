"""Tables: rows of numbers as plain text, Markdown or LaTeX, with the best marked."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["STYLES", "Cell", "number"]


def number(value: float, digits: int) -> str:
    """Return a number with so many significant digits, zeros at the end among them, and all before the point.

    Example:
        >>> [number(value, 4) for value in (0.9, 12.0, 123456.7, 1.2e-7, math.inf)]
        ['0.9000', '12.00', '123457', '1.200e-07', 'inf']
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    text = f"{value:#.{digits}g}".removesuffix(".")
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e6 else text


class Cell(NamedTuple):
    """What stands at one place, and whether it is the best of its column."""

    text: str
    best: bool = False


def _text(head: list[str], rows: list[list[Cell]], notes: list[str]) -> str:
    """Return columns of equal width, with long names above each other, and a place for the mark."""
    columns = list(zip(*rows, strict=True))
    marked = [any(cell.best for cell in column) for column in columns]
    cells = [[c.text + (" *" if c.best else "  " if m else "") for c, m in zip(r, marked, strict=True)] for r in rows]
    widest = [max(len(row[i]) for row in cells) for i in range(len(head))]
    names = [textwrap.wrap(name, max(w, *map(len, name.split()), 1)) for name, w in zip(head, widest, strict=True)]
    height = max(map(len, names))
    whole = [*zip(*([""] * (height - len(name)) + name for name in names), strict=True), *cells]
    widths = [max(len(row[i]) for row in whole) for i in range(len(head))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in whole
    ]
    return "\n".join([*lines, *notes])


def _markdown(head: list[str], rows: list[list[Cell]], notes: list[str]) -> str:
    cells = [[f"**{cell.text}**" if cell.best else cell.text for cell in row] for row in rows]
    safe = str.maketrans({"\\": "&#92;", "|": r"\|", "<": "&lt;"} | {c: f"&#{ord(c)};" for c in "&`[]$~"})
    lines = ["| " + " | ".join(cell.translate(safe) for cell in row) + " |" for row in [head, *cells]]
    lines.insert(1, "| --- |" + " ---: |" * (len(head) - 1))
    return "\n".join([*lines, *("\n" + note for note in notes)])


def _latex(head: list[str], rows: list[list[Cell]], notes: list[str]) -> str:
    lines = [r"\begin{tabular}{l" + "r" * (len(head) - 1) + "}", r"\hline"]
    lines += [" & ".join(map(_escaped, head)) + r" \\", r"\hline"]
    lines += [" & ".join([_escaped(row[0].text), *map(_formula, row[1:])]) + r" \\" for row in rows]
    lines += [r"\hline", *(rf"\multicolumn{{{len(head)}}}{{l}}{{{_escaped(note)}}} \\" for note in notes)]
    return "\n".join([*lines, r"\end{tabular}"])


def _formula(cell: Cell) -> str:
    """Return a number as LaTeX, whose bold letters do not reach into a formula from outside."""
    if not cell.text.strip("-") or cell.text == "undefined":
        return cell.text.replace("-", "--")
    bold = r"\mathbf{%s}" if cell.best else "%s"
    parts = (re.sub(r"e([+-]\d+)$", lambda e: rf" \cdot 10^{{{int(e[1])}}}", part) for part in cell.text.split(" ± "))
    return "$" + r" \pm ".join(bold % part.replace("inf", r"\infty") for part in parts) + "$"


def _escaped(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
    special |= {c: f"${c}$" for c in "<>|"} | {c: "\\" + c for c in "_%&#{}$"}
    return "".join(special.get(c, c) for c in text)


STYLES: Mapping[str, Callable[[list[str], list[list[Cell]], list[str]], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
}
