"""Quiet: what torch says of itself while it exports does not reach the user; what other threads say does."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["quiet"]

_LOGGERS = ("torch", "onnxscript")
Warned = tuple[str, type[Warning], str]


class _Silenced:
    """The thread that made it, for as long as it is to be silent."""

    def __init__(self) -> None:
        self.thread: int | None = threading.get_ident()

    def is_here(self) -> bool:
        return threading.get_ident() == self.thread


@contextlib.contextmanager
def quiet(
    warned: Sequence[Warned] = (("", Warning, ""),), streams: Sequence[str] = ("stdout", "stderr")
) -> Iterator[None]:
    """Keep warnings, torch's logs and what is printed in this thread from the user; errors still come.

    Args:
        warned: Which warnings: patterns of the message and of the module, with the category between them.
        streams: Which streams, by their names in :mod:`sys`.
    """
    silenced = _Silenced()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_silent_warnings(warned, silenced))
        stack.enter_context(_silent_logs(silenced))
        for name in streams:
            stack.enter_context(_silent_stream(name, silenced))
        try:
            yield
        finally:
            silenced.thread = None  # whatever another thread still has of what follows, or puts back, does nothing


@contextlib.contextmanager
def _silent_warnings(warned: Sequence[Warned], silenced: _Silenced) -> Iterator[None]:
    """Put filters in front of all others for a while.

    ``warnings.catch_warnings`` restores the whole list at the end, and so drops filters that other threads have added
    meanwhile.
    """
    patterns = [(_Pattern(text, silenced), kind, _Pattern(module, silenced)) for text, kind, module in warned]
    own: list[Any] = [("ignore", text, kind, module, 0) for text, kind, module in patterns]
    known: Any = warnings
    known.filters[:0] = own
    try:
        yield
    finally:
        for one in own:
            with contextlib.suppress(ValueError):  # another thread has put a list of its own in the place
                known.filters.remove(one)


@contextlib.contextmanager
def _silent_logs(silenced: _Silenced) -> Iterator[None]:
    names = [name for name in list(logging.root.manager.loggerDict) if name.partition(".")[0] in _LOGGERS]
    loggers = [logging.getLogger(name) for name in names]

    def elsewhere(record: logging.LogRecord) -> bool:
        return not silenced.is_here()

    for logger in loggers:
        logger.addFilter(elsewhere)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(elsewhere)


@contextlib.contextmanager
def _silent_stream(name: str, silenced: _Silenced) -> Iterator[None]:
    before = getattr(sys, name)
    own = _Muted(before, silenced)
    setattr(sys, name, own)
    try:
        yield
    finally:
        if getattr(sys, name) is own:  # else another thread has put its own in the place
            setattr(sys, name, before)


class _Pattern:
    """A pattern that matches in one thread alone."""

    def __init__(self, pattern: str, silenced: _Silenced) -> None:
        self.pattern, self.silenced = re.compile(pattern), silenced

    def match(self, text: str) -> bool:
        return self.silenced.is_here() and self.pattern.match(text) is not None


class _Muted:
    """A stream that drops what one thread writes."""

    def __init__(self, stream: Any, silenced: _Silenced) -> None:
        self.stream, self.silenced = stream, silenced

    def write(self, text: str) -> Any:
        return len(text) if self.silenced.is_here() else self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
