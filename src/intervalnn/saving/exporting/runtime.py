"""Runtime: what runs a file, and what this machine needs to write one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import Tensor

from intervalnn.saving.exporting.standalone import Standalone
from intervalnn.torch_private import why_no_compiler

__all__ = ["Run", "Runtime"]

Run = Callable[[Sequence[Tensor]], Mapping[str, Tensor]]


@dataclass(frozen=True, slots=True)
class Runtime:
    """What runs a file.

    Attributes:
        format: What the file is.
        writers: Packages that write it, beside torch.
        runners: Packages that run it.
        write: Writes a program to a file under its final name; returns the versions it depends on.
        open: Returns what runs a file, from its inputs in order to its outputs by name.
        compiled: Whether the file is machine code: it takes a compiler to write, and refuses no size that may vary.
    """

    format: str
    writers: tuple[str, ...]
    runners: tuple[str, ...]
    write: Callable[[Standalone, Path], dict[str, Any]]
    open: Callable[[Path], Run]
    compiled: bool = False

    def check(self, *, run: bool) -> None:
        """Raise if a package or the compiler is missing."""
        missing = [name for name in (*self.writers, *(self.runners if run else ())) if find_spec(name) is None]
        if missing:
            hint = ", or set verify=False to write it without running it" if set(missing) <= set(self.runners) else ""
            raise ImportError(
                f'exporting to {self.format} needs {" and ".join(missing)}: pip install "intervalnn[onnx]"{hint}'
            )
        if self.compiled:
            self._check_compiler()

    def _check_compiler(self) -> None:
        why = why_no_compiler()
        if why:
            raise RuntimeError(
                f"exporting to {self.format} needs a C++ compiler, and torch finds none ({why}); install g++, or set "
                "the environment variable CXX to another before Python starts; a plain .pt2 file needs none"
            )
