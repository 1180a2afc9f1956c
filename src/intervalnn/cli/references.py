"""References: what ``package.module:name`` stands for, in the user's own code."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from intervalnn.cli.config import did_you_mean

__all__ = ["call", "is_reference", "resolve"]


def is_reference(text: str) -> bool:
    """Say whether a text is a reference rather than a path."""
    return ":" in text and not Path(text).exists() and not Path(text.partition(":")[0] + ":").is_absolute()


def resolve(reference: str) -> Any:
    """Return the object that ``package.module:name`` stands for; modules in the working directory come first."""
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise ValueError(f"{reference!r} must be package.module:name, such as mymodels:unet")
    found: Any = _module(module_name)
    for part in name.split("."):
        if not hasattr(found, part):
            public = [each for each in dir(found) if not each.startswith("_")]
            raise ValueError(f"{module_name} has no {name!r}{did_you_mean(part, public)}")
        found = getattr(found, part)
    return found


def _module(name: str) -> ModuleType:
    here = os.getcwd()  # noqa: PTH109 - sys.path holds texts
    if here not in sys.path:
        sys.path.insert(0, here)
    if "/" in name or name.startswith("."):  # a path, which Python would take for something else
        raise ImportError(_no_module(name, ".".join(Path(name.removesuffix(".py")).parts)))
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise ImportError(f"{name} imports {error.name}, which is not installed") from error
        raise ImportError(_no_module(error.name, error.name)) from error
    except Exception as error:
        raise ImportError(f"{name} could not be imported: {type(error).__name__}: {error}") from error


def _no_module(name: str, meant: str) -> str:
    """Return what to say of a module that is not there, and which in the working directory may have been meant."""
    here = Path.cwd()
    files = [path.stem for path in here.glob("*.py")]
    if "." in meant and here.joinpath(*meant.split(".")).with_suffix(".py").is_file():
        files = [meant]
    return f"there is no module {name!r}, neither in {here} nor among what is installed{did_you_mean(meant, files)}"


def call(reference: str, function: Any, *args: Any, options: Mapping[str, Any]) -> Any:
    """Call what a reference stands for, once it is known to take these arguments.

    Args:
        reference: What to call it in an error.
        function: What to call.
        args: Arguments by position.
        options: Arguments by name.
    """
    if not callable(function):
        raise TypeError(f"{reference} must be a function or a class, got a {type(function).__name__}")
    _check_arguments(reference, function, args, options)
    try:
        return function(*args, **options)
    except Exception as error:
        error.add_note(f"This was raised in {reference}.")
        raise


def _check_arguments(reference: str, function: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some that are not written in Python have none
        return
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        raise ValueError(f"{reference} takes {signature}, and was called otherwise: {error}") from error
