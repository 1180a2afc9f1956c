"""Faithful: whether a captured program returns what the model itself returns."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from intervalnn.interval import Interval
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.failures import refuse_call
from intervalnn.network.capture.parts import Structure, is_plain
from intervalnn.network.capture.program import Program, laid_out
from intervalnn.network.capture.twin import Twin

__all__ = ["Witness", "own_random_numbers"]

_TWO_PATHS = (
    "has no one output to bound: without gradients, torch.nn.TransformerEncoder puts zeros where there is padding, and "
    "with gradients other values. Build it with enable_nested_tensor=False, or call "
    "torch.backends.mha.set_fastpath_enabled(False)"
)
_REPEATS = 8  # calls of a model that draws random numbers, beside those with the least and the largest numbers


class Witness:
    """What a model itself returns, to compare a captured program with.

    ``torch.export`` records one call. State that the model keeps between calls, and random numbers that it draws in
    Python, become constants of the program. So the model runs on the given input and on a second input before the
    capture, and again on the given input afterwards. Running first also fills caches that would take in fake tensors.

    Args:
        model: The model. A twin of it runs, with tensors of its own, so that the model itself is left as it is.
        call: The call that is captured.
    """

    def __init__(self, model: nn.Module, call: Call) -> None:
        self.model, self.call = model, call
        points = [t.point if isinstance(t, Interval) else t for t in call.tensors]
        self.wanted, given = [x.requires_grad for x in points], [x.detach() for x in points]
        self.twin = Twin(model, with_tensors=True)
        self.before = _attributes(self.twin.module)
        tensors = (*given, *self.twin.module.parameters(), *self.twin.module.buffers())
        self.is_blind = any(tensor.is_meta for tensor in tensors)  # there are no numbers to compare
        if self.is_blind:
            return
        self.inputs = [given, [laid_out(_other(x), x) if x.numel() else x for x in given]]
        global_draws, own_draws = _global_draws(), self._own_draws()
        self.outputs = [self._run(tensors) for tensors in self.inputs]
        self.draws, self.draws_itself = _global_draws() != global_draws, self._own_draws() != own_draws

    def refuse_other(self, program: Program) -> None:
        """Raise if a program is not the model's own: rounding aside, where torch has taken an operation apart."""
        if self.is_blind:
            return
        if self.outputs[0] is None:
            refuse_call(self.model, self.call)
        self._keep_what_was_read(program)
        weights = _weights(self.twin.module, self.model, program)
        found = [_parts(_replay(program, weights, tensors), program.returned) for tensors in self.inputs]
        for place, own in enumerate(self.outputs):
            self._refuse(own, found[place], place)
        for around in self._surroundings():
            with around():
                self._refuse(self._run(self.inputs[0]), found[0], 0)
        if self.draws_itself:
            raise ValueError(self._told("may return something else in each call"))

    def _keep_what_was_read(self, program: Program) -> None:
        """Leave those inputs in the second call as they are whose values the program holds for alone."""
        places = {origin.index for origin in program.read if origin.kind == "input"}
        if places:
            given, other = self.inputs
            self.inputs[1] = [given[place] if place in places else x for place, x in enumerate(other)]
            self.outputs[1] = self._run(self.inputs[1])

    def _surroundings(self) -> Iterator[Callable[[], contextlib.AbstractContextManager[Any]]]:
        """Yield the surroundings in which the model runs on the given input once more."""
        yield contextlib.nullcontext
        if self.draws:  # what it draws may matter in one call of a hundred, or not at all
            yield from (_least_numbers, _largest_numbers, *[contextlib.nullcontext] * _REPEATS)

    def _run(self, tensors: Sequence[Tensor], *, gradients: bool = False) -> list[Any] | None:
        """Return what the model returns, or None if it takes no such input; it may write to copies of its inputs."""
        given = zip(tensors, self.wanted, self.inputs[0], strict=True)
        args, kwargs = self.call.rebuild([laid_out(x, own).requires_grad_(wanted) for x, wanted, own in given])
        try:
            with torch.set_grad_enabled(gradients):
                return _parts(*Structure.of(self.twin.module(*args, **kwargs)))
        except Exception:
            return None

    def _own_draws(self) -> list[str]:
        """Return the states of the random generators that the model holds."""
        return [_state(generator) for generator in self.twin.generators]

    def _refuse(self, own: list[Any] | None, found: list[Any], place: int) -> None:
        """Raise if two outputs differ; the model may refuse the second input, which nobody gave, and a second call."""
        off = "" if own is None else _difference(own, found)
        if off and self._is_without_fast_path(found, place):
            raise ValueError(f"{type(self.model).__name__} {_TWO_PATHS}")
        if off:
            raise ValueError(self._told(f"for {('the', 'a second')[place]} input its captured program returns {off}"))

    def _is_without_fast_path(self, found: list[Any], place: int) -> bool:
        """Say whether the program is what an encoder of torch computes where gradients count."""
        if not any(isinstance(module, nn.TransformerEncoder) for module in self.model.modules()):
            return False
        own = self._run(self.inputs[place], gradients=True)
        return own is not None and not _difference(own, found)

    def _told(self, what: str) -> str:
        changed = [*_changed(self.twin.module, self.before), *_written(self.twin.module, self.model)]
        names = ", ".join(f"'{name}'" for name in changed)
        why = (
            f"its forward changes {names}, which it may read in the next call"
            if changed
            else "it draws random numbers"
            if self.draws or self.draws_itself
            else "it may keep something from one call to the next, or read a clock or random numbers"
        )
        return (
            f"{type(self.model).__name__} has no one output to bound: {what}; {why}. Pass what changes as an argument, "
            "return what is new, and draw random numbers outside of the model"
        )


