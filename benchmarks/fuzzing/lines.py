"""Lines: command lines drawn over all commands and all their options, as the commands themselves declare them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, get_args, get_origin

import click

from fuzzing.configs import OPTIONS, shown, table, toml
from fuzzing.mutations import TEXTS, changed, mutated, odd_value
from fuzzing.project import PATHS
from intervalnn.cli import main
from intervalnn.cli.config import Option
from intervalnn.cli.config.values import arms

__all__ = ["LEAVES", "RIGHT", "Line", "drawn"]

Group = tuple[str, ...]  # an argument, a flag, or an option with its value
MODEL: list[Group] = [("--model", "abusedproject:net"), ("--weights", "w.safetensors")]
NET: list[Group] = [("--net", "net.safetensors"), *MODEL]
DATA: Group = ("--data", "d")
VOLUME: list[Group] = [("--net", "image.safetensors"), ("--model", "abusedproject:image_net"), ("--input", "v.nii.gz")]
RIGHT: dict[str, list[list[Group]]] = {
    "fit": [
        [*MODEL, DATA, ("--out", "out/new.safetensors"), ("--epochs", "1")],
        [*MODEL, ("--data", "abusedproject:batches"), ("--val", "d"), ("--out", "o.safetensors"), ("--epochs", "2")],
    ],
    "calibrate": [[*NET, DATA, ("--out", "out/new.safetensors")]],
    "predict": [
        [*NET, ("--input", "x.npy"), ("--out", "out/p.npz")],
        [*NET, ("--input", "many"), ("--out", "out/p")],
        [*VOLUME, ("--out", "out/v"), ("--patch", "4,4")],
    ],
    "evaluate": [
        [("--net", "a=net.safetensors"), *MODEL, DATA, ("--out", "out/run.json")],
        [("--method", "intervalnn:ConstantWidth"), *MODEL, DATA, ("--held-out", "d"), ("--out", "out/run.json")],
    ],
    "explain": [[*NET, DATA], [*NET, DATA, ("--plot", "out/layers.png")]],
    "export": [[*NET, DATA, ("--out", "out/net.pt2"), ("--no-verify",)]],
    "report": [*([("run.json",), ("--out", "out/r.html")],) * 4, [("runs",)]],
    "view": [[("p.npz",), ("--export", "out/v.html")], [("predictions",), ("--no-browser",)]],
    "reproduce deconv": [[("--out", "out")]],
    "reproduce ct": [[("--out", "out"), ("--device", "cpu")]],
    "reproduce mri": [[]],
    "reproduce denoising": [[("--draw-only",), ("--out", "runs")]],
    "reproduce photos": [[("--draw-only",), ("--out", "runs")]],
    "demo": [[("--out", "out")]],
    "doctor": [[]],
}
SLOW = {"fit": 3, "view": 1, "demo": 1, "reproduce": 1}  # seconds after which a command is stopped by Ctrl-C
RARE = {"export": 2, "reproduce": 1, "demo": 1, "doctor": 1}  # takes long, or has little to get wrong
INTS = (
    "0",
    "1",
    "2",
    "-1",
    "3",
    "64",
    "-0",
    "1_000",
    "+5",
    " 7 ",
    str(2**31),
    str(-(2**31)),
    str(2**63 - 1),
    str(2**63),
    "9" * 30,
)
FLOATS = (*INTS, "0.5", "0.9", "1.0", "1e-3", "1e400", "nan", "-inf", "1e-320", "-0.5", "0.999999999999")
NUMBERS = (
    "0",
    "1",
    "2",
    "-1",
    "0.5",
    "1.0",
    "1e400",
    "nan",
    "-inf",
    "9" * 30,
    "-0",
    "1e-320",
    "0x10",
    "1_000",
    "½",
    "",
)
NUMBERS += ("3", "64", str(2**31), str(2**63), "-" + "9" * 400, "+5", " 7 ", "1,2", "4,4", "1,,", "0,0", "-1000,1000")
NAMES = ("abusedproject:net", "abusedproject:image_net", "abusedproject:batches", "abusedproject:broken", "json:loads")
NAMES += ("abusedproject:number", "abusedproject:nothing", "abusedproject:", ":net", "os:", "no.module:x", "a:b:c")
NAMES += ("intervalnn:ConstantWidth", "intervalnn:MCDropout", "intervalnn:fit", "torch.nn:ReLU", "a=net.safetensors")
ODD = (
    "1:2:0",
    "::",
    "1:",
    ":",
    "=",
    "a=b",
    "=x",
    "mse",
    "coverage",
    "cpu",
    "cuda:7",
    "meta",
    "cpu:1",
    "cpu:7",
    "mps",
    "xla",
    "auto",
    "cuda",
    "hu",
    "hu+1024",
)
ODD += ("--help", "-h", "--nothing", "-q", "--", "\udcff\udcfe", "\x1b[31m", "[bold]", "\r\n", "\u202e")
WORDS = (*(text for text in TEXTS if "\x00" not in text), *NUMBERS, *NAMES, *ODD, *PATHS)


@dataclass(frozen=True, slots=True)
class Line:
    """A command line, and what it is run with.

    Attributes:
        words: What is typed after ``inn``.
        files: What lies in the folder, beside all else.
        seconds: When it is stopped by Ctrl-C; None where it has to end by itself.
    """

    words: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    seconds: float | None = None


def _leaves(group: click.Group, place: Group = ()) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _leaves(command, (*place, name))
        else:
            yield " ".join((*place, name)), command


LEAVES = dict(_leaves(main))


def drawn(random: Random) -> Line:
    """Return a command line that is right but for a few places."""
    weights = [RARE.get(name.split()[0], 10) for name in LEAVES]
    name = random.choices(list(LEAVES), weights)[0]
    groups = list(random.choice(RIGHT.get(name, [[]])))
    for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        _spoil(groups, LEAVES[name], random)
    files: dict[str, bytes] = {}
    if any(each.name == "file" for each in LEAVES[name].params):
        groups, files = _moved(groups, LEAVES[name], random)
    words = [*name.split(), *(word for group in groups for word in _typed(group, random))]
    if random.random() < 0.06:
        _spoil_words(words, random)
    words = [word.replace("\x00", "") for word in words]  # which no command line can hold
    return Line(words, files, SLOW.get(name.split()[0]))


def _typed(group: Group, random: Random) -> Group:
    joined = len(group) == 2 and group[0].startswith("--") and random.random() < 0.2
    return ("=".join(group),) if joined else group


# --- options ---


def _spoil(groups: list[Group], command: click.Command, random: Random) -> None:
    """Change, add, repeat or drop one argument or option."""
    what, at = random.randrange(20), random.randrange(max(1, len(groups)))
    if what < 5 and groups:
        groups[at] = _other(groups[at], command, random)
    elif what < 12:
        new = [each for each in _options(command) if each.name != "file" or random.random() < 0.3]
        groups.insert(random.randrange(len(groups) + 1), _drawn(random.choice(new), command, random))
    elif what < 14 and groups:
        groups.insert(at, _other(groups[at], command, random))
    elif what < 15 and groups:
        del groups[at]
    elif what < 16:
        groups.insert(at, (random.choice(WORDS),))
    elif sets := [each for each in _options(command) if each.name == "sets"]:
        groups.insert(at, _drawn(sets[0], command, random))


def _options(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option)]


def _other(group: Group, command: click.Command, random: Random) -> Group:
    option = next((each for each in _options(command) if group[0] in (*each.opts, *each.secondary_opts)), None)
    return (random.choice((*PATHS, *WORDS)),) if option is None else _drawn(option, command, random)


def _drawn(option: click.Option, command: click.Command, random: Random) -> Group:
    """Return an option with a value of its type, or of none."""
    flag, kind = random.choice([*option.opts, *option.secondary_opts]), option.type
    if option.is_flag:
        return (flag,)
    if random.random() < 0.08:
        return flag, random.choice(WORDS)
    if option.name == "sets":
        return flag, _set(command, random)
    if isinstance(kind, click.Choice):
        return flag, random.choice(list(kind.choices))
    if isinstance(kind, click.Path):
        return flag, random.choice(PATHS)
    if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        return flag, random.choice(INTS if isinstance(kind, click.types.IntParamType) else FLOATS)
    return flag, random.choice((*NUMBERS, *PATHS, *NAMES, *NAMES, *ODD))


def _spoil_words(words: list[str], random: Random) -> None:
    """Damage a line where no option ends, as one does who forgets a quote."""
    at, what = random.randrange(len(words)), random.randrange(4)
    if what == 0:
        del words[at]
    elif what == 1:
        words.insert(at, random.choice(WORDS))
    elif what == 2:
        words[at] = mutated(words[at].encode("utf-8", "surrogateescape"), random).decode("utf-8", "surrogateescape")
    else:
        words.append(words.pop(at))


# --- the same by --set and --config ---


def _moved(groups: list[Group], command: click.Command, random: Random) -> tuple[list[Group], dict[str, bytes]]:
    """Say some of a line by ``--set``, and some by a file, which may be damaged or not there."""
    kept, tables = [], table(random) if random.random() < 0.1 else {}
    share = random.choice((0.0, 0.0, 0.3, 0.9))
    for group in groups:
        option = _config_option(group, command)
        if option is None or random.random() > share:
            kept.append(group)
        elif random.random() < 0.4:
            kept.append(("--set", f"{option.name}={shown(_value(option, group))}"))
        else:
            place = tables
            for part in option.key[:-1]:
                place = place.setdefault(part, {})
            place[option.key[-1]] = _value(option, group)
    if not tables and random.random() > 0.1:
        return kept, {}
    name, damage = random.choice(("c.toml", "c.toml", "c ü.toml", "c")), random.random()
    content = toml(changed(tables, random) if damage < 0.2 else tables).encode("utf-8", "surrogateescape")
    content = mutated(content, random) if damage > 0.8 else content
    given = name if random.random() < 0.95 else random.choice(PATHS)
    given = "c.toml" if given == "pipe" else given  # a pipe is read until someone has written to it
    return [*kept, ("--config", given)], {name: content}


def _config_option(group: Group, command: click.Command) -> Option | None:
    names = [str(each.name) for each in _options(command) if group[0] in (*each.opts, *each.secondary_opts)]
    return next((each for each in OPTIONS if f"config__{'__'.join(each.key)}" in names), None)


def _value(option: Option, group: Group) -> Any:
    """Return what was typed as a value of TOML."""
    if len(group) == 1:
        return not group[0].startswith("--no-")
    kind, text = arms(option.kind)[0], group[1]
    if get_origin(kind) is dict:
        name, equals, value = text.partition("=")
        return {name or "a": value} if equals else {"a": text}
    if get_origin(kind) is tuple:
        return [text] if get_args(kind)[0] is str else [_number(part) for part in text.split(",")]
    return _number(text) if kind in (int, float) else text == "true" if kind is bool else text


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _set(command: click.Command, random: Random) -> str:
    """Return a key and a value, of which one or both may be odd."""
    keys = {str(each.name).partition("__")[2].replace("__", ".") for each in _options(command)} - {""}
    option = random.choice([each for each in OPTIONS if each.name in keys] if random.random() < 0.7 else OPTIONS)
    what = random.randrange(10)
    if what < 6:
        likely = {int: INTS, float: FLOATS, bool: ("true", "false")}.get(arms(option.kind)[0], (*PATHS, *NAMES, *INTS))
        value = shown(_value(option, ("", random.choice(likely))))
    elif what < 8:
        value = random.choice(WORDS)
    else:
        value = shown(odd_value(random))
    kind = arms(option.kind)[0]
    deep = get_origin(kind) is dict and random.random() < 0.7
    text = f"{option.name}{random.choice(('.width', '.count', '.a', '.')) if deep else ''}={value}"
    if random.random() < 0.15:
        return mutated(text.encode("utf-8", "surrogateescape"), random).decode("utf-8", "surrogateescape")
    return text
