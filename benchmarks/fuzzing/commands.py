"""Commands: command lines that nobody should type, and what must come of them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np
from safetensors.torch import load

from fuzzing.lines import LEAVES, Line, drawn
from fuzzing.project import project
from fuzzing.running import Ended, run, run_as_process
from intervalnn.cli.config import ConfigError, from_sources, options_of
from intervalnn.cli.config.every_option import Calibrate
from intervalnn.cli.screen import describe
from intervalnn.evaluation.results import Results

__all__ = ["case", "check"]

PROCESSES = 50  # one in so many lines is run as a shell runs it
LEFT = re.compile(r".*\.[0-9a-f]{16}\.(tmp|old)")
RAW = re.compile(
    r"unpack|index out of|is not in list|empty sequence|codec can't|NoneType|has no attribute|operand|subscriptable|"
    r"too large to convert|object is not|ATen"
)
TOLD = ("out", "export", "plot", "checkpoint")  # options that say where to write
SHELLS: tuple[dict[str, str], ...] = (
    *({}, {"COLUMNS": "20"}, {"TERM": "dumb"}, {"FORCE_COLOR": "1"}),
    *({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a line asks for, where it can be read at all.

    Attributes:
        places: Where it may write.
        flags: Its options that are no part of the config.
        main: Where its result goes, of a command that makes just one.
        reads: What it is given, and must not change.
    """

    places: tuple[Path, ...] = ()
    flags: dict[str, Any] | None = None
    main: Path | None = None
    reads: tuple[Path, ...] = ()


def case(random: Random, folder: Path) -> list[str]:
    """Run a command line that is odd somewhere, and return how to count it."""
    line = drawn(random)
    shell = random.choice(SHELLS) if random.randrange(PROCESSES) == 0 else None
    code = check(line, folder, shell)
    name = _name(line.words) or "no command"
    return ["not run" if code is None else f"exit code {code}", name, *(["as a process"] if shell is not None else [])]


def check(line: Line, folder: Path, shell: dict[str, str] | None = None) -> int | None:
    """Run a command in a project of its own; fails unless it ends as commands do, and wrote where it was told to.

    Args:
        line: What is typed.
        folder: Where the project is made.
        shell: Variables of the environment, for a process of its own.
    """
    home = folder / "a" / "b" / "project"  # so that ../.. is still ours
    project(home)
    for name, content in line.files.items():
        (home / name).write_bytes(content)
    with contextlib.chdir(home):
        asked = _asked(line.words, home)
        if any(not place.is_relative_to(folder) and not place.is_relative_to("/proc") for place in asked.places):
            return None  # what a damaged name would do to this machine is not tried
        before = _state(folder)
        ended = run(line) if shell is None else run_as_process(line, home, shell)
    text = f"inn {' '.join(map(repr, line.words))[:1500]}: {ended}, {line.files}"[:6000]
    _says(line, asked, ended, text)
    _wrote(asked, ended, before, _state(folder), text)
    if ended.code == 0 and asked.main is not None:
        _whole(line.words[0], asked.main, text)
    return ended.code


def _name(words: list[str]) -> str | None:
    return next((name for name in LEAVES if words[: len(name.split())] == name.split()), None)


def _asked(words: list[str], home: Path) -> Asked:
    """Return what a line asks for: nothing where it is refused before anything is done."""
    name = _name(words)
    if name is None:
        return Asked()
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # which takes the help, where that is asked for
            given = dict(LEAVES[name].make_context(name, words[len(name.split()) :]).params)
        keys = {each: tuple(each.split("__")[1:]) for each in given if each.startswith("config__")}
        typed = {key: given.pop(each) for each, key in keys.items()}
        typed = {key: value for key, value in typed.items() if value is not None and value != ()}
        config = from_sources(given.get("file"), given.get("sets", ()), typed)
    except (click.ClickException, click.exceptions.Exit, ConfigError, OSError):
        return Asked()
    section = getattr(config, name, None)
    keys_told = [each.key[1] for each in options_of(name)] if section is not None else []
    told = [getattr(section, key) for key in keys_told if key in TOLD] + [given.get("out")]
    if name.startswith("reproduce") and given["out"] is None:
        told.append(Path("results"))
    places = [Path(os.path.normpath(home / place)) for place in told if place is not None]
    # A file that is itself a link stays one, and what it leads to is replaced.
    with contextlib.suppress(OSError, RuntimeError):
        places += [place.resolve() for place in places]
    single = places and name != "demo" and not name.startswith("reproduce")
    reads = [Path(os.path.realpath(each)) for each in _texts(given, config.model, section)]
    return Asked(tuple(places), given, places[0] if single else None, tuple(reads))


def _texts(given: dict[str, Any], model: Any, section: Any) -> Iterator[str | Path]:
    """Yield whatever was given that is no place to write to, and may be one to read from."""
    tables = (asdict(each) for each in (model, section) if each is not None)
    for name, value in [pair for each in (given, *tables) for pair in each.items()]:
        for part in value.values() if isinstance(value, dict) else (value,):
            if isinstance(part, str | Path) and name not in (*TOLD, *(("net",) if type(section) is Calibrate else ())):
                yield part


