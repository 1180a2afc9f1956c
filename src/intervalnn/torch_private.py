"""What torch keeps private and we use all the same: a function each, so that a new torch breaks one file."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx, nn
from torch._C import _functorch
from torch._decomp import decompositions
from torch._export.utils import _is_preservable_cia_op, _special_op_to_preserve_cia
from torch._ops import OpOverload, OpOverloadPacket
from torch.export import ExportedProgram
from torch.export import _trace as export_trace
from torch.export._remove_effect_tokens_pass import _remove_effect_tokens
from torch.export.exported_program import _decompose_exported_program
from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _push_mode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

__all__ = [
    "GUARD_NAMES",
    "BatchNorm",
    "Convolution",
    "Dropout",
    "OpOverload",
    "OpOverloadPacket",
    "TorchDispatchMode",
    "TransposedConvolution",
    "arguments_of",
    "compiled_ahead",
    "compiler_modes",
    "decomposed",
    "function_modes",
    "guards_of",
    "has_gradient",
    "hooks_of",
    "in_transform",
    "is_traced",
    "itself_alone",
    "keep_device_guard",
    "keep_in_place",
    "kernels_kept",
    "key_of",
    "load_package",
    "names_held",
    "no_modes",
    "own_parameters",
    "pack",
    "push_function_modes",
    "pytree",
    "shallow_copy",
    "version_of",
    "why_no_compiler",
    "without_effect_tokens",
    "write_parts",
]  # fmt: skip

Module = TypeVar("Module", bound=nn.Module)

# --- modules: those that all of a family derive from, and what they hold ---

BatchNorm = _NormBase  # instance norms too
Convolution = _ConvNd
TransposedConvolution = _ConvTransposeNd
Dropout = _DropoutNd


def own_parameters(module: nn.Module) -> Mapping[str, nn.Parameter | None]:
    """Return what a module itself holds as parameters, tied ones too: several times as fast as the public way."""
    return module._parameters


def names_held(module: nn.Module) -> tuple[Any, ...]:
    """Return the names of the buffers and modules that a module itself holds, and which of the buffers there are."""
    own = module.__dict__  # looked at in every call of a network, so fast
    buffers = own["_buffers"]
    return (*own["_modules"], *[(name, buffer is None) for name, buffer in buffers.items()])


def hooks_of(module: nn.Module) -> tuple[Any, ...]:
    """Return the hooks that a call of a module runs, before its forward and behind."""
    own = module.__dict__  # looked at in every call of a network, so fast
    before, behind = own["_forward_pre_hooks"], own["_forward_hooks"]
    return (*before.values(), *behind.values()) if before or behind else ()


def shallow_copy(module: Module) -> Module:
    """Return a copy of a module, whose attributes and modules may be set without changing those of the module itself.

    Torch's own ``copy.copy`` shares the table of modules.
    """
    copied = object.__new__(type(module))
    copied.__dict__.update(module.__dict__)
    copied.__dict__["_modules"] = dict(module._modules)
    return copied


# --- tensors and operations ---


@contextlib.contextmanager
def kernels_kept() -> Iterator[None]:
    """Let ``torch.export`` leave the processor's fast kernels on, since it turns them off for every thread.

    It does so lest LSTMs be taken apart into one of these kernels; here they are not, whatever is on.
    """
    changed = ((export_trace, "_ignore_backend_decomps", contextlib.nullcontext), (decompositions, _LSTM, _plain_lstm))
    before = [getattr(module, name) for module, name, _ in changed]
    for module, name, other in changed:
        setattr(module, name, other)
    try:
        yield
    finally:
        for (module, name, _), own in zip(changed, before, strict=True):
            setattr(module, name, own)


_LSTM = "select_one_layer_lstm_function"


def _plain_lstm(*_: Any) -> Callable[..., Any]:
    return decompositions.one_layer_lstm


@contextlib.contextmanager
def no_modes() -> Iterator[None]:
    """Let torch compute with numbers while it captures a program with stand-ins."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


def version_of(x: Tensor) -> int:
    """Return how often torch saw a tensor change in place."""
    return x._version


def key_of(storage: torch.UntypedStorage) -> int:
    """Return a number that tells the memory of one tensor from that of others, however little it is."""
    key: int = storage._cdata
    return key


def arguments_of(operation: OpOverload) -> list[Any]:
    """Return the arguments that an operation takes: name, default value, and whether by name alone."""
    return operation._schema.arguments


# --- capturing ---


def guards_of(program: ExportedProgram) -> list[str]:
    """Return conditions on the sizes under which a program holds, as Python that knows :data:`GUARD_NAMES`."""
    return list(program._guards_code)


GUARD_NAMES: Mapping[str, Any] = SYMPY_INTERP


def decomposed(
    program: ExportedProgram, table: Mapping[Any, Callable[..., Any]], whole: Collection[OpOverload]
) -> ExportedProgram:
    """Return a program without side effects, with the operations of ``table`` taken apart.

    This is ``program.run_decompositions(table)``, but that puts kernels into all 500 composite operations of torch for
    the while, which is most of the time that a capture takes. Here only those get one that are not taken apart as
    torch would anyway: 80.

    Args:
        program: What ``torch.export.export`` returns.
        table: How operations are taken apart.
        whole: Operations that stay as they are.
    """
    composite = {op: how for op, how in table.items() if _is_composite(op)}
    special = {op: how for op, how in composite.items() if not isinstance(how, functools.partial)}
    return _decompose_exported_program(  # type: ignore[no-any-return]
        program,
        cia_to_decomp=special | {op: _special_op_to_preserve_cia for op in whole if _is_composite(op)},
        python_decomp_table={op: how for op, how in table.items() if op not in composite},
        joint_loss_index=None,
        decompose_custom_triton_ops=False,
    )


