"""Compiled: a program as machine code, by torch's AOTInductor."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from intervalnn.network.capture.quiet import quiet
from intervalnn.saving.exporting.runtime import Run
from intervalnn.saving.exporting.standalone import Standalone
from intervalnn.torch_private import compiled_ahead, load_package, pack

__all__ = ["open_compiled", "write_compiled"]

_OPTIONS = {
    "aot_inductor.package": True,
    "aot_inductor.check_lowerbound": False,  # torch holds every size that varies for two or more, and one will do
    "cpp.dynamic_threads": True,  # as many as where it runs, not as here
}
_CHECKS = "AOTI_RUNTIME_CHECK_INPUTS"


def write_compiled(program: Standalone, path: Path) -> dict[str, Any]:
    """Compile a program for the device that its weights are on, and for processors like this one.

    Raises:
        ValueError: If torch or the compiler cannot.
    """
    assert program.exported.example_inputs is not None
    args, kwargs = program.exported.example_inputs
    whole = io.BytesIO()  # torch itself ends the process where a disk is full
    with tempfile.TemporaryDirectory() as folder, torch.no_grad(), quiet():
        try:
            module = program.exported.module(check_guards=False)
            made = compiled_ahead(module, args, kwargs, _OPTIONS | {"aot_inductor.output_path": folder})
        except Exception as error:
            raise ValueError(_refusal(error, program)) from error
        for source in Path(folder).glob("*.cpp"):  # torch wants their names alone, and they tell of the machine
            source.write_bytes(b"")
        pack(made, whole)
        about = json.loads(Path(next(file for file in made if file.endswith("_metadata.json"))).read_text())
    path.write_bytes(whole.getbuffer())
    plain = {key.removeprefix("AOTI_").removesuffix("_KEY").lower(): value for key, value in about.items() if value}
    return {"compiled_for": plain}


def _refusal(error: Exception, program: Standalone) -> str:
    """Say in one line why a program was not compiled: the compiler's first error, else the beginning of torch's own."""
    lines = (line.strip() for line in str(error).splitlines() if "error: " in line)
    reason = next(lines, " ".join(str(error).split())[:300])
    varying = any(isinstance(size, str) for value in program.inputs.values() for size in value.shape)
    hint = "fix its sizes with dynamic=False, or " if varying else ""
    return f"AOTInductor could not compile the network: {reason}; {hint}export to a plain .pt2 file"


def open_compiled(path: Path) -> Run:
    """Return what runs a package, with checks of its inputs."""
    with quiet():
        package = load_package(path)

    def run(tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        with quiet(), _checked():
            return package(*tensors)

    return run


@contextlib.contextmanager
def _checked() -> Iterator[None]:
    """Let packages check their inputs, which each decides for good at its first call."""
    before = os.environ.get(_CHECKS)
    os.environ[_CHECKS] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CHECKS]
        else:
            os.environ[_CHECKS] = before
