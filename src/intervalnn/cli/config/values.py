"""Values: whether what a file says can be an option's value, and what to say where it cannot."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

__all__ = ["LARGEST", "ConfigError", "arms", "did_you_mean", "shown", "value_of"]


LONGEST = 200  # characters of a value in an error
LARGEST = 2**63  # whole numbers below it are all that TOML promises to hold


class ConfigError(ValueError):
    """A key that no option has, or a value that it cannot have."""


def value_of(value: Any, kind: Any, where: str) -> Any:
    """Return a value of TOML as its option wants it.

    Args:
        value: What stands in the file.
        kind: The option's type.
        where: What to call it in an error.

    Example:
        >>> value_of(["a", "b"], int | tuple[str, ...], "layers"), value_of(1, float | None, "lr")
        (('a', 'b'), 1.0)
    """
    for arm in arms(kind):
        found = _as(value, arm)
        if found is not None:
            return found
    raise ConfigError(f"{where} must be {' or '.join(map(_words, arms(kind)))}, got {shown(value)}")


def shown(value: Any) -> str:
    """Return what stands in a file, as an error shows it: not all of it, where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes no number of thousands of digits
        return "something too long to be shown"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def arms(kind: Any) -> list[Any]:
    """Return the types that a type allows, without None."""
    if get_origin(kind) not in (Union, types.UnionType):
        return [kind]
    return [arm for arm in get_args(kind) if arm is not type(None)]


def _as(value: Any, kind: Any) -> Any:
    """Return a value as one type wants it, or None where it cannot be."""
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else None
    if get_origin(kind) is tuple:
        items = [_as(item, get_args(kind)[0]) for item in value] if isinstance(value, list) else [None]
        return None if None in items else tuple(items)
    if get_origin(kind) is dict:
        fits = isinstance(value, dict) and (get_args(kind)[1] is Any or all(map(_is_text, value.values())))
        return value if fits else None
    if kind is Path:
        return Path(value) if _is_text(value) else None
    if kind is str:
        return value if _is_text(value) else None
    if type(value) is int and abs(value) >= LARGEST:
        return None
    if kind is float and type(value) is int:
        return float(value)
    return value if type(value) is kind else None  # exactly: true is no number


def _is_text(value: Any) -> bool:
    """Say whether a value is a text that the name of a file may be, as any on the command line."""
    return isinstance(value, str) and "\0" not in value


def _words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if get_origin(kind) is tuple:
        return {int: "a list of whole numbers", float: "a list of numbers", str: "a list of texts"}[get_args(kind)[0]]
    if get_origin(kind) is dict:
        return "a table" if get_args(kind)[1] is Any else "a table of texts"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a text", Path: "a path"}[kind]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message: what ``name`` may have been meant to be.

    Example:
        >>> did_you_mean("epoch", ["epochs", "lr"])
        "; did you mean 'epochs'?"
    """
    known = list(known)
    same = [each for each in known if each.rpartition(".")[2] == name]
    close = same[:3] or difflib.get_close_matches(name, known, n=3)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    return f"; there is {', '.join(known[:20])}" if known else ""
