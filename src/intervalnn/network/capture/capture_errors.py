"""What torch cannot follow in a model: the model's line, what stands there in one sentence, and the way out."""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from intervalnn.network.capture.settled import READS
from intervalnn.torch_private import has_gradient, pytree

__all__ = ["Following", "UnexplainedError", "is_of_model", "line_of", "object_of_cpp", "reads_values", "untraceable"]

_TORCH = str(Path(torch.__file__).parent) + os.sep
_PYTHON = sysconfig.get_path("stdlib") + os.sep
_PACKAGES = sysconfig.get_path("purelib") + os.sep
_LONGEST = 100  # characters of a line that are quoted
_DATA, _SET_DATA = Tensor.data.__get__, Tensor.data.__set__  # type: ignore[attr-defined]
_GRADIENTS = {torch.autograd.grad, torch.autograd.backward, Tensor.backward}

_OF_VALUES = "GuardOnDataDependentSymNode|DataDependentOutputException|DynamicOutputShapeException"
_READS = "reads the value of a tensor into Python, where no interval can follow"
_AS_NUMBER = (
    f"{_READS} (float(), int(), .item(), an index or a size); leave it a tensor, which multiplies and adds like a "
    "number, and take sizes from shapes or from arguments that are no tensors"
)
_BRANCHES = (
    "branches on the value of a tensor; inside an interval both branches may be taken, so it cannot be bounded. Write "
    "the choice with torch.where, clamp or relu, or keep it out of the model. A tensor that no interval reaches, such "
    "as a flag in a buffer, cannot be read either; make it an argument or an attribute that is no tensor"
)
_NO_FAKE = (
    "calls an operation whose result torch cannot describe without computing it; use dense tensors and torch's own "
    "operations, or register a fake implementation of the operation with torch.library.register_fake"
)
_DIFFERENTIATES = (
    "computes a gradient while it runs, which torch.export cannot follow; write the derivative as operations of its "
    "own, or compute it before the model and pass it as an input"
)

# By the kind of torch's error, a pattern of its text and one of torch's functions in which it arose (empty for any):
# what the model does, as the end of a sentence, and what to do instead. The first that fits is told.
_SENTENCES: list[tuple[str, str, str, str]] = [
    (
        "GuardOnDataDependentSymNode", "", r"torch/distributions/",
        "builds a torch.distributions object, which checks the values of its parameters; pass validate_args=False, or "
        "call torch.distributions.Distribution.set_default_validate_args(False) before",
    ),
    ("GuardOnDataDependentSymNode", "", r":guard_(float|int)$", _AS_NUMBER),
    (
        "GuardOnDataDependentSymNode", r"Size-like symbols: (?!none)", "",
        "loops over a tensor, or asks for its size, where that size depends on values (a mask, nonzero, unique), so "
        "that there is no one program; multiply by the mask instead, or choose with torch.where",
    ),
    ("GuardOnDataDependentSymNode", "", "", _BRANCHES),
    ("DataDependentOutputException", r"equal|allclose|is_nonzero", "", _BRANCHES),
    ("DataDependentOutputException", "", "", _AS_NUMBER),
    (
        "DynamicOutputShapeException", "", "",
        "calls an operation whose result has a shape that depends on values, so that there is no one program; take "
        "that step before the model or behind it",
    ),
    ("Unsupported(Operator|FakeTensor)Exception", "", "", _NO_FAKE),
    ("NotImplementedError", r"no fake impl|fake impl.*registered", "", _NO_FAKE),
    (
        "", r"layout_impl is only implemented|Sparse \w+ tensors do not have strides", "",
        "has a sparse tensor in a compressed layout (CSR, CSC, BSR, BSC) where torch cannot follow; convert it once, "
        "with .to_sparse_coo() or .to_dense()",
    ),
    (
        "TypeError", r"got FakeTensor", r"rnn\.py:forward",
        "runs a recurrent layer on a packed sequence, whose sizes are values; run it on the padded one, and take from "
        "its output the steps that count",
    ),
    (
        "", r"\.numpy\(\) is not supported|numpy\(\) .*(Fake|Functional)", "",
        "hands a tensor to NumPy, where torch cannot follow; use the function of that name in torch",
    ),
    ("", r"tolist\(\) ", "", f"{_READS} (.tolist()); leave it a tensor"),
    (
        "", r"its data is not allocated yet", "",
        "makes a tensor out of numbers in others, where torch cannot follow; join them with torch.stack or torch.cat",
    ),
    (
        "", r"access (data pointer|storage) of", "",
        "looks into the memory of a tensor (a deepcopy, data_ptr, an extension in C++), where torch cannot follow; "
        "take the copy in __init__, or make the extension an operation with torch.library.custom_op",
    ),
    (
        "", r"Found <class '(?P<what>[^']*)'> in output", "",
        "returns an object of type {what}, which torch cannot take apart; return tensors, tuples, lists or dicts of "
        "them, or register a dataclass with torch.export.register_dataclass",
    ),
    (
        "", r"vmap: It looks like you're .*calling \.item\(\)|vmap: .*data-dependent control flow", "", _BRANCHES,
    ),
    (
        "", r"__obj_flatten__|script object|ScriptObject|torchbind", "",
        "holds an object of C++ (packed weights of a quantised layer, say), where torch cannot follow; give the "
        "original model, in floating point and in Python",
    ),
    (
        "AssertionError", r"expected compiled_fn to be GraphModule", "",
        "writes to an input that shares its memory with another one, which would change with it; pass x.clone() for "
        "one of the two",
    ),
    (
        "UncapturedHigherOrderOpError", "", "",
        "calls one of torch's higher-order operations (torch.cond, map, scan), whose functions have no interval rule; "
        "write a branch with torch.where, and a loop in Python",
    ),
    (
        "", r"torch\.compiler\.disable", "",
        "calls a function that is kept out of torch's compiler (torch.compiler.disable), where torch cannot follow; "
        "call what is inside of it",
    ),
    (
        "", r"fake tensor in the exported program|functorch tensor|FakeTensors first|GradTrackingTensor", "",
        "keeps or makes a tensor that torch loses sight of (a gradient, a cache outside of the model); pass it as an "
        "input, or register it as a buffer",
    ),
]  # fmt: skip


