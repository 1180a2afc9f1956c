"""Work that no Ctrl-C can stop half-way, because torch's own tables stand changed while it runs."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TypeVar

import torch

from intervalnn.torch_private import function_modes, keep_device_guard, push_function_modes

__all__ = ["TABLES", "undisturbed"]

Result = TypeVar("Result")

# Held by the thread that exports: torch then overrides kernels of its operations for the whole process.
TABLES = threading.RLock()


def undisturbed(work: Callable[[], Result]) -> Result:
    """Return ``work()``, run to its end whatever interrupts the caller, and beside no other such work.

    Python raises Ctrl-C, and what other signals raise, in the main thread, between any two lines. Inside
    ``torch.export`` that leaves overridden kernels behind, and every later export of the process may go wrong. So the
    main thread hands the work to a thread of its own and waits. Where it is interrupted, the work ends by itself, its
    result is dropped, and torch's tables are put back as always.
    """
    keep_device_guard()
    if threading.current_thread() is not threading.main_thread():
        with TABLES:
            return work()
    done: Future[Result] = Future()
    threading.Thread(target=_run, args=(work, done, _Surroundings()), name="intervalnn").start()
    return done.result()


def _run(work: Callable[[], Result], done: Future[Result], surroundings: _Surroundings) -> None:
    try:
        with TABLES:
            done.set_result(surroundings.around(work))
    except BaseException as error:  # which is the caller's
        done.set_exception(error)


class _Surroundings:
    """What torch keeps for each thread, and what a model may ask for: the caller's, for another thread."""

    def __init__(self) -> None:
        self.context = contextvars.copy_context()
        self.inference, self.gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        self.modes = function_modes()  # a default device is one of them
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        kinds = {"cpu", accelerator.type} if accelerator else {"cpu"}
        self.cache = torch.is_autocast_cache_enabled()
        self.autocast = {
            kind: (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind))
            for kind in kinds
            if torch.amp.is_autocast_available(kind)
        }
        self.device = None
        if torch.cuda.is_initialized():
            self.device = torch.cuda.current_device(), torch.cuda.current_stream()

    def around(self, work: Callable[[], Result]) -> Result:
        """Return ``work()`` in these surroundings; the thread is fresh, and nothing needs to be put back."""
        push_function_modes(self.modes)
        for kind, (enabled, dtype) in self.autocast.items():
            torch.set_autocast_enabled(kind, enabled)
            torch.set_autocast_dtype(kind, dtype)
        torch.set_autocast_cache_enabled(self.cache)
        with ExitStack() as stack:
            if self.device is not None:
                stack.enter_context(torch.cuda.device(self.device[0]))
                stack.enter_context(torch.cuda.stream(self.device[1]))
            stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.gradients))
            return self.context.run(work)