def _other(x: Tensor) -> Tensor:
    """Return another input of the same kind, whose numbers are valid wherever the given ones are.

    The numbers are permuted and, unless they are indices or truth values, moved closer to zero. Indices on a GPU stay
    as they are, because an index out of range there ends the process.
    """
    if x.layout != torch.strided:
        return x
    if x.is_floating_point() or x.is_complex():
        other = 0.875 * x.flip(tuple(range(x.dim())))
        if not torch.equal(x, other) and bool(other.isfinite().any()):
            return other
        return torch.linspace(0, 1, x.numel(), device=x.device).reshape(x.shape).to(x.dtype)
    if x.dim() == 0 or x.device.type != "cpu":
        return x
    return x.flip(max(range(x.dim()), key=lambda dim: x.shape[dim]))  # rows of indices may be of several kinds


def _weights(own: nn.Module, model: nn.Module, program: Program) -> dict[str, Tensor]:
    """Return what the program reads of the model, by placeholder; its weights as they were when ``own`` was made."""
    known = program.constants | _registered(model) | _registered(own)
    return {name: known[s.name].detach() for name, s in program.sources.items() if s.name in known}


def _registered(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))


@torch.no_grad()
def _replay(program: Program, weights: dict[str, Tensor], tensors: Sequence[Tensor]) -> Any:
    """Return what the program returns for its points."""
    sources = program.sources.items()
    values = [program.taking(tensors[s.index]) if s.kind == "input" else weights.get(name) for name, s in sources]
    return fx.Interpreter(fx.GraphModule({}, program.graph)).run(*values)


def _parts(leaves: Sequence[Any], structure: Structure) -> list[Any]:
    """Return all that makes an output: what stands in it, and how."""
    return [leaf for leaf in leaves if leaf is not None] + [structure]


def _difference(own: list[Any], found: list[Any]) -> str:
    """Say by how much two outputs differ, beyond rounding; nothing if they do not."""
    for a, b in zip(own, found, strict=False):
        if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
            if a != b and repr(a) != repr(b):
                return f"another {'structure' if isinstance(a, Structure) else type(a).__name__} around its tensors"
            continue
        if a.shape != b.shape:
            return f"the shape {tuple(b.shape)} instead of {tuple(a.shape)}"
        if not (a.is_floating_point() or a.is_complex()):
            if not torch.equal(a, b):
                return f"other values of {a.dtype}"
            continue
        size = a[a.isfinite()].abs().max().item() if a.isfinite().any() else 0.0
        rounding = torch.finfo(a.dtype).eps ** 0.5 * size
        if not torch.allclose(a, b.to(a.dtype), rtol=0.0, atol=rounding, equal_nan=True):
            off = (a - b)[a.isfinite() & b.isfinite()].abs()
            return f"values that are off by up to {off.max().item() if off.numel() else torch.inf:.3g}, of {size:.3g}"
    return ""


