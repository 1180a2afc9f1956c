"""``inn doctor``: what is installed, and whether it works."""

from __future__ import annotations

import platform
import re
import time
from typing import Any

import click

from intervalnn.cli.command import command
from intervalnn.cli.screen import Failed, Screen
from intervalnn.version import __version__

__all__ = ["doctor"]

REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:>=\s*([\w.]+))?[^;]*(?:;.*extra\s*==\s*['\"](\w+)['\"])?")
OURS = ("dev", "docs")  # extras for work on the library itself


@command(writes=False)
def doctor(screen: Screen) -> None:
    """Say what is installed, and whether it works."""
    packages = _packages()
    devices = _devices()
    screen.say(f"intervalnn {__version__}, Python {platform.python_version()}, {platform.system()}")
    screen.say(_table(packages))
    for device in devices:
        works = f"a small network gets bounds in {device['seconds']:.2f} s" if not device["error"] else device["error"]
        screen.say(f"{device['device']}: {device['name']}; {works}")
    if not any(device["device"].startswith("cuda") for device in devices):
        screen.say("No GPU that torch can use: all runs on the CPU.")
    wrong = [each["name"] for each in packages if each["extra"] is None and not each["fits"]]
    problems = [f"{name} must be installed or updated, from a clone: pip install ." for name in wrong]
    problems += [f"on {each['device']} a small network gets no bounds" for each in devices if each["error"]]
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

    found = (REQUIREMENT.match(each) for each in requires("intervalnn") or ())
    return [_package(*match.groups()) for match in found if match is not None and match[3] not in OURS]


def _package(name: str, wanted: str | None, extra: str | None) -> dict[str, Any]:
    from importlib import metadata

    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        installed = None
    fits = installed is not None and _numbers(installed) >= _numbers(wanted or "0")
    return {"name": name, "wanted": wanted, "installed": installed, "extra": extra, "fits": fits}


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

    table = Table("package", "at least", "installed", "extra", caption='An extra, from a clone: pip install ".[NAME]"')
    for each in packages:
        style = None if each["fits"] else "red" if each["extra"] is None else "yellow"
        table.add_row(each["name"], each["wanted"], each["installed"] or "no", each["extra"], style=style)
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
    """Give a small network bounds on a device, and return how long it took, or what went wrong."""
    start = time.perf_counter()
    try:
        import torch

        from intervalnn.network import IntervalNetwork

        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).to(device).eval()
        net = IntervalNetwork(model)
        net.set_gaps("2.bias", below=0.25, above=0.5)
        width = net.predict(torch.ones(2, 4, device=device)).width
        error = None if bool((width == 0.75).all()) else f"the bounds are wrong: {width.tolist()}, not 0.75"
    except Exception as found:
        error = f"{type(found).__name__}: {found}"
    return {"seconds": time.perf_counter() - start, "error": error}
