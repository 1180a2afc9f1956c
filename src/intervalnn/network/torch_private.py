"""What torch keeps private and we use all the same: a function each, so that a new torch breaks one file."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch
from torch._export.utils import _is_preservable_cia_op, _special_op_to_preserve_cia
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export._remove_effect_tokens_pass import _remove_effect_tokens
from torch.export.exported_program import _decompose_exported_program
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _push_mode

__all__ = [
    "decomposed", "function_modes", "has_gradient", "in_transform", "is_traced", "itself_alone", "push_function_modes",
    "without_effect_tokens",
]  # fmt: skip


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
        _functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)
        if torch.autograd.forward_ad._current_level < 0:
            _leave_forward_mode()


def _leave_forward_mode() -> None:
    """Leave the forward mode of differentiation, if Python has left it and C++ has not."""
    try:
        torch._C._exit_dual_level(torch._C._enter_dual_level())
    except RuntimeError:  # which says that one is inside already
        torch._C._exit_dual_level(0)
