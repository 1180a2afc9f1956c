"""Command: what all commands share: options from the command line and from files, exit codes, output for scripts."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterable
from functools import reduce
from pathlib import Path
from typing import Any

import click

from intervalnn.cli.config import Config, ConfigError, Option, from_sources, options_of
from intervalnn.cli.flags import TitledOption, as_flag
from intervalnn.cli.screen import Failed, Screen, Stopped, describe
from intervalnn.files.printable import printable
from intervalnn.files.whole import check_writable

__all__ = ["Commands", "command", "refuse_existing"]

COLUMN = 24  # characters for the names of options in the help
SCREEN, DEBUG = "intervalnn.screen", "intervalnn.debug"


class Commands(click.Group):
    """The group of all commands, which turns whatever ends one of them into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        if isinstance(sys.stdout, io.TextIOWrapper):  # a name that cannot be shown must not end what went well
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError) as error:
            self._tell(ctx, error)
            raise
        except KeyboardInterrupt:
            raise self._tell(ctx, Stopped("by Ctrl-C")) from None
        except Exception as error:
            if ctx.meta.get(DEBUG):
                raise
            raise self._tell(ctx, Failed(describe(error))) from error

    def _tell(self, ctx: click.Context, error: Any) -> Any:
        """Tell scripts of an error too, where they wait for JSON, and return it; what it says moves no cursor."""
        screen = ctx.meta.get(SCREEN)
        if isinstance(error, click.ClickException):
            setattr(error, "message", printable(error.message, lines=True))  # noqa: B010 - final to the type checker
        if screen is not None and isinstance(error, click.ClickException):
            found = {"error": error.format_message(), "exit_code": error.exit_code}
            with contextlib.suppress(OSError):  # where nothing can be written, as to a full disk, nobody reads it
                screen.finish(str(ctx.invoked_subcommand), found)
        return error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands in the order in which one needs them."""
        return list(self.commands)


class _Command(click.Command):
    """A command whose options stand under the titles of their tables."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        titles: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                titles.setdefault(getattr(parameter, "title", "General"), []).append(record)
        for title, ((first, text), *others) in titles.items():
            with formatter.section(title):  # the first is padded, so that all titles have columns of one width
                formatter.write_dl([(first.ljust(COLUMN), text), *others], col_max=COLUMN)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        if self.epilog:
            with formatter.section("Example"):
                formatter.write("".join(f"  {line}\n" for line in self.epilog.splitlines()))


def command(*sections: str, writes: bool = True, example: str = "") -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function ``(screen, config, **own)`` that returns what scripts get to know, if any.

    Args:
        sections: Tables whose options it takes, ``""`` for those outside of all tables.
        writes: Whether it writes files, which it then gets ``overwrite`` for.
        example: What one may type.
    """
    options = {"__".join(("config", *option.key)): option for section in sections for option in options_of(section)}
    options = {name: option for name, option in options.items() if option.flag_name}

    def make(function: Callable[..., Any]) -> click.Command:
        def run(*, quiet: bool, as_json: bool, debug: bool, **given: Any) -> None:
            context = click.get_current_context()
            screen = Screen(quiet=quiet, json=as_json)
            context.meta.update({SCREEN: screen, DEBUG: debug})
            if sections:
                given["config"] = _config(context, options, given)
            with screen.working():
                found = function(screen, **given)
            if found is not None:
                screen.finish(str(context.info_name), found)

        own = list(reversed(getattr(function, "__click_params__", [])))
        shared = [as_flag(name, option) for name, option in options.items()]
        name = function.__name__.rstrip("_")
        return _Command(
            name,
            callback=run,
            help=function.__doc__,
            epilog=example,
            params=[*own, *shared, *_general(sections, writes)],
        )

    return make


def refuse_existing(
    path: Path, overwrite: bool, *, ends: str = "", folder: bool = False, reads: Iterable[str | Path | None] = ()
) -> Path:
    """Return a path to write to, if that can be done and nothing is there that would be lost.

    Args:
        path: What is to be written.
        overwrite: Whether what is there may be replaced.
        ends: What its name must end in.
        folder: Whether it may become a folder.
        reads: What the command reads, which is never replaced.
    """
    looped = Path(os.path.realpath(path)).is_symlink()
    if looped or (path.exists() and not path.is_file() and not path.is_dir()):
        raise FileExistsError(f"{path} is neither a file nor a folder, and is not replaced; choose another name")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} is there already; choose another name, or say --overwrite")
    context = click.get_current_context(silent=True)
    read = [*reads, None if context is None else context.params.get("file")]  # the config among them
    if os.path.realpath(path) in [os.path.realpath(each) for each in read if each is not None]:
        raise FileExistsError(f"{path} is what this command reads, and is not replaced; choose another name")
    if path.is_dir() and not folder:
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it")
    if not path.name.endswith(ends):
        raise click.UsageError(f"--out must end in {ends}, got {path}.")
    check_writable(path)
    return path


def _general(sections: tuple[str, ...], writes: bool) -> list[click.Parameter]:
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    found: list[click.Parameter] = []
    if sections:
        found += [
            TitledOption(["--config", "file"], type=file, help="TOML file with any of these options, by table."),
            TitledOption(
                ["--set", "sets"],
                multiple=True,
                metavar="TABLE.KEY=VALUE",
                help="Set an option as the file would, such as fit.epochs=5; may be repeated.",
            ),
        ]
    if writes:
        found.append(TitledOption(["--overwrite"], is_flag=True, help="Replace files that are there already."))
    return [
        *found,
        TitledOption(["-q", "--quiet"], is_flag=True, help="Show nothing but errors."),
        TitledOption(["--json", "as_json"], is_flag=True, help="Write one JSON object, and nothing else."),
        TitledOption(["--debug"], is_flag=True, help="Show the traceback of an error."),
    ]


def _config(context: click.Context, options: dict[str, Option], given: dict[str, Any]) -> Config:
    """Take the options of the config out of what was given, and return what they make together with the file."""
    typed = {option.key: given.pop(name) for name, option in options.items()}
    typed = {key: value for key, value in typed.items() if value is not None and value != ()}
    try:
        config = from_sources(given.pop("file"), given.pop("sets"), typed)
    except ConfigError as error:
        raise click.UsageError(str(error), context) from error
    for option in options.values():
        if option.flag.required and reduce(getattr, option.key, config) is None:
            raise click.UsageError(f"Missing option '{option.flag_name}', or {option.name} in a config file.", context)
    return config
