"""What torch keeps private and we use all the same: a function each, so that a new torch breaks one file."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from torch._export.utils import _is_preservable_cia_op, _special_op_to_preserve_cia
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.exported_program import _decompose_exported_program
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _push_mode

__all__ = ["decomposed", "function_modes", "push_function_modes"]


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
