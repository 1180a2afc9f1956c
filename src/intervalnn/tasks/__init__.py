"""Inverse problems: measurements ``x = A y + noise`` and the signals ``y`` to recover from them."""

from intervalnn.tasks.deconvolution import Deconvolution

__all__ = ["Deconvolution"]