def _says(line: Line, asked: Asked, ended: Ended, text: str) -> None:
    """Check what a command said: the exit code, one message, and JSON where it was asked for."""
    assert not ended.stopped or line.seconds is not None, f"hangs: {text}"
    assert ended.code in ((0, 1, 2, 130) if ended.stopped else (0, 1, 2)), text
    flags = asked.flags or {}
    debug = bool(flags.get("debug"))
    errors = re.findall(r"^(?:Error|Stopped): (.*)", ended.stderr, re.MULTILINE)
    if ended.error is not None:
        assert debug and isinstance(ended.error, Exception), f"raises: {text}"
        errors = [describe(ended.error)]
    elif debug and ended.code == 1 and "Traceback (most recent call last)" in ended.stderr:
        errors = [ended.stderr.splitlines()[-1]]
    else:
        dropped = ended.stopped and "Exception ignored in" in ended.stderr  # by Python, until Ctrl-C comes again
        assert dropped or "Traceback" not in ended.stderr + ended.stdout, text
    if ended.code:
        bare = ended.code == 2 and "Commands:" in ended.stderr  # the help, where no command was typed
        assert len(errors) == 1 - bare, f"{len(errors)} messages: {text}"
        assert bare or errors[0].strip(" :"), f"says nothing: {text}"
        given = sum(map(len, (*line.words, *line.files.values())))
        assert len(ended.stderr) < 4000 + 3 * given or debug, f"says too much: {text}"
    else:
        assert not errors, text
    own = "This was raised in" in ended.stderr + "".join(errors)  # in the user's code, which may raise anything
    assert own or "With --debug it says where" not in ended.stderr + "".join(errors), text
    assert own or not RAW.search("".join(errors)), f"says what only Python understands: {text}"
    if flags.get("as_json") and ended.error is None and "Traceback" not in ended.stderr:
        found = json.loads(ended.stdout)
        assert ended.code == found.get("exit_code", 0) and ("error" in found) == bool(ended.code), text
    elif flags.get("quiet"):
        assert not ended.stdout, f"is not quiet: {text}"


def _state(folder: Path) -> dict[Path, bytes | None]:
    """Return the contents of all files, and None for whatever else there is."""
    found: dict[Path, bytes | None] = {}
    for path in folder.rglob("*"):
        if path.is_symlink():
            found[path] = os.fsencode(path.readlink())
        else:
            found[path] = path.read_bytes() if path.is_file() else None
    return found


def _wrote(asked: Asked, ended: Ended, before: dict[Path, Any], after: dict[Path, Any], text: str) -> None:
    """Check what a command wrote: nothing but where it was told to, and nothing at all where it failed."""
    if ended.stopped:  # whose traces the next command sweeps up
        after = {path: content for path, content in after.items() if not any(map(LEFT.fullmatch, path.parts))}
    new = [path for path in after if path not in before and path.name != "__pycache__"]
    new = [path for path in new if path.parent.name != "__pycache__"]
    lost = [path for path in before if path not in after or after[path] != before[path]]
    assert not [path for path in new if LEFT.fullmatch(path.name)], f"left {new}: {text}"
    assert not [path for path in lost if before[path] is None], f"replaced what is no file: {text}"
    assert not set(lost) & set(asked.reads), f"changed what it reads: {text}"
    strays = [path for path in (*new, *lost) if not any(_belongs(path, place) for place in asked.places)]
    assert not strays, f"touched {strays}: {text}"
    flags = asked.flags or {}
    mine = ("draw_only" in flags) or "overwrite" not in flags  # experiments and the demo add to a folder
    assert not lost or flags.get("overwrite") or mine, f"replaced {lost}: {text}"
    if ended.code and not mine:
        kept = [path for path in new if not _goes_on(path) and not any(_goes_on(each) for each in path.parents)]
        places = {parent for path in set(new) - set(kept) for parent in path.parents}
        kept = [path for path in kept if path not in places]
        assert not kept and not lost, f"failed, and wrote {kept}, {lost}: {text}"


def _belongs(path: Path, place: Path) -> bool:
    """Say whether a path is a place, in it, beside it under its name, or a folder on the way to it."""
    return (
        path.is_relative_to(place)
        or place.is_relative_to(path)
        or any(each.parent == place.parent and each.name.startswith(place.stem) for each in (path, *path.parents))
    )


def _goes_on(path: Path) -> bool:
    """Say whether a path holds what was done so far, for the next time."""
    return path.name.endswith((".checkpoint", ".part"))


def _whole(command: str, path: Path, text: str) -> None:
    """Check that what was promised is there, and can be read."""
    assert path.exists(), f"wrote no {path}: {text}"
    if command in ("fit", "calibrate"):
        assert load(path.read_bytes()), text
    elif command == "evaluate":
        assert Results.load(path).methods, text
    elif command in ("report", "view"):
        path = path / "report.html" if path.is_dir() else path
        assert path.read_text(encoding="utf-8").rstrip().endswith("</html>"), text
    elif command == "predict" and path.is_file():
        with np.load(path) as arrays:
            assert np.isfinite(arrays["point"]).all(), text
    else:
        assert list(path.iterdir()) if path.is_dir() else path.stat().st_size, text
