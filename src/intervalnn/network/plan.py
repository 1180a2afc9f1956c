"""Plan: how one program is run: what it reads of the model, and what was made of that before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx, nn

from intervalnn.interval import Interval
from intervalnn.network.capture.kept import Kept
from intervalnn.network.capture.program import Program
from intervalnn.network.gaps import Gaps
from intervalnn.network.lifting.lift import Form, Lifted, Placed, lift, whole
from intervalnn.rules.products.gpu import for_compiler
from intervalnn.torch_private import keep_in_place

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
        handed_on: Whether a program takes it as it is, so that nothing is made of its numbers.
        full: Its name in the model.
        captured: What it was when the program was captured, but for the numbers.
    """

    owner: Any
    name: str
    gaps: Gaps | None
    constant: Tensor | None
    stretched: bool = False
    handed_on: bool = False
    full: str = ""
    captured: Tensor | None = None

    def read(self) -> Tensor:
        """Return the tensor as the model has it now, or a constant of the program."""
        value = getattr(self.owner, self.name, None)
        value = value if isinstance(value, Tensor) else self.constant
        if value is None:
            raise ValueError(
                f"the model has no tensor '{self.full or self.name}' any more, which it had at the first call; call "
                "net.refresh() to capture it as it is now"
            )
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


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What a program takes of the weights, made once for many calls.

    Attributes:
        values: What the second graph takes from the first.
        static: Whether it is in the form that a compiled forward pass takes.
        made_of: What it was made of; None if it is good for one call.
        has_points: Whether some points in it are new, rather than weights as the model has them.
    """

    values: Any
    static: bool
    made_of: Kept | None
    has_points: bool

    def holds(self, weights: list[Weight], *, static: bool) -> bool:
        """Say whether the record is still up to date, as far as is known without synchronisation."""
        return self.made_of is not None and self.static == static and self.made_of.are(*_sources(weights))

    def or_endless(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the bounds, infinite if the weights have changed since the record was made.

        Points that were computed from the old weights become NaN.
        """
        changed = None if self.made_of is None else self.made_of.differ()
        if changed is None:
            return outputs
        return tuple(_endless_where(changed, output, self.has_points) for output in outputs)


