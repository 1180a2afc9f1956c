"""An unmodified module to one flat graph of ATen operations, by ``torch.export``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from intervalnn.interval import Interval
from intervalnn.network.capture.call import Call, memory_shared
from intervalnn.network.capture.capture_errors import Following, reads_values, untraceable
from intervalnn.network.capture.flat import START, Flat
from intervalnn.network.capture.program import Program, at_start, program_of
from intervalnn.network.capture.quiet import quiet
from intervalnn.network.capture.settled import Settling
from intervalnn.network.capture.side_effects import refuse_side_effects, refuse_training
from intervalnn.network.capture.spelled_out import kept_whole
from intervalnn.network.capture.twin import Twin
from intervalnn.network.capture.undisturbed import undisturbed
from intervalnn.table import RULES, aten, overloads
from intervalnn.torch_private import OpOverload, decomposed, itself_alone, kernels_kept, without_effect_tokens

__all__ = ["capture"]

# Taken apart although the table knows them: it refuses them, and what they are made of may have rules.
_DECOMPOSED_ANYWAY = {aten.as_strided, aten.item, aten.native_dropout, aten.rrelu_with_noise}
# What torch says of itself while it captures; what the model says is let through.
_OF_TORCH = [
    (".*LeafSpec", FutureWarning, ""),
    (".*assigned during export", UserWarning, ""),
    ("", Warning, r"torch\.|copyreg"),
]


def capture(model: nn.Module, call: Call, before: Sequence[Program] = ()) -> Program:
    """Return the program that ``model`` runs for ``call``, which is only looked at, not kept.

    The program holds for any size of the first dimension, the batch, and of those dimensions in
    which the call differs from the ones before. The other sizes are fixed, because torch reasons about every symbolic
    size, which takes minutes for some models.

    Args:
        model: The model, in eval mode.
        call: An example of how it is called.
        before: Programs of earlier calls, whose sizes were others.

    Raises:
        ValueError: If the program depends on values (a branch, a loop), or changes the
            model while it runs; the message names the line.
    """
    refuse_training(model)
    points = [t.point if isinstance(t, Interval) else t for t in call.tensors]
    flat = Flat(Twin(model).module, call)
    intervals = {place for place, x in enumerate(call.tensors) if isinstance(x, Interval)}
    exported = undisturbed(lambda: _export(flat, points, before, Settling(model, points, intervals)))
    refuse_side_effects(exported, memory_shared(points))
    return program_of(exported, model, flat.returned, flat.read)


def _export(flat: Flat, points: list[Tensor], before: Sequence[Program], settling: Settling) -> ExportedProgram:
    def varies(i: int, d: int, n: int) -> bool:
        return n > 1 and (d == 0 or any(program.sizes[i][d] != n for program in before))

    varying = tuple(
        {d: Dim.AUTO if varies(i, d, n) else Dim.STATIC for d, n in enumerate(p.shape)} for i, p in enumerate(points)
    )

    tensors = (*points, *flat.model.parameters(), *flat.model.buffers())
    on_cpu = all(tensor.device.type == "cpu" for tensor in tensors)
    following = Following()

    def export(sizes: Any) -> ExportedProgram:
        fresh = tuple(at_start(p.detach()) for p in points)  # torch marks those it was given as varying
        kept = kernels_kept() if on_cpu else contextlib.nullcontext()  # a GPU's own kernels have no rules
        with torch.no_grad(), quiet(_OF_TORCH, ["stderr"]), kept, itself_alone():
            with following:
                program = torch.export.export(flat, fresh, dynamic_shapes=sizes, strict=False)
            return without_effect_tokens(kept_whole(program, lambda known: decomposed(known, *_decompositions())))

    def at_any_size() -> ExportedProgram:
        with contextlib.suppress(Exception):
            return export({"tensors": varying})
        return export(None)  # with sizes that do not vary torch has less to reason about; others are captured anew

    try:
        try:
            found = at_any_size()
        except Exception as error:
            if not (reads_values(error) or following.read):
                raise
        else:
            if not following.read:
                return found
        flat.settle(settling)
        return at_any_size()
    except Exception as error:
        raise untraceable(error, flat.model, START) from error


def _decompositions() -> tuple[dict[Any, Any], list[OpOverload]]:
    """Return torch's table of decompositions without the operations that have a rule, and a list of these."""
    table = dict(torch.export.default_decompositions())
    known = (overload for operation in RULES for overload in overloads(operation))
    whole = [overload for overload in known if overload.overloadpacket not in _DECOMPOSED_ANYWAY]
    for overload in whole:
        table.pop(overload, None)
    table[aten.rrelu_with_noise_functional.default] = _settled_rrelu  # torch has none
    table[aten.lstm.input] = _with_states_as_given(table[aten.lstm.input])
    return table, whole


def _with_states_as_given(lstm: Callable[..., Any]) -> Callable[..., Any]:
    """Give the last states the shape of the first ones: in torch 2.11 they have one dimension more, if in a batch."""

    def taken_apart(x: Tensor, states: list[Tensor], *args: Any) -> tuple[Tensor, ...]:
        out, *last = lstm(x, states, *args)
        pairs = zip(last, states, strict=True)
        return out, *(end if end.dim() == first.dim() else end.reshape(first.shape) for end, first in pairs)

    return taken_apart


def _settled_rrelu(
    x: Tensor, noise: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Any:
    """Take a randomised leaky unit apart, which in eval mode has the mean of its slopes and draws nothing."""
    if training:
        return NotImplemented
    return aten.leaky_relu(x, (lower + upper) / 2), noise
