"""Turns: many threads compute at once, or one of them captures a program, alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

__all__ = ["TURNS", "Turns"]


class Turns:
    """Who may run: any number of threads together, or one alone.

    While ``torch.export`` captures a program it switches cuDNN, oneDNN and the fast path of attention off for the
    whole process. Other threads would compute by other kernels meanwhile: their results would differ by rounding,
    and some dtypes have no other kernel. A thread that waits to be alone goes before those that come later.

    Example:
        >>> turns = Turns()
        >>> with turns.together(), turns.together():
        ...     pass
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._wanted: int | None = None  # the thread that is alone, or waits for it
        self._own = threading.local()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Wait until no other thread is alone, or wants to be."""
        with self._changed:
            # One that runs already, or is alone, must not wait for itself.
            self._changed.wait_for(lambda: self._wanted in (None, threading.get_ident()) or self._depth > 0)
            self._running, self._depth = self._running + 1, self._depth + 1
        try:
            yield
        finally:
            with self._changed:
                self._running, self._depth = self._running - 1, self._depth - 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other thread runs."""
        me = threading.get_ident()
        if self._wanted == me or self._depth:  # nested: what waits for this thread waits for this too
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: self._wanted is None)
            self._wanted = me
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._running == 0)
            yield
        finally:
            with self._changed:
                self._wanted = None
                self._changed.notify_all()

    @property
    def _depth(self) -> int:
        return getattr(self._own, "depth", 0)

    @_depth.setter
    def _depth(self, depth: int) -> None:
        self._own.depth = depth


TURNS = Turns()
