"""Printable: names of files, and whatever else others wrote, as text that no terminal, table or page obeys."""

from __future__ import annotations

import unicodedata

__all__ = ["printable"]

JOINERS = "\u200c\u200d"  # which letters of some languages, and some pictures, are put together with


def printable(text: object, *, lines: bool = False) -> str:
    r"""Return a text of which each character can be seen; others are written as Python writes them.

    Control characters move the cursor or colour what follows, ends of lines break tables, and marks of direction turn
    the rest of a line around.

    Args:
        text: What is to be shown.
        lines: Whether it may have several lines.

    Example:
        >>> print(printable("Müller\n\x1b[2J.npz"))
        Müller\n\x1b[2J.npz
    """
    kept = JOINERS + "\n" * lines
    return "".join(each if _seen(each) or each in kept else _escaped(each) for each in str(text))


def _seen(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
