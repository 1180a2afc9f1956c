"""Plan: how one program is run: what it reads of the model, and what was made of that before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from intervalnn.capture import Program
from intervalnn.gaps import Gaps
from intervalnn.lift import Form, Lifted, lift, whole
from intervalnn.rules.bilinear import Split, side_by_side

__all__ = ["Plan", "Weight", "refuse_other"]


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor of the underlying model that a program reads, and its gaps.

    Attributes:
        owner: The module that holds it.
        name: Its name there.
        gaps: Its gaps, if it has any.
        constant: Its value, if nothing of the model holds it.
        stretched: Whether its gaps are taken as shares of the inputs.
        full: Its name in the model.
        captured: What it was when the program was captured, but for the numbers.
    """

    owner: Any
    name: str
    gaps: Gaps | None
    constant: Tensor | None
    stretched: bool = False
    full: str = ""
    captured: Tensor | None = None

    def read(self) -> Tensor:
        """Return the tensor as the model has it now, or a constant of the program."""
        value = getattr(self.owner, self.name, None)
        value = value if isinstance(value, Tensor) else self.constant
        assert value is not None
        return value

    def around(self, point: Tensor, gap_dtype: torch.dtype | None) -> Any:
        """Return ``point`` with its gaps, if any, in the form that the program takes."""
        if self.gaps is not None:
            refuse_other(self.full, self.gaps, point, "make a new IntervalNetwork")
        if self.captured is not None:
            refuse_other(self.full, self.captured, point, "call net.refresh()")
        if self.gaps is None:
            return point
        return self.gaps(point, gap_dtype, self.stretched)


@dataclass(slots=True)
class Plan:
    """A program, its form over intervals, and what was prepared for it of the weights.

    Attributes:
        program: What the model computes.
        lifted: The same over intervals.
        weights: What it reads of the model.
        gap_dtype: Data type in which gaps are propagated; None for the weights' own.
        state: Addresses and versions of all that ``prepared`` was made from.
        prepared: What the second graph takes from the first.
        parts: The tensors themselves.
        at_once: Both graphs in one, once it was asked for.
    """

    program: Program
    lifted: Lifted
    weights: list[Weight]
    gap_dtype: torch.dtype | None = None
    state: Any = None
    prepared: Any = None
    parts: Any = None
    at_once: fx.GraphModule | None = None

    @staticmethod
    def of(
        program: Program, model: nn.Module, gaps: Mapping[str, Gaps], form: Form, inputs: Collection[str] = ()
    ) -> Plan:
        """Bring a program into its form over intervals, and look up where ``model`` holds what it reads.

        Args:
            program: What the model computes.
            model: The underlying model.
            gaps: The gaps of weights, by the names of the program's placeholders.
            form: How products are bounded.
            inputs: Placeholders that are inputs and take intervals.
        """
        _refuse_views(program, {program.sources[name].name for name in gaps})
        by_input = [name for name, gap in gaps.items() if gap.by_input and gap.cap is None]
        lifted = lift(program, {*gaps, *inputs}, form, by_input)
        weights, captured = [], {n.name: n.meta["val"] for n in program.graph.find_nodes(op="placeholder")}
        for name in lifted.weights:
            full = program.sources[name].name
            path, _, leaf = full.rpartition(".")
            owner: Any = model
            for step in path.split(".") if path else ():
                owner = getattr(owner, step, None)
            stretched = name in lifted.stretched
            constant = program.constants.get(full)
            weights.append(Weight(owner, leaf, gaps.get(name), constant, stretched, full, captured[name]))
        return Plan(program, lifted, weights, form.gap_dtype)

    @property
    def points(self) -> list[Tensor]:
        """What it reads of the model, as it is now."""
        return [weight.read().detach() for weight in self.weights]

    @property
    def training(self) -> bool:
        """Whether gradients of gaps may be asked for."""
        gaps = (gap for weight in self.weights if weight.gaps for gap in weight.gaps.sides)
        return torch.is_grad_enabled() and any(gap.requires_grad for gap in gaps)

    def whole(self) -> fx.GraphModule:
        """Return one graph of both, from :attr:`points` and the inputs to the outputs: for a compiler to see it all."""
        if self.at_once is None:
            gaps = {name: w.gaps for name, w in zip(self.lifted.weights, self.weights, strict=True) if w.gaps}
            self.at_once = whole(self.lifted, gaps, self.gap_dtype)
        return self.at_once

    def current(self, *, static: bool = False) -> Any:
        """Return what the forward pass needs of the weights as they are now, made anew only where one has changed.

        Args:
            static: Whether a compiled forward pass reads them, which may then rely on where they lie.
        """
        points = [weight.read() for weight in self.weights]
        parts = points + [part for weight in self.weights if weight.gaps is not None for part in weight.gaps.parts]
        training = self.training
        state = None if training else _versions(parts)
        if state is not None and self.state == state:
            return self.prepared
        with torch.inference_mode(False), torch.set_grad_enabled(training):  # lest later gradients meet what is kept
            own = zip(self.weights, points, strict=True)
            values = (weight.around(point.detach(), self.gap_dtype) for weight, point in own)
            prepared = self.lifted.prepare(*values)
            if static and not training:
                prepared = tuple(_for_compiler(value) for value in prepared)
        if state is not None:
            self.state, self.prepared = state, prepared
            self.parts = [part.detach() for part in parts]  # kept, so that no address recurs
            for tensor in _tensors(prepared) if static else ():
                torch._dynamo.mark_static_address(tensor)  # a CUDA graph then reads it without a copy
                torch._dynamo.mark_static(tensor)  # dynamic=True is about inputs
        return prepared


def refuse_other(name: str, known: Gaps | Tensor, now: Tensor, way_out: str) -> None:
    """Raise if a tensor of the model has become one of another shape or dtype."""
    if (known.shape, known.dtype) != (now.shape, now.dtype):
        raise ValueError(
            f"'{name}' of the model was {known.dtype} of shape {tuple(known.shape)} before, and is now {now.dtype} of "
            f"shape {tuple(now.shape)}; set it back, or {way_out}"
        )


def _refuse_views(program: Program, names: Collection[str]) -> None:
    """Raise if a program reads part of a parameter through a kept view, which the parameter's gaps would not move."""
    for source in program.sources.values():
        for name in source.view_of:
            if name in names:
                raise ValueError(
                    f"the model reads a part of its parameter '{name}' through a view that it keeps ('{source.name}'), "
                    "so that the part would not move with the parameter's gaps; take the view in forward, or leave the "
                    "parameter out of the argument layers"
                )


def _for_compiler(value: Any) -> Any:
    """Return what was prepared in the form that a compiled forward pass on a GPU computes soonest."""
    return side_by_side(value) if isinstance(value, Split) and value.point.is_cuda else value


def _versions(parts: list[Tensor]) -> tuple[tuple[int, int], ...] | None:
    """Return what changes with any of the tensors; None where torch does not count changes, as in inference mode."""
    try:
        return tuple((part.data_ptr(), part._version) for part in parts)
    except RuntimeError:
        return None


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield all tensors in a tree of tuples, dicts and dataclasses."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)
    elif is_dataclass(value):
        for part in fields(value):
            yield from _tensors(getattr(value, part.name))