@functools.cache
def _is_composite(operation: Any) -> bool:
    """Say whether torch takes an operation apart by itself, unless it is told not to."""
    return _is_preservable_cia_op(operation)


def function_modes() -> list[TorchFunctionMode]:
    """Return what stands between this thread and torch's functions, such as a default device, the outermost first."""
    return _get_current_function_mode_stack()  # type: ignore[no-any-return]


def push_function_modes(modes: Sequence[TorchFunctionMode]) -> None:
    """Put what :func:`function_modes` has returned in another thread into this one, until the thread ends."""
    for mode in modes:  # to enter them as contexts would tell them so, and they belong to the other thread
        _push_mode(mode)


@functools.cache
def keep_device_guard() -> None:
    """Let exports of one thread after the other not crash torch 2.11, built for CUDA, where there is no such device.

    The first export of the process puts a stand-in for the devices in place, which is freed when that thread ends, and
    later exports read it. So a thread that never ends is the first.
    """
    done = threading.Event()

    def hold() -> None:
        torch._C._ensureCUDADeviceGuardSet()
        done.set()
        threading.Event().wait()

    if torch.version.cuda and not torch.cuda.is_available():
        threading.Thread(target=hold, name="intervalnn guard", daemon=True).start()
        done.wait()


def without_effect_tokens(program: ExportedProgram) -> ExportedProgram:
    """Return a program whose checks (of a matrix that is inverted, say) stand in their order without tokens for it."""
    return _remove_effect_tokens(program)


def in_transform() -> bool:
    """Say whether a transform of ``torch.func`` (``vmap``, ``grad``, ``jacrev``) runs what runs now."""
    return _functorch.peek_interpreter_stack() is not None


def is_traced() -> bool:
    """Say whether ``torch.jit.trace`` watches what runs now."""
    return torch._C._get_tracing_state() is not None


def has_gradient(value: Any) -> bool:
    """Say whether a value is a tensor by which ``torch.func`` differentiates now."""
    return isinstance(value, Tensor) and _functorch.is_gradtrackingtensor(value)


@contextlib.contextmanager
def itself_alone() -> Iterator[None]:
    """Let an export leave nothing behind in torch: no stand-in for a weight, no transform that an error cut short."""
    depth = _functorch.get_dynamic_layer_stack_depth()
    cached = parametrize._cache_enabled, parametrize._cache
    parametrize._cache_enabled, parametrize._cache = 0, {}
    try:
        yield
    finally:
        parametrize._cache_enabled, parametrize._cache = cached
        _leave_transforms(depth)
        if torch.autograd.forward_ad._current_level < 0:
            _leave_forward_mode()


def _leave_transforms(depth: int) -> None:
    """Leave the transforms of ``torch.func`` inside of the first ``depth``, if Python has left them and C++ has not."""
    try:
        _functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)
    except RuntimeError:  # torch 2.11 leaves the outermost too, and then looks for one more
        if _functorch.get_dynamic_layer_stack_depth() != depth:
            raise


def _leave_forward_mode() -> None:
    """Leave the forward mode of differentiation, if Python has left it and C++ has not."""
    try:
        torch._C._exit_dual_level(torch._C._enter_dual_level())
    except RuntimeError:  # which says that one is inside already
        torch._C._exit_dual_level(0)


# --- compiling ---


def compiler_modes() -> dict[str, dict[str, Any]]:
    """Return the options of torch's compiler that each of its modes stands for."""
    return torch._inductor.list_mode_options()


def keep_in_place(x: Tensor) -> None:
    """Let what is compiled rely on where a tensor lies, and on its sizes."""
    torch._dynamo.mark_static_address(x)  # a CUDA graph then reads it without a copy
    torch._dynamo.mark_static(x)  # dynamic=True is about inputs


def write_parts(join: OpOverload) -> None:
    """Have torch's compiler write each of the parts that an operation joins to where it belongs, without calling it.

    Args:
        join: The operation, which takes the parts and a dimension.
    """
    from torch._inductor import ir, lowering

    def lower(parts: list[Any], dim: int) -> Any:
        return ir.TensorBox(ir.ConcatKernel.create(parts, dim))

    lowering.register_lowering(join, type_promotion_kind=None)(lower)


def compiled_ahead(module: fx.GraphModule, args: Any, kwargs: Any, options: Mapping[str, Any]) -> list[str]:
    """Return the files into which AOTInductor compiles a module, for calls like the one with these arguments."""
    return torch._inductor.aot_compile(module, args, kwargs, options=dict(options))  # type: ignore[return-value]


def pack(files: Sequence[str], into: Any) -> None:
    """Write what :func:`compiled_ahead` has returned as one package, to a file that is open for bytes."""
    from torch._inductor.package.package import package_aoti

    package_aoti(into, list(files))


def load_package(path: Path) -> Callable[..., dict[str, Tensor]]:
    """Return what runs a package."""
    return torch._inductor.aoti_load_package(str(path))


def why_no_compiler() -> str:
    """Say why torch finds no compiler of C++; nothing if it finds one."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler as error:
        return str(error)
    return ""
