"""Turns: many threads compute at once, or one of them captures a program, alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar

__all__ = ["TURNS", "Turns"]


class Turns:
    """Who may run: any number of threads together, or one alone.

    While ``torch.export`` captures a program, it disables cuDNN, oneDNN and the fast path of attention for the whole
    process. Other threads would meanwhile use other kernels, whose results differ by rounding; some dtypes have no
    other kernel. So a capture is a writer in a readers-writer lock, and a waiting writer goes before later readers.

    Example:
        >>> turns = Turns()
        >>> with turns.together(), turns.together():
        ...     pass
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._alone: object | None = None  # what stands for the one that is alone, or waits for it
        # Kept by context rather than by thread, for a thread may have another do its work.
        self._own: ContextVar[object | None] = ContextVar("own", default=None)
        self._depth: ContextVar[int] = ContextVar("depth", default=0)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Wait until no other thread is alone, or wants to be."""
        with self._changed:
            # One that runs already, or is alone, must not wait for itself.
            self._changed.wait_for(lambda: self._alone is None or self._alone is self._own.get() or self._runs)
            self._running += 1
        token = self._depth.set(self._depth.get() + 1)
        try:
            yield
        finally:
            self._depth.reset(token)
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other thread runs."""
        if self._runs or (self._alone is not None and self._alone is self._own.get()):
            yield  # nested: what waits for this thread waits for this too
            return
        me = object()
        with self._changed:
            self._changed.wait_for(lambda: self._alone is None)
            self._alone = me
        token = self._own.set(me)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._running == 0)
            yield
        finally:
            self._own.reset(token)
            with self._changed:
                self._alone = None
                self._changed.notify_all()

    @property
    def _runs(self) -> bool:
        return self._depth.get() > 0


TURNS = Turns()
