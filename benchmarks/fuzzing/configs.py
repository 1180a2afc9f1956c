"""Configs: files and ``--set`` that nobody should write, and what must come of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

from fuzzing.mutations import changed, mutated, odd_value
from intervalnn.cli.config import Config, ConfigError, from_sources, options_of
from intervalnn.cli.config.options import sections

__all__ = ["OPTIONS", "case", "check", "shown", "table", "toml"]

OPTIONS = [option for section in ("", *sections()) for option in options_of(section)]
LONG = ("9" * 5000, "0x" + "f" * 5000, "[" * 2000 + "]" * 2000, "1" + "0" * 400, "nan", "-inf", "1979-05-27T07:32:00Z")


def case(random: Random, folder: Path) -> None:
    """Read a config that is odd somewhere; fails if anything else comes of it than a config or a clear error."""
    what = random.randrange(4)
    if what == 0:
        check(mutated(toml(table(random)).encode(), random), [], folder)
    elif what == 1:
        check(toml(changed(table(random), random)).encode("utf-8", "replace"), [], folder)
    elif what == 2:
        option, value = random.choice(OPTIONS), random.choice(LONG)
        check(b"", [f"{option.name}={value}", f"{option.name}={shown(odd_value(random))}"], folder)
    else:
        option = random.choice(OPTIONS)
        text = f"{option.name}={shown(odd_value(random))}"
        check(toml(table(random)).encode(), [mutated(text.encode(), random).decode("utf-8", "replace")], folder)


def check(content: bytes, sets: list[str], folder: Path) -> None:
    """Read a config file of these bytes, and what is set beside it."""
    file = folder / "c.toml"
    file.write_bytes(content)
    try:
        config = from_sources(file, sets, {("fit", "epochs"): 3})
    except ConfigError as error:
        text = str(error)
    else:
        assert config.fit.epochs == 3
        _of_its_type(config)
        return
    assert str(file) in text or "--set" in text, f"does not say where: {text}"
    assert len(text) < 2000, f"is too long: {len(text)} characters"


def _of_its_type(config: Config) -> None:
    for option in OPTIONS:
        value: Any = config
        for part in option.key:
            value = getattr(value, part)
        assert value is None or type(value) in (*_types(option.kind),), f"{option.name} became {value!r}"


def _types(kind: Any) -> list[type]:
    text = str(kind)
    named = {"int": int, "float": float, "bool": bool, "str": str, "Path": type(Path()), "dict": dict, "tuple": tuple}
    return [each for name, each in named.items() if name in text] + ([str] if "Literal" in text else [])


def table(random: Random) -> dict[str, Any]:
    """Return a config that is right, of some of the options."""
    table: dict[str, Any] = {}
    for option in random.sample(OPTIONS, 6):
        place = table
        for part in option.key[:-1]:
            place = place.setdefault(part, {})
        value = random.choice((1, 0.5, "a", True, ["a"], {"a": "b"})) if option.default is None else option.default
        place[option.key[-1]] = str(value) if isinstance(value, Path) else value
    return table


def toml(table: Any) -> str:
    """Return plain values as TOML, where null is left as no TOML at all."""
    if not isinstance(table, dict):
        return f"value = {shown(table)}"
    plain = [f"{_key(key)} = {shown(value)}" for key, value in table.items() if not isinstance(value, dict)]
    for name, inside in table.items():
        if isinstance(inside, dict):
            plain += [f"[{_key(name)}]", *(f"{_key(key)} = {shown(value)}" for key, value in inside.items())]
    return "\n".join(plain)


def _key(key: str) -> str:
    return key if key.replace("_", "a").isalnum() and key.isascii() else json.dumps(key, ensure_ascii=False)


def shown(value: Any) -> str:
    """Return a plain value as TOML."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {shown(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
