"""Quiet: torch's notes about its own exporters are not the user's concern."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator

__all__ = ["quiet"]

_LOGGERS = (
    "torch.export",
    "torch._export",
    "torch.fx",
    "torch._dynamo",
    "torch._inductor",
    "torch._subclasses",
    "torch.onnx",
    "onnxscript",
)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep warnings, logs and prints from the user while torch exports; errors still come."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)  # torch tells errors as critical ones too
    nowhere = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(nowhere), contextlib.redirect_stdout(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
