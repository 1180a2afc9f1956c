"""Extras: packages that a command cannot do without, asked for before it does its work."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["require"]


def require(what: str, extra: str, *packages: str) -> None:
    """Refuse what needs packages that are not installed.

    Args:
        what: What needs them.
        extra: The extra that they belong to.
        packages: As they are imported.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ImportError(f'{what} needs {" and ".join(missing)}: pip install "intervalnn[{extra}]"')
