"""Leftovers: what a capture or an export may leave changed in torch, or in Python, for the rest of the process."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch
import torch._inductor.decomposition  # which gives an operation a kernel as it is imported
from torch import nn
from torch._export.utils import _collect_all_valid_cia_ops
from torch._ops import OpOverload, OpOverloadPacket

from intervalnn.network.capture.quiet import _Muted, _Pattern
from intervalnn.network.capture.undisturbed import TABLES

__all__ = ["Snapshot"]


def _operations() -> Iterator[OpOverload[Any, Any]]:
    _collect_all_valid_cia_ops()  # so that torch has made an object of each
    for packet in (getattr(torch.ops.aten, name) for name in list(torch.ops.aten)):
        if isinstance(packet, OpOverloadPacket):
            yield from (getattr(packet, name) for name in packet.overloads())


class Snapshot:
    """What torch and Python were like at one time."""

    def __init__(self) -> None:
        self.operations = list(_operations())
        self.kernels = [dict(op.py_kernels) for op in self.operations]
        self.classes = [(kind, name, vars(kind).get(name)) for kind in (nn.Module,) for name in _PATCHED]
        self.flags = _flags()
        self.levels = {name: logger.level for name, logger in _loggers()}

    def differences(self) -> list[str]:
        """Say what is another now, and put it back, lest later tests fail of it; once all captures are done."""
        with TABLES:
            loggers = _loggers()
            return [*self._kernels(), *self._classes(), *self._flags(loggers), *_own_marks(loggers)]

    def _kernels(self) -> Iterator[str]:
        if [op.py_kernels for op in self.operations] == self.kernels:  # which is nearly always, and quicker
            return
        for op, kernels in zip(self.operations, self.kernels, strict=True):
            if op.py_kernels != kernels:
                changed = {*op.py_kernels.items()} ^ {*kernels.items()}
                yield f"{op} has other kernels: {sorted({str(key) for key, _ in changed})}"
                op.py_kernels.clear()
                op.py_kernels.update(kernels)
                op._dispatch_cache.clear()

    def _classes(self) -> Iterator[str]:
        for kind, name, value in self.classes:
            if vars(kind).get(name) is not value:
                yield f"{kind.__name__}.{name} was replaced"
                setattr(kind, name, value)

    def _flags(self, loggers: list[tuple[str, logging.Logger]]) -> Iterator[str]:
        now = _flags()
        yield from (f"{name} is {now[name]}, was {was}" for name, was in self.flags.items() if now[name] != was)
        for name, logger in loggers:
            if logger.level != self.levels.setdefault(name, logger.level):
                yield f"the logger {name} has level {logger.level}, had {self.levels[name]}"
                logger.setLevel(self.levels[name])


_PATCHED = ("__call__", "__getattr__", "__setattr__", "__delattr__")


def _flags() -> dict[str, Any]:
    return {
        "the fast path of attention": torch.backends.mha.get_fastpath_enabled(),
        "oneDNN": torch.backends.mkldnn.enabled,
        "torch.compiler._is_compiling_flag": torch.compiler._is_compiling_flag,
        "torch.compiler._is_exporting_flag": torch.compiler._is_exporting_flag,
        "the number of dispatch modes": torch._C._len_torch_dispatch_stack(),
        "the number of function modes": torch._C._len_torch_function_stack(),
        "the number of modes before dispatch": torch._ops._len_torch_dispatch_stack_pre_dispatch(),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "autocast": torch.is_autocast_enabled("cpu"),
        "the default dtype": torch.get_default_dtype(),
    }


def _loggers() -> list[tuple[str, logging.Logger]]:
    known = logging.root.manager.loggerDict.items()
    return [(name, logger) for name, logger in known if name.startswith("torch") and isinstance(logger, logging.Logger)]


def _own_marks(loggers: list[tuple[str, logging.Logger]]) -> Iterator[str]:
    """Yield what of our own is still in place that keeps a thread silent."""
    if any(isinstance(part, _Pattern) for entry in warnings.filters for part in entry):
        yield "a filter of warnings is left"
    if any(isinstance(stream, _Muted) for stream in (sys.stdout, sys.stderr)):
        yield "a muted stream is left"
    filters = [each for _, logger in loggers for each in logger.filters if callable(each)]
    if any(each.__module__ == "intervalnn.network.capture.quiet" for each in filters):
        yield "a filter of logs is left"
