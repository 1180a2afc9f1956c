"""Runtimes: how a program is written for each of them, and how the file is run."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

from intervalnn.network.capture.flat import where
from intervalnn.network.capture.quiet import quiet
from intervalnn.network.capture.undisturbed import undisturbed
from intervalnn.saving.exporting.compiled import open_compiled, write_compiled
from intervalnn.saving.exporting.runtime import Run, Runtime
from intervalnn.saving.exporting.standalone import Standalone

__all__ = ["RUNTIMES"]


# --- ONNX ---


def _log_sigmoid(x: Tensor) -> Tensor:
    return x.clamp(max=0.0) - torch.log1p(torch.exp(-x.abs()))


# What torch writes as the logarithm of a sigmoid, which is minus infinity from -17 on.
_TAKEN_APART = {
    torch.ops.aten.log_sigmoid.default: _log_sigmoid,
    torch.ops.aten.log_sigmoid_forward.default: lambda x: (_log_sigmoid(x), x.new_zeros(0)),
}


def _write_onnx(program: Standalone, path: Path) -> dict[str, Any]:
    try:
        made = undisturbed(lambda: _onnx(program))
    except torch.onnx.errors.OnnxExporterError as error:
        raise ValueError(_refusal(error, program.model.graph)) from error
    for node in made.model.graph.all_nodes():  # these tell of the machine: paths, and lines of code
        node.metadata_props.clear()
        node.doc_string = None
    with quiet():
        made.save(path)  # with the weights in a second file beside it, should they be too many for one
    return {name: version(name) for name in ("onnx", "onnxscript")} | {"opset": made.model.opset_imports[""]}


def _onnx(program: Standalone) -> torch.onnx.ONNXProgram:
    exported = program.exported
    with quiet():
        if any(node.target in _TAKEN_APART for node in exported.graph.nodes):
            exported = exported.run_decompositions(_TAKEN_APART)
        made = torch.onnx.export(
            exported,
            dynamo=True,
            verbose=False,
            input_names=list(program.inputs),
            output_names=list(program.outputs),
            dynamic_shapes=_new_axes(program),
        )
    assert made is not None
    return made


def _new_axes(program: Standalone) -> list[dict[int, str]]:
    """Return the names of the sizes that vary, each where it comes first."""
    named: set[str] = set()
    axes = []
    for value in program.inputs.values():
        new = {d: size for d, size in enumerate(value.shape) if isinstance(size, str) and size not in named}
        named |= set(new.values())
        axes.append(new)
    return axes


def _refusal(error: BaseException, graph: fx.Graph) -> str:
    """Say which operation ONNX cannot express, and where the model uses it."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    reason = f"{type(root).__name__}: {root}".splitlines()[0]
    found = re.search(r"call_function\[target=torch\.ops\.([\w.]+)\]", str(error))
    if found is None:
        return f"torch could not write ONNX: {reason}; export to a .pt2 file instead"
    # What torch takes operations apart into is often called as they are.
    same = (node for node in graph.nodes if str(node.target).split(".")[1:2] == found[1].split(".")[1:2])
    own = next(same, None)
    line = f" ({where(own)})" if own is not None else ", which is part of another operation or of its bounds"
    return f"ONNX cannot express {found[1]}{line}: {reason}; export to a .pt2 file instead"


def _open_onnx(path: Path) -> Run:
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # it raises what it logs
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs, outputs = ([value.name for value in values] for values in (session.get_inputs(), session.get_outputs()))

    def run(tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        given = {name: tensor.detach().cpu().numpy() for name, tensor in zip(inputs, tensors, strict=True)}
        return {name: torch.from_numpy(array) for name, array in zip(outputs, session.run(None, given), strict=True)}

    return run


# --- torch.export ---


def _write_pt2(program: Standalone, path: Path) -> dict[str, Any]:
    exported = program.exported
    for node in exported.graph.nodes:
        node.meta.pop("stack_trace", None)  # these tell of the machine
    exported.example_inputs = None  # and this is the user's data
    whole = io.BytesIO()  # torch itself ends the process where a disk is full
    with quiet():
        torch.export.save(exported, whole)
    path.write_bytes(whole.getbuffer())
    return {}


def _open_pt2(path: Path) -> Run:

    def load() -> Any:
        with quiet():
            return torch.export.load(path).module()

    module = undisturbed(load)

    @torch.no_grad()
    def run(tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        found: dict[str, Tensor] = module(*tensors)
        return found

    return run


RUNTIMES = {
    ".onnx": Runtime("ONNX", ("onnx", "onnxscript"), ("onnxruntime",), _write_onnx, _open_onnx),
    ".aoti.pt2": Runtime("AOTInductor", (), ("torch",), write_compiled, open_compiled, compiled=True),
    ".pt2": Runtime("torch.export", (), ("torch",), _write_pt2, _open_pt2),
}  # by how the name of the file ends; the first that fits