class _RefusedError(Exception):
    """What the model does, as the end of a sentence, raised in the line where it does so."""


class UnexplainedError(ValueError):
    """Torch could not follow a model, and no sentence here says why."""


def _product(matrix: Tensor, other: Tensor, reduce: str | None = None) -> Tensor:
    return matrix @ other if reduce is None else torch.sparse.mm(matrix, other, reduce)


def _times_column(matrix: Tensor, vector: Tensor) -> Tensor:
    """Multiply by a vector: of a sparse matrix, torch knows the product with a matrix of one column alone."""
    return matrix.mv(vector) if matrix.layout == torch.strided else (matrix @ vector.unsqueeze(1)).squeeze(1)


# What torch.export follows, instead of what it does not.
_FOLLOWED: dict[Any, Callable[..., Any]] = {
    _DATA: Tensor.detach,
    torch.sparse.mm: _product,
    torch.sparse.addmm: torch.addmm,
    torch.mv: _times_column,
    Tensor.mv: _times_column,
}


class Following(TorchFunctionMode):
    """Keep in sight what torch.export loses: ``.data`` becomes ``.detach()``, and gradients are refused where taken.

    Without this mode torch turns a tensor behind ``.data``, or a gradient, into a constant, and reports an error only
    later, without the model's line.

    Attributes:
        read: Whether the model read a number, which torch lets it do of a constant, and forgets.
    """

    def __init__(self) -> None:
        super().__init__()
        self.read = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.read = self.read or func in READS
        if func == _SET_DATA:
            raise _RefusedError("sets .data of a tensor while it runs; compute a new tensor from it instead")
        if func in _GRADIENTS or any(map(has_gradient, pytree.tree_leaves((args, kwargs)))):
            raise _RefusedError(_DIFFERENTIATES)
        return _FOLLOWED.get(func, func)(*args, **(kwargs or {}))


def reads_values(error: Exception) -> bool:
    """Say whether torch could not follow since the model reads a value of a tensor, or takes a size from it."""
    return bool(re.fullmatch(_OF_VALUES, type(error).__name__)) or "tolist() " in str(error)


def untraceable(error: Exception, model: nn.Module, start: tuple[str, str]) -> ValueError:
    """Return the error that says in which line ``model`` does what torch cannot follow, and what to do.

    Args:
        error: Torch's own.
        model: The model.
        start: File and name of the function that calls the model: the frames inside of it are the model's.
    """
    line = line_of(error, start) or _first_line(model)
    name = type(model).__name__
    if isinstance(error, _RefusedError):
        return ValueError(f"{line or name}: the model {error}")
    text = str(error).strip()
    frames = [f"{frame.filename}:{frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    for kind, pattern, function, sentence in _SENTENCES:
        found = re.search(pattern, text, re.DOTALL)
        if found and re.fullmatch(kind or ".*", type(error).__name__) and _any(function, frames):
            return ValueError(f"{line or name}: the model {sentence.format(**found.groupdict())}")
    told = f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"
    return UnexplainedError(f"{f'{line}: ' if line else ''}torch.export could not capture {name}: {told}")


def object_of_cpp(value: Any, where: str) -> str:
    """Say that a program calls an object of C++, whose inside is unknown, and what to do instead."""
    if isinstance(value, torch.Generator):
        return (
            f"the model draws random numbers from a torch.Generator ({where}), so it has no one prediction to bound; "
            "pass the noise as an input"
        )
    return (
        f"the model calls an object of C++, {type(value).__name__}, whose inside torch.export does not see ({where}); "
        "give a model in Python that does without it"
    )


def _any(pattern: str, frames: Iterable[str]) -> bool:
    return not pattern or any(re.search(pattern, frame) for frame in frames)


def line_of(error: BaseException, start: tuple[str, str]) -> str:
    """Return the innermost line of the model in which ``error`` arose, as ``file:line ("code")``; empty if in none."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = max((i for i, frame in enumerate(frames) if (frame.filename, frame.name) == start), default=len(frames))
    for frame in reversed(frames[inside + 1 :]):
        if is_of_model(frame.filename):
            return _quoted(frame.filename, frame.lineno, frame.line)
    return ""


def is_of_model(file: str) -> bool:
    """Say whether a file may be where a model is written: neither in torch nor in Python itself."""
    if Path(file).parent == Path(__file__).parent or file.startswith((_TORCH, "<frozen", "<string", "<eval_with_key")):
        return False  # "<stdin>" and "<ipython-input-...>" are where models are written, too
    return file.startswith(_PACKAGES) or not file.startswith(_PYTHON)


def _first_line(model: nn.Module) -> str:
    """Return the line in which the forward of a model begins, if it is written in Python outside of torch."""
    code = getattr(type(model).forward, "__code__", None)
    if code is None or not is_of_model(code.co_filename):
        return ""
    return _quoted(code.co_filename, code.co_firstlineno, f"{type(model).__name__}.forward")


def _quoted(file: str, line: int | None, code: str | None) -> str:
    code = code or ""
    return f'{file}:{line} ("{code if len(code) <= _LONGEST else code[:_LONGEST] + "..."}")'