@dataclass(slots=True, eq=False)
class Plan:
    """A program, its form over intervals, and what was prepared for it of the weights.

    Several threads may run one plan. So each thread prepares an immutable record, which replaces the one before
    atomically.

    Attributes:
        program: What the model computes.
        lifted: The same over intervals.
        weights: What it reads of the model.
        gap_dtype: Data type in which gaps are propagated; None for the weights' own.
        prepared: What was made of the weights last.
        at_once: Both graphs in one, once it was asked for.
        making: Lock that is held while ``prepared`` or ``at_once`` is made, so that only one thread makes it.
    """

    program: Program
    lifted: Lifted
    weights: list[Weight]
    gap_dtype: torch.dtype | None = None
    prepared: Prepared | None = None
    at_once: fx.GraphModule | None = None
    making: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @staticmethod
    def of(
        program: Program,
        model: nn.Module,
        gaps: Mapping[str, Gaps],
        form: Form,
        inputs: Collection[str] = (),
        scouts: Mapping[int, Placed] | None = None,
    ) -> Plan:
        """Bring a program into its form over intervals, and look up where ``model`` holds what it reads.

        Args:
            program: What the model computes.
            model: The underlying model.
            gaps: The gaps of weights, by the names of the program's placeholders.
            form: How products are bounded.
            inputs: Placeholders that are inputs and take intervals.
            scouts: What widens the program's outputs, by their numbers.
        """
        _refuse_views(program, {program.sources[name].name for name in gaps})
        by_input = [name for name, gap in gaps.items() if gap.by_input and gap.cap is None]
        lifted = lift(program, {*gaps, *inputs}, form, by_input, scouts)
        used = {node.name for node in lifted.prepare.graph.nodes if any(user.op != "output" for user in node.users)}
        weights, captured = [], {n.name: n.meta["val"] for n in program.graph.find_nodes(op="placeholder")}
        for name in lifted.weights:
            full = program.sources[name].name
            path, _, leaf = full.rpartition(".")
            owner: Any = model
            for step in path.split(".") if path else ():
                owner = getattr(owner, step, None)
            stretched, handed_on = name in lifted.stretched, name not in used and name not in gaps
            constant, gap = program.constants.get(full), gaps.get(name)
            weights.append(Weight(owner, leaf, gap, constant, stretched, handed_on, full, captured[name]))
        return Plan(program, lifted, weights, form.gap_dtype)

    def with_gaps(self, others: Mapping[Gaps, Gaps]) -> Plan:
        """Return the same plan around weights, and with scouts, whose gaps are others."""
        weights = [replace(w, gaps=others.get(w.gaps, w.gaps)) if w.gaps is not None else w for w in self.weights]
        return replace(self.with_scouts(lambda scout: scout.with_gaps(others)), weights=weights)

    def with_scouts(self, change: Callable[[Any], nn.Module]) -> Plan:
        """Return the same plan with other modules in the place of its scouts."""
        scouts = {name: change(scout) for name, scout in self.lifted.run.named_children()}
        lifted = replace(self.lifted, run=fx.GraphModule(scouts, self.lifted.run.graph)) if scouts else self.lifted
        return Plan(self.program, lifted, self.weights, self.gap_dtype)

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
        with self.making:
            if self.at_once is None:
                gaps = {name: w.gaps for name, w in zip(self.lifted.weights, self.weights, strict=True) if w.gaps}
                self.at_once = whole(self.lifted, gaps, self.gap_dtype)
            return self.at_once

    def current(self, *, static: bool = False) -> Prepared:
        """Return what the forward pass needs of the weights as they are now, made anew only where one has changed.

        Args:
            static: Whether a compiled forward pass reads them, which may then rely on where they lie.
        """
        if self.training:
            return Prepared(self._prepare(), static=False, made_of=None, has_points=False)
        found = self.prepared
        if found is not None and found.holds(self.weights, static=static):
            return found
        with self.making:
            found = self.prepared
            if found is None or not found.holds(self.weights, static=static):
                found = self._prepare_to_keep(static)
                self.prepared = found if found.made_of is not None else None
            return found

    def _prepare_to_keep(self, static: bool) -> Prepared:
        made_of = _kept(self.weights)  # first: what changes meanwhile is then seen to have changed
        with torch.inference_mode(False), torch.no_grad():  # lest later gradients meet what is kept
            values = self._prepare()
            values = tuple(for_compiler(value) for value in values) if static else values
        for tensor in _tensors(values) if static else ():
            keep_in_place(tensor)
        return Prepared(values, static, made_of, self.lifted.makes_points)

    def _prepare(self) -> tuple[Any, ...]:
        around = (weight.around(weight.read().detach(), self.gap_dtype) for weight in self.weights)
        values: tuple[Any, ...] = self.lifted.prepare(*around)
        return values


def _sources(weights: list[Weight]) -> tuple[list[Tensor], list[Tensor]]:
    """Return all that the first graph makes something new of, and what it hands on to the second as it is."""
    own = [weight.read() for weight in weights if not weight.handed_on]
    own += [part for weight in weights if weight.gaps is not None for part in weight.gaps.parts]
    return own, [weight.read() for weight in weights if weight.handed_on]


def _kept(weights: list[Weight]) -> Kept | None:
    try:
        return Kept(*_sources(weights))
    except RuntimeError:  # some have no memory of their own, as in torch.func
        return None


def _endless_where(changed: Tensor, x: Any, has_points: bool) -> Any:
    if not isinstance(x, Interval):
        return x
    if x.dtype.is_complex:
        return _endless_where(changed, x.map(torch.view_as_real), has_points).map(torch.view_as_complex)
    changed = changed.to(x.device, non_blocking=True)
    point = torch.where(changed, torch.nan, x.point) if has_points else x.point
    return Interval(point, *(torch.where(changed, torch.inf, gap) for gap in (x.below, x.above)))


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
