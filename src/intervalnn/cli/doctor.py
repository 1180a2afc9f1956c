"""``inn doctor``: what is installed, and whether it works."""

from __future__ import annotations

import platform
import re
import time
from typing import Any

import click

from intervalnn import __version__
from intervalnn.cli.command import command
from intervalnn.cli.screen import Failed, Screen

__all__ = ["doctor"]

NAME = re.compile(r"[\w.-]+")
AT_LEAST, BELOW = re.compile(r">=\s*([\w.]+)"), re.compile(r"<\s*([\w.]+)")
EXTRA = re.compile(r";.*extra\s*==\s*['\"](\w+)['\"]")
OURS = ("dev", "docs")  # extras for work on the library itself
OTHERWISE = (
    "a tiny network does not get the numbers that it is known to have with torch {torch}: {wrong}. "
    "Trust no bounds made here, and install another torch of the range above"
)


@command(writes=False)
def doctor(screen: Screen) -> None:
    """Say what is installed, and whether it works."""
    packages = _packages()
    devices = _devices()
    screen.say(f"intervalnn {__version__}, Python {platform.python_version()}, {platform.system()}")
    screen.say(_table(packages))
    for device in devices:
        works = "gets wrong bounds" if device["error"] else f"gets the right bounds, {device['seconds']:.1f} s"
        screen.say(f"{device['device']}: {device['name']}; a tiny network {works}")
    if not any(device["device"].startswith("cuda") for device in devices):
        screen.say("No GPU that torch can use: all runs on the CPU.")
    problems = [_problem(each) for each in packages if each["extra"] is None and not each["fits"]]
    problems += [f"on {each['device']} {each['error']}" for each in devices if each["error"]]
    found = {
        "intervalnn": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "devices": devices,
        "problems": problems,
    }
    screen.finish("doctor", found)
    if problems:
        Failed("; ".join(problems)).show()
        raise click.exceptions.Exit(1)


def _packages() -> list[dict[str, Any]]:
    """Return what the library needs, and what each of its extras needs, as it was installed with."""
    from importlib.metadata import requires  # which takes a while

    found = map(_package, requires("intervalnn") or ())
    return [each for each in found if each["extra"] not in OURS]


def _package(requirement: str) -> dict[str, Any]:
    from importlib import metadata

    name = NAME.match(requirement)[0]  # type: ignore[index]
    wanted, below, extra = (
        found[1] if (found := each.search(requirement)) else None for each in (AT_LEAST, BELOW, EXTRA)
    )
    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        installed = None
    own = _numbers(installed or "")
    fits = installed is not None and own >= _numbers(wanted or "") and (below is None or own < _numbers(below))
    return {"name": name, "wanted": wanted, "below": below, "installed": installed, "extra": extra, "fits": fits}


def _range(package: dict[str, Any]) -> str:
    ends = (">=", package["wanted"]), ("<", package["below"])
    return ",".join(sign + version for sign, version in ends if version)


def _problem(package: dict[str, Any]) -> str:
    """Say what is wrong with a package that is needed, and what to do."""
    name, installed = package["name"], package["installed"]
    if installed is None or _numbers(installed) < _numbers(package["wanted"] or ""):
        return f"{name} must be installed or updated, from a clone: pip install ."
    return f"{name} {installed} is not tested; install one that is: pip install '{name}{_range(package)}'"


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, up to what is no number.

    Example:
        >>> _numbers("2.13.0+cpu")
        (2, 13, 0)
    """
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _table(packages: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table("package", "wanted", "installed", "extra", caption='An extra, from a clone: pip install ".[NAME]"')
    for each in packages:
        style = None if each["fits"] else "red" if each["extra"] is None else "yellow"
        table.add_row(each["name"], _range(each), each["installed"] or "no", each["extra"], style=style)
    return table


def _devices() -> list[dict[str, Any]]:
    try:
        import torch
    except ImportError as error:
        return [{"device": "cpu", "name": platform.machine(), "seconds": None, "error": str(error)}]
    found = {"cpu": f"{platform.machine()}, threads: {torch.get_num_threads()}"}
    for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        about = torch.cuda.get_device_properties(i)
        found[f"cuda:{i}"] = f"{about.name}, {about.total_memory / 2**30:.0f} GiB"
    return [{"device": device, "name": name, **_tried(device)} for device, name in found.items()]


def _tried(device: str) -> dict[str, Any]:
    """Train a tiny network on a device, and return how long it took, or what went wrong and what to do."""
    start = time.perf_counter()
    try:
        import torch

        from intervalnn.cli.known import deviations

        wrong = deviations(device)
        error = OTHERWISE.format(torch=torch.__version__, wrong=", ".join(wrong)) if wrong else None
    except Exception as found:
        error = f"a tiny network gets no bounds: {type(found).__name__}: {found}"
    return {"seconds": time.perf_counter() - start, "error": error}