# --- random numbers in Python; those of torch's own operations stand in the program, and are refused there ---


def _numpy_random() -> Any:
    numpy: Any = sys.modules.get("numpy")
    return None if numpy is None else numpy.random


def _global_draws() -> list[Any]:
    """Return the states of the random numbers that all share."""
    numpy = _numpy_random()
    return [random.getstate(), None if numpy is None else repr(numpy.get_state(legacy=False))]


def _state(generator: Any) -> str:
    """Return the state of a random generator, as text."""
    if isinstance(generator, random.Random):
        return repr(generator.getstate())
    if isinstance(generator, torch.Generator):
        return repr(generator.get_state().tolist())
    return repr(generator.get_state(legacy=False) if hasattr(generator, "get_state") else generator.bit_generator.state)


@contextlib.contextmanager
def own_random_numbers() -> Iterator[None]:
    """Put the random numbers of Python, NumPy and torch back at the end, as if none had been drawn."""
    numpy = _numpy_random()
    state, numpy_state = random.getstate(), None if numpy is None else numpy.get_state()
    try:
        with torch.random.fork_rng(devices=()):
            yield
    finally:
        random.setstate(state)
        if numpy is not None:
            numpy.set_state(numpy_state)


_EXTREME = 400  # of the 624 words of a state of the Mersenne Twister, whose next numbers these are, stirred


def _unstirred(number: int) -> int:
    """Return the word of a state of the Mersenne Twister that becomes ``number``."""
    number ^= number >> 18
    number ^= (number << 15) & 0xEFC60000
    word = number
    for _ in range(5):
        word = number ^ ((word << 7) & 0x9D2C5680)
    first = word
    for _ in range(3):
        first = word ^ (first >> 11)
    return first & 0xFFFFFFFF


@contextlib.contextmanager
def _drawing(number: int) -> Iterator[None]:
    """Let the next random numbers of Python and NumPy be made of ``number``, 32 bits each, for a while."""
    with own_random_numbers():
        rest = random.getstate()[1][_EXTREME:-1]  # as some code draws until a number suits
        words = [*[_unstirred(number)] * _EXTREME, *rest]
        random.setstate((3, (*words, 0), None))
        if (numpy := _numpy_random()) is not None:
            numpy.set_state(("MT19937", words, 0))
        yield


def _least_numbers() -> contextlib.AbstractContextManager[None]:
    return _drawing(0)


def _largest_numbers() -> contextlib.AbstractContextManager[None]:
    return _drawing(0xFFFFFFFF)


# --- what a module holds besides parameters and other modules ---


def _attributes(model: nn.Module) -> dict[str, tuple[Any, int]]:
    """Return what the modules hold besides parameters and other modules, and how long it is."""
    held = ((name, vars(module) | dict(module.named_buffers(recurse=False))) for name, module in model.named_modules())
    return {
        f"{name}.{key}".lstrip("."): (value, len(value) if isinstance(value, list | dict | set) else 0)
        for name, items in held
        for key, value in items.items()
        if key not in _BOOKKEEPING
    }


def _written(own: nn.Module, model: nn.Module) -> list[str]:
    """Return the names of parameters that are others than the model's."""
    before = dict(model.named_parameters())
    return [name for name, p in own.named_parameters() if name in before and not torch.equal(p, before[name])]


_BOOKKEEPING = set(vars(nn.Module()))


def _changed(model: nn.Module, before: dict[str, tuple[Any, int]]) -> list[str]:
    """Return the names of attributes that are others than before."""
    missing = object(), 0
    return [name for name, now in _attributes(model).items() if not _same(before.get(name, missing), now)]


def _same(a: tuple[Any, int], b: tuple[Any, int]) -> bool:
    equal = a[0] is b[0] or (type(a[0]) is type(b[0]) and is_plain(a[0]) and a[0] == b[0])
    return equal and a[1] == b[1]
