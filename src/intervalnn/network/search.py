"""Search: the program for a call, among those known, or a new one, captured and lifted."""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from intervalnn.interval import Interval
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.capture import capture
from intervalnn.network.capture.capture_errors import UnexplainedError
from intervalnn.network.capture.failures import refuse_call
from intervalnn.network.capture.faithful import Witness, own_random_numbers
from intervalnn.network.capture.given import autocast_dtypes, refuse_elsewhere, refuse_no_tensor
from intervalnn.network.capture.program import Program
from intervalnn.network.capture.side_effects import refuse_training
from intervalnn.network.capture.turns import TURNS
from intervalnn.network.capture.undisturbed import undisturbed
from intervalnn.network.interval_weights import gaps_in, refuse_changed
from intervalnn.network.plan import Plan
from intervalnn.network.programs import Programs
from intervalnn.network.scouts.scouted import ScoutedWeights, choose_all_by, scouts_of
from intervalnn.network.scouts.scouting import placed
from intervalnn.table import MissingRuleError
from intervalnn.torch_private import hooks_of, names_held, own_parameters

__all__ = ["Search", "planned"]

STATES = 3  # of a model, beside the one that it is in, of which programs are kept
PLAIN = frozenset({
    int, bool, str, bytes, type(None), type, torch.dtype, torch.device, types.FunctionType, types.BuiltinFunctionType,
})  # fmt: skip
SPELLED = (float, complex, range, slice, np.generic)  # told apart by what they print: -0.0 is no 0.0, NaN is NaN
CONTAINERS = (list, tuple, dict, set, frozenset)
LONGEST, DEEPEST = 1000, 8  # of containers that are looked into
BOOKKEEPING = set(vars(nn.Module()))
Seen = tuple[nn.Module, Any, list[Any]]  # a module, its mode, and its plain attributes


class Search:
    """Finds the programs for the calls of a network, and remembers them as long as the model stays as it is."""

    def __init__(self) -> None:
        self.programs = Programs()  # another one, rather than an empty one, where those known are out of date
        self._seen: list[Seen] = []  # all modules of the model, as they were
        self._others: list[tuple[list[Seen], Programs]] = []  # of a model that was otherwise, the latest first
        self._held: list[int] = []  # parameters, by which a tie would show
        self._lock = threading.Lock()

    def plan(self, weights: ScoutedWeights, call: Call) -> Plan:
        """Return the program for a call, captured if need be, in its form over intervals."""
        modules = list(weights.model.modules())
        seen = [(module, _mode_of(module), _attributes_of(module)) for module in modules]
        if any(mode is not False for _, mode, _ in seen):
            refuse_training(weights.model)
        refuse_elsewhere(call, weights.model, weights.gaps)
        held = [id(parameter) for module in modules for parameter in own_parameters(module).values()]
        programs = self._known(weights, seen, held)
        key = (call.key, weights.form, *autocast_dtypes(call))
        return programs.find(key, call.tensors, weights.model) or _found_or_made(programs, key, weights, call)

    def _known(self, weights: ScoutedWeights, seen: list[Seen], held: list[int]) -> Programs:
        """Return what is known of the model as it is now: of its parts, their modes and their plain attributes.

        A forward may set such an attribute, the size of its input say, so a few states are remembered.
        """
        with self._lock:
            if seen != self._seen:
                self._others = [(self._seen, self.programs), *self._others][:STATES]
                known = [programs for other, programs in self._others if other == seen]
                self.programs, self._seen = known[0] if known else Programs(), seen
            if held != self._held:
                refuse_changed(weights)
            self._held = held
            return self.programs


def _attributes_of(module: nn.Module) -> list[Any]:
    """Return the class of a module, and its attributes as far as they are plain values, functions, or hold such."""
    own = module.__dict__  # looked at in every call of a network, so fast
    names = _beside_bookkeeping(tuple(own))
    values = [own[name] for name in names]
    plain = [x if type(x) in PLAIN else _inside(x) for x in values]
    return [type(module), names, names_held(module), *map(type, values), *plain]


@functools.lru_cache(maxsize=4096)
def _beside_bookkeeping(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in BOOKKEEPING)


def _inside(value: Any, depth: int = 0) -> Any:
    """Return what a container holds, to be compared: plain values as they are, and other objects by identity."""
    if isinstance(value, SPELLED):
        return repr(value)
    if not isinstance(value, CONTAINERS) or depth == DEEPEST or len(value) > LONGEST:
        return _Itself(value)
    if isinstance(value, dict):
        return [type(value), _inside([*value], depth), _inside([*value.values()], depth)]
    items = [item if type(item) in PLAIN else _inside(item, depth + 1) for item in value]
    return [type(value), *map(type, value), *items]


@dataclass(frozen=True, slots=True, eq=False)
class _Itself:
    """An object that is equal to itself alone."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _mode_of(module: nn.Module) -> Any:
    """Return in what mode a module is: whether in training, and which hooks it has, or a forward of its own."""
    hooks = hooks_of(module)
    if hooks or "forward" in module.__dict__:
        return module.training, *hooks, module.__dict__.get("forward")
    return module.training


def _found_or_made(programs: Programs, key: Hashable, weights: ScoutedWeights, call: Call) -> Plan:
    """Find or make the program for a call; one thread at a time, so that each program is made once."""

    def find_or_make() -> Plan:
        with TURNS.alone(), own_random_numbers():
            plan = programs.find(key, call.tensors, weights.model)
            if plan is None:
                plan = _made(weights, call, [each.program for each in programs.like(key)])
                programs.add(plan, key)
            return plan

    return undisturbed(find_or_make)


def _made(weights: ScoutedWeights, call: Call, before: Sequence[Program]) -> Plan:
    witness = Witness(weights.model, call)  # which sees the model before torch does
    program = _captured(weights, call, before)
    intervals = {place for place, x in enumerate(call.tensors) if isinstance(x, Interval)}
    try:
        plan = planned(program, weights, intervals)
    except MissingRuleError:
        refuse_call(weights.model, call)
        raise
    witness.refuse_other(program)
    return plan


def _captured(weights: ScoutedWeights, call: Call, before: Sequence[Program]) -> Program:
    refuse_no_tensor(call)
    try:
        program = capture(weights.model, call, before)
    except UnexplainedError:
        refuse_call(weights.model, call)
        raise
    choose_all_by(weights, program)
    return program


def planned(program: Program, weights: ScoutedWeights, intervals: Collection[int] = ()) -> Plan:
    """Return a program in its form over intervals.

    Args:
        program: The program.
        weights: The model, and the gaps around its weights.
        intervals: Which of the inputs are intervals, by their place among the tensors of a call.
    """
    inputs = [name for name, source in program.sources.items() if source.index in intervals]
    scouts = placed(program, scouts_of(weights))
    return Plan.of(program, weights.model, gaps_in(weights, program), weights.form, inputs, scouts)
