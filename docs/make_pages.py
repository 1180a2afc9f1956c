"""Run the code of the pages, and write what it prints and draws into them: ``python docs/make_pages.py [page.md ...]``.

What is run, in order and in one folder and one namespace for each page:

- ``python`` blocks; what they print stands in the ``output`` block right behind them, if there is one;
- a block of any kind whose first line is ``# file: train.py`` is written to that file instead;
- ``console`` blocks: each line that starts with ``$`` is a command, and what it prints stands below it.

Blocks of other kinds are shown only: ``py`` for Python that stands for your own, ``sh`` for your shell.

A picture that a page shows as ``images/NAME.png`` is copied from the file ``NAME.png`` that its code has written.
The tests run the same blocks, and compare text word by word and numbers loosely.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich
import torch

DOCS = Path(__file__).parent
WRITTEN = re.compile(r"(coverage|robustness|paper-map.*|results-.*)\.md")  # by other scripts
FENCE = re.compile(r"^(?P<fence>`{3,})(?P<kind>\w*)\n(?P<body>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# file: (\S+)\n")
COMMAND = re.compile(r"^\$ (?P<command>(?:.*\\\n)*.*\n)(?P<shown>(?:(?!\$ ).*\n)*)", re.MULTILINE)
PICTURE = re.compile(r"images/([\w-]+\.png)")
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
TIME = re.compile(r"\b[\d.]+ (?:ms|s|min)\b")
HASH = re.compile(r"\b[0-9a-f]{8,}\.\.\.")
DRAWN = re.compile(r"[─━═┄-]{2,}")  # lines in tables, as long as the numbers are
LOOSE = 0.15  # by how much of itself a number may differ: networks train a little differently on every machine


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page.

    Attributes:
        kind: What stands behind the opening fence.
        body: What is between the fences.
        start: Where the body starts in the page.
        line: On which line.
    """

    kind: str
    body: str
    start: int
    line: int


@dataclass(frozen=True, slots=True)
class Printed:
    """What a block has printed, and the place in the page that shows it.

    Attributes:
        line: Of the block.
        shown: What the page says.
        found: What was printed.
        start: Where the page says it; None where it does not.
    """

    line: int
    shown: str
    found: str
    start: int | None

    @property
    def difference(self) -> str | None:
        """Say how they differ, if they do by more than numbers may."""
        if self.start is None and self.found:
            return f"line {self.line}: the code prints, and no output block follows it:\n{self.found}"
        if not alike(self.shown, self.found):
            return f"line {self.line}: the page shows\n{self.shown}\nand the code prints\n{self.found}"
        return None


def pages() -> list[Path]:
    """Return the pages that have code to run."""
    found = (path for path in sorted(DOCS.rglob("*.md")) if not WRITTEN.fullmatch(path.name))
    return [path for path in found if any(block.kind in ("python", "console") for block in blocks(path.read_text()))]


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for match in FENCE.finditer(text):
        yield Block(match["kind"], match["body"], match.start("body"), text.count("\n", 0, match.start("body")) + 1)


def alike(shown: str, found: str) -> bool:
    """Say whether two texts are the same but for spaces and for numbers, which may differ a little."""
    shown, found = (DRAWN.sub("-", TIME.sub("time", HASH.sub("hash", text))) for text in (shown, found))
    words, others = (NUMBER.sub("0", text).split() for text in (shown, found))
    return words == others and all(
        abs(float(a) - float(b)) <= LOOSE * abs(float(a)) + _unit(a)
        for a, b in zip(NUMBER.findall(shown), NUMBER.findall(found), strict=True)
    )


def _unit(number: str) -> float:
    """Return one unit of the last digit of a number."""
    digits, _, exponent = number.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2])) * 1.001 * ("." in digits or bool(exponent))


# --- running ---


def run(page: Path, folder: Path) -> list[Printed]:
    """Run the code of a page in a folder, and return what it printed."""
    text, namespace, printed = page.read_text(), {"__name__": "__main__"}, []
    found = list(blocks(text))
    with _inside(folder), torch.random.fork_rng():
        for block, following in zip(found, [*found[1:], None], strict=True):
            if block.kind == "console":
                printed += _console(block)
            elif name := FILE.match(block.body):
                Path(name[1]).write_text(block.body[name.end() :])
            elif block.kind == "python":
                shows = following is not None and following.kind == "output" and _adjacent(text, block, following)
                printed.append(
                    Printed(
                        block.line,
                        following.body if shows and following else "",
                        _python(block, page, namespace),
                        following.start if shows and following else None,
                    )
                )
    return printed


def _adjacent(text: str, block: Block, following: Block) -> bool:
    """Say whether nothing but fences and empty lines lies between two blocks."""
    between = text[block.start + len(block.body) : following.start]
    return not between.replace("output", "").strip("`\n")


def _python(block: Block, page: Path, namespace: dict[str, Any]) -> str:
    name = f"{page.stem}.py"  # as messages with the user's own line call it
    source = "\n" * (block.line - 1) + block.body
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    with contextlib.redirect_stdout(io.StringIO()) as caught:
        exec(compile(source, name, "exec"), namespace)
    return _tidy(caught.getvalue())


def _console(block: Block) -> Iterator[Printed]:
    """Run the commands of a block, each of which may go on in further lines after a backslash."""
    for match in COMMAND.finditer(block.body):
        done = subprocess.run(match["command"], shell=True, text=True, capture_output=True, env=_environment())
        if done.returncode:
            raise RuntimeError(f"{match['command']}ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        line = block.line + block.body.count("\n", 0, match.start())
        yield Printed(line, match["shown"], _tidy(done.stdout), block.start + match.start("shown"))


def _environment() -> dict[str, str]:
    """Return one in which commands of this installation are found, on narrow screens, one thread each."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    return os.environ | {"PATH": path, "COLUMNS": "88", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}


def _tidy(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines).strip("\n") + "\n" if any(lines) else ""


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work in a folder, where modules are found too, and without progress bars."""
    console, before = rich.get_console(), Path.cwd()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    console.quiet, quiet = True, console.quiet
    try:
        yield
    finally:
        console.quiet = quiet
        sys.path.remove(str(folder))
        os.chdir(before)


# --- writing ---


def write(page: Path) -> None:
    """Put what the code prints and draws into the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        printed = run(page, folder)
        text = page.read_text()
        for each in reversed(printed):
            if each.start is not None:
                text = text[: each.start] + each.found + text[each.start + len(each.shown) :]
            elif each.found:
                raise ValueError(f"{page}, {each.difference}")
        temporary = page.with_name(f"{page.name}.part")
        temporary.write_text(text)
        temporary.replace(page)
        for picture in PICTURE.findall(text):
            if (folder / picture).exists():
                shutil.copyfile(folder / picture, DOCS / "images" / picture)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for each in map(Path, sys.argv[1:]) if len(sys.argv) > 1 else pages():
        write(each.resolve())
        sys.stdout.write(f"wrote {each}\n")
