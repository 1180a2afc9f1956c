"""Flags: the options of the config as options of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click

from intervalnn.cli.config import Option
from intervalnn.cli.config.every_option import Model
from intervalnn.cli.config.values import LARGEST, arms

__all__ = ["TitledOption", "as_flag", "model_flags"]

NBSP = "\xa0"  # a space at which no line is broken


class TitledOption(click.Option):
    """An option that stands under a title in the help."""

    title = "General"


def as_flag(name: str, option: Option) -> click.Option:
    """Return an option of the config as click wants it; its value is None, or empty, unless someone gives one.

    Args:
        name: What the function behind the command gets it as.
        option: The option.
    """
    kinds = arms(option.kind)
    flag = f"{option.flag_name}/--no-{option.flag_name[2:]}" if kinds == [bool] else option.flag_name
    made = TitledOption(
        [flag, name],
        help=option.flag.help + ("  [required]" if option.flag.required else _shown(option.default)),
        metavar=option.flag.metavar,
        default=None,
        **_type(kinds),
    )
    made.title = option.key[0].capitalize() if len(option.key) > 1 else "Computing"
    return made


def _shown(default: Any) -> str:
    if isinstance(default, tuple) and default:
        default = ",".join(each if isinstance(each, str) else f"{each:g}" for each in default)
    return "" if default is None or isinstance(default, bool | tuple | dict) else f"  [default:{NBSP}{default}]"


def _type(kinds: list[Any]) -> dict[str, Any]:
    """Return how click reads an option of one of these types."""
    kind, origin = kinds[0], get_origin(kinds[0])
    if len(kinds) > 1:
        return {"type": str}
    if origin is Literal:
        return {"type": click.Choice(list(get_args(kind)))}
    if origin is dict:
        return {"type": str, "multiple": True, "callback": _by_name}
    if origin is tuple:
        return {"type": str, "multiple": True} if get_args(kind)[0] is str else {"type": _numbers(get_args(kind)[0])}
    known = {Path: click.Path(path_type=Path), int: _Whole()}
    return {} if kind is bool else {"type": known.get(kind, kind)}


class _Whole(click.types.IntParamType):
    """A whole number of the size that a file may hold, too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if abs(number) >= LARGEST:
            self.fail(f"{value!r} has too many digits.", param, ctx)
        return number


def _numbers(kind: type) -> Callable[[str], tuple[Any, ...]]:
    """Return a function that reads numbers with commas between, as in ``128,128``."""

    def numbers(text: str) -> tuple[Any, ...]:
        try:
            return tuple(kind(part) for part in text.split(","))
        except ValueError:
            raise click.BadParameter(f"{text!r} must be numbers with commas between.") from None

    return numbers


def _by_name(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
    """Return texts ``[NAME=]VALUE`` by name; one without a name is called by what it ends in."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            name, value = (text.rpartition(":")[2] if ":" in text else Path(text).stem), text
        if name in found:
            raise click.BadParameter(f"there are two named {name!r}; name them, as in NAME={value}", context, parameter)
        found[name] = value
    return found or None


def model_flags(model: Model) -> list[str]:
    """Return what to type for the same model again.

    Example:
        >>> model_flags(Model("mymodels:unet", options={"width": 8}))
        ['--model', 'mymodels:unet', '--set', 'model.options.width=8']
    """
    given = {"--model": model.factory, "--weights": model.weights, "--weights-key": model.weights_key}
    words = [str(word) for pair in given.items() if pair[1] is not None for word in pair]
    return words + [
        word for name, value in model.options.items() for word in ("--set", f"model.options.{name}={value}")
    ]
