"""Files: written under another name first, so that whatever has its final name is whole."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["beside", "check_writable", "replace_folder", "replacing"]

LEFT = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")  # what the folders are called that files are written in
GRACE = 1.0  # seconds after which such a folder has its lock, if anyone is writing in it
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, None)  # numpy raises without a number where a disk is full


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary file to write to, which takes the place of ``path`` at the end, if all went well.

    It reaches the disk before it is renamed, and has the permissions that a new file has. Several processes may write
    to one path: the last one stays. What is left of one that was killed is removed by the next that writes into
    the same folder.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(f"{folder}/new/text") as temporary:
        ...         _ = temporary.write_text("whole")
        ...     Path(f"{folder}/new/text").read_text(), len(list(Path(f"{folder}/new").iterdir()))
        ('whole', 1)
    """
    path = Path(os.path.realpath(path))  # so that a link stays a link; resolve() fails on one that leads to itself
    with beside(path) as folder:
        temporary = folder / "part"  # with no suffix, so that nobody who looks for files of a kind finds it
        temporary.touch()
        mode = temporary.stat().st_mode & 0o777  # which the umask has had its say in
        yield temporary
        temporary.chmod(mode)  # safetensors 0.8 replaces the file by one that only its owner can read
        _sync(temporary, os.O_RDWR)
        temporary.replace(path)
        if os.name == "posix":  # elsewhere a folder cannot be opened
            _sync(path.parent, os.O_RDONLY)


@contextlib.contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Give a folder beside ``path`` to write in, which is gone at the end; errors of the system name the path."""
    with _told(path), _made(path) as folder:
        yield folder


def replace_folder(path: Path, new: Path) -> None:
    """Put a folder that is whole in the place of ``path``; what was there is lost only then."""
    with _told(path):
        while True:
            old = path.with_name(f".{path.name}.{secrets.token_hex(8)}.old")
            with contextlib.suppress(FileNotFoundError):  # another process may have moved it away by now
                path.rename(old)
            try:
                new.rename(path)
                break
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # or put its own there
                    if old.exists():
                        old.rename(path)
                    raise
        # Not before: one that is killed between the two renames leaves the old one, and nothing else, in this folder.
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.old"):
            shutil.rmtree(left, ignore_errors=True)


def check_writable(path: Path) -> None:
    """Raise if no file or folder can be made at ``path``: by trying, as far as its folder is there."""
    path = Path(os.path.realpath(path))
    parent = next(each for each in path.parents if os.path.lexists(each))
    if not parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"could not write {path}: {parent} is a file, not a folder")
    with _told(path), _made(parent / path.name):
        pass


@contextlib.contextmanager
def _made(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    with contextlib.ExitStack() as held:
        yield _own(path, held)


def _own(path: Path, held: contextlib.ExitStack) -> Path:
    """Make a folder beside ``path`` and lock it; another, if it was swept away before it had its lock."""
    while True:
        folder = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        folder.mkdir()
        held.callback(shutil.rmtree, folder, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            held.enter_context(_locked(folder, exclusive=False))
            if folder.exists():
                return folder


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say of an error of the system which path it hit, and what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        ours = error.errno is None and type(error) is not OSError
        if ours or reason.startswith("could not write"):  # it says all that there is to say
            raise
        if error.filename is not None and not str(error.filename).startswith(str(path.parent)):
            reason = f"{reason}: {error.filename}"
        hint = "make room on the disk" if error.errno in FULL else "choose a place that can be written to"
        text = f"could not write {path}: {reason}; {hint}"
        raise (OSError(text) if error.errno is None else OSError(error.errno, text)) from error


# --- what killed processes leave ---


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed have left in a folder."""
    with contextlib.suppress(OSError):  # one that cannot be listed can be written to all the same
        for left in [each for each in folder.iterdir() if LEFT.fullmatch(each.name)]:
            if time.time() - left.stat().st_mtime > GRACE:
                with _locked(left, exclusive=True) as free:
                    if free:
                        shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path, *, exclusive: bool) -> Iterator[bool]:
    """Hold a lock, which the system drops when the process dies; say whether it could be had."""
    try:
        import fcntl
    except ImportError:  # not on this system: nothing is locked, and nothing swept
        yield False
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            locked = True
        except OSError:  # another has it, or the file system has no locks
            locked = False
        yield locked
    finally:
        os.close(file)


def _sync(path: Path, flags: int) -> None:
    file = os.open(path, flags)
    try:
        os.fsync(file)
    finally:
        os.close(file)
