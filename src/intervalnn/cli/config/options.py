"""Options: what the sections hold, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from intervalnn.cli.config.every_option import Config, Flag

__all__ = ["Option", "hints", "options_of", "sections", "settings"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command.

    Attributes:
        key: Its name in a file, after the table that it is in: ``("fit", "epochs")``.
        kind: Its type.
        default: Its value where nobody gives one.
        flag: What the command line says of it.
    """

    key: tuple[str, ...]
    kind: Any
    default: Any
    flag: Flag

    @property
    def flag_name(self) -> str:
        """Its name on the command line; empty for what has none there."""
        return f"--{self.key[-1].replace('_', '-')}" if self.flag.name is None else self.flag.name

    @property
    def name(self) -> str:
        """The key as one writes it after ``--set``."""
        return ".".join(self.key)


@cache
def hints(table: Any) -> dict[str, Any]:
    """Return the type of each key of a table, annotations included."""
    return get_type_hints(table, include_extras=True)


def sections() -> Iterator[str]:
    """Yield the names of the tables."""
    return (name for name, hint in hints(Config).items() if is_dataclass(hint))


def options_of(section: str) -> list[Option]:
    """Return the options in a table; ``""`` is for those outside of all tables.

    Example:
        >>> [option.name for option in options_of("")]
        ['device', 'batch_size', 'max_gib']
    """
    table: Any = hints(Config)[section] if section else Config
    place = (section,) if section else ()
    defaults = table()
    found = []
    for each in fields(table):
        hint = hints(table)[each.name]
        if get_origin(hint) is Annotated:
            kind, flag = get_args(hint)
            found.append(Option((*place, each.name), kind, getattr(defaults, each.name), flag))
    return found


def settings(table: Any, *names: str) -> dict[str, Any]:
    """Return those of the named options that have a value, for a function that knows its own defaults.

    Example:
        >>> from intervalnn.cli.config.every_option import Fit
        >>> settings(Fit(epochs=3), "epochs", "lr")
        {'epochs': 3}
    """
    return {name: value for name in names if (value := getattr(table, name)) is not None}
