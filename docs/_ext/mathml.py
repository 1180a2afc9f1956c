"""Formulas as MathML, which browsers draw themselves: no script, no font and no TeX is needed."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

VARIANT = re.compile(r'<(m[ino]) mathvariant="(double-struck|script)">(\w)</\1>')


def mathml(latex: str, display: str = "inline") -> str:
    """Return a formula as MathML that browsers know: they align by style, and letters have no variants."""
    latex = latex.strip().replace("{aligned}", "{align*}")
    return VARIANT.sub(_letter, convert(latex, display=display))


def _letter(match: re.Match[str]) -> str:
    """Return the character that is the variant of a letter, such as a double-struck E."""
    tag, variant, letter = match.groups()
    name = f"{variant.upper()} {'CAPITAL' if letter.isupper() else 'SMALL'} {letter.upper()}"
    try:
        found = unicodedata.lookup(name)  # the few that are older than the others
    except KeyError:
        found = unicodedata.lookup(f"MATHEMATICAL {name}")
    return f"<{tag}>{found}</{tag}>"


def inline(writer: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own, with its number if it has a label."""
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(mathml(node.astext(), "block"))
    if node["number"]:
        writer.body.append(f'<span class="eqno">({node["number"]})</span>')
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register it; ``html_math_renderer = "mathml"`` chooses it."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
