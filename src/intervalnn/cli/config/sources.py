"""Sources: a file, ``--set`` and the command line, from the weakest to the strongest."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from intervalnn.cli.config.every_option import Config
from intervalnn.cli.config.options import hints, options_of, sections
from intervalnn.cli.config.values import ConfigError, did_you_mean, shown, value_of

__all__ = ["from_sources"]

Table = dict[str, Any]


def from_sources(file: Path | None, sets: Iterable[str], given: Mapping[tuple[str, ...], Any]) -> Config:
    """Return the options, each from the strongest source that has it.

    Args:
        file: A TOML file, the weakest.
        sets: Texts ``"table.key=value"`` with a value as TOML writes it; quotes may be left out.
        given: What the command line says, by key; the strongest. It is taken as it is.

    Example:
        >>> config = from_sources(None, ["fit.epochs=3", "fit.lr=0.1"], {("fit", "epochs"): 5})
        >>> config.fit.epochs, config.fit.lr
        (5, 0.1)
    """
    merged: Table = {} if file is None else _checked(_read(file), str(file))
    for text in sets:
        _merge(merged, _checked(_parsed(text), "--set"))
    for (*tables, last), value in given.items():
        place = merged
        for each in tables:
            place = place.setdefault(each, {})
        place[last] = value
    built = {name: hints(Config)[name](**merged.get(name, {})) for name in sections()}
    return Config(**merged | built)


def _read(file: Path) -> Table:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is no TOML: it is not text in UTF-8, at byte {error.start}") from error
    except (ValueError, RecursionError) as error:  # a number or a depth without end is no TOMLDecodeError
        raise ConfigError(f"{file} is no TOML: {error}") from error


def _parsed(text: str) -> Table:
    key, equals, value = text.partition("=")
    *tables, last = (part.strip() for part in key.split("."))
    if not equals or not all((*tables, last)):
        raise ConfigError(f"--set wants table.key=value, such as fit.epochs=5, got {shown(text)}")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        parsed = {}
    found = parsed["value"] if parsed.keys() == {"value"} else value.strip()  # a word without quotes
    result: Table = {last: found}
    for table in reversed(tables):
        result = {table: result}
    return result


def _merge(into: Table, more: Table) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _checked(table: Table, where: str, kind: Any = Config, tables: tuple[str, ...] = ()) -> Table:
    """Return a table with all its values as they are wanted, or say which of them is not."""
    result: Table = {}
    for key, value in table.items():
        name = ".".join((*tables, key))
        if key not in hints(kind):
            raise ConfigError(f"{where}: unknown key {shown(name)}{_suggestion(name)}")
        hint = hints(kind)[key]
        if not is_dataclass(hint):
            result[key] = value_of(value, get_args(hint)[0], f"{where}: '{name}'")
        elif isinstance(value, dict):
            result[key] = _checked(value, where, hint, (*tables, key))
        else:
            raise ConfigError(f"{where}: '{name}' must be a table, [{name}], got {shown(value)}")
    return result


def _suggestion(name: str) -> str:
    """Return what an unknown key may have been meant to be: one of its table, or one of its name in another."""
    known = [option.key for section in ("", *sections()) for option in options_of(section)]
    *table, last = name.split(".")
    beside = [each[-1] for each in known if list(each[:-1]) == table] + ([] if table else list(sections()))
    elsewhere = [".".join(each) for each in known if each[-1] == last]
    return did_you_mean(last, elsewhere if elsewhere and not get_close_matches(last, beside) else beside)
