"""IntervalNetwork: the underlying model and the gaps around its weights."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from intervalnn.capture import Call, Program, capture, refuse_training
from intervalnn.interval import Interval
from intervalnn.lift import Form, Lifted, lift
from intervalnn.prediction import Prediction
from intervalnn.table import lookup

__all__ = ["IntervalNetwork"]

Layers = str | int | Iterable[str] | Callable[[str, nn.Module], bool]


class Gaps(nn.Module):
    """The two gaps around one parameter of the underlying model."""

    def __init__(self, around: Tensor) -> None:
        super().__init__()
        self.below = nn.Parameter(torch.zeros_like(around, memory_format=torch.preserve_format))
        self.above = nn.Parameter(torch.zeros_like(around, memory_format=torch.preserve_format))

    def interval(self, point: Tensor, dtype: torch.dtype | None) -> Interval:
        """Return the interval around ``point``; a negative gap counts as none."""
        below, above = (_NonNegative.apply(gap).to(dtype or point.dtype) for gap in (self.below, self.above))  # type: ignore[no-untyped-call]
        return Interval(point, below, above)


class _NonNegative(torch.autograd.Function):
    """Cut at zero, but let a gap that an optimiser has pushed below zero come back.

    The gradient of a plain cut is zero there, and the gap would never move again.
    """

    @staticmethod
    def forward(ctx: Any, gap: Tensor) -> Tensor:
        ctx.save_for_backward(gap)
        return gap.clamp(min=0.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (gap,) = ctx.saved_tensors
        return torch.where((gap >= 0) | (grad < 0), grad, torch.zeros_like(grad))


class IntervalNetwork(nn.Module):
    """A trained model whose weights have become intervals around their values.

    The model is only read, never edited: its program is captured at the first call, and its
    parameters and buffers are read anew at each. ``net.parameters()`` are the gaps and nothing
    else, so any optimiser and any training loop will do; they start at zero.

    Args:
        model: Any trained module, in eval mode.
        layers: Which layers get intervals: ``"all"`` for every parameter; a number for the
            last so many weight layers (linear, convolution, embedding) in the order in which
            they first run; names of modules or parameters; or a predicate, called with the
            name and the module of each layer.
        exact: Take the exact form of the linear rules: bounds tighter by gap times width,
            for half as many products again. See :mod:`intervalnn.rules.bilinear`.
        gap_dtype: Data type in which gaps are propagated; by default the model's own.
            ``torch.bfloat16`` is the fast choice on tensor cores; the point keeps its dtype.

    Example:
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
        >>> net = IntervalNetwork(model, layers=["2"])
        >>> net.set_gaps("2.bias", below=0.1, above=0.2)
        >>> net(torch.ones(1, 3)).width
        tensor([[0.3000, 0.3000]], grad_fn=<AddBackward0>)
    """

    def __init__(
        self, model: nn.Module, layers: Layers = "all", *, exact: bool = False, gap_dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
        if gap_dtype is not None and not gap_dtype.is_floating_point:
            raise TypeError(f"gap_dtype must be a floating-point dtype, got {gap_dtype}")
        self._model = (model,)  # in a tuple, so that it is no submodule and its parameters are not ours
        self.layers = layers
        self.form = Form(exact, gap_dtype)
        self.gaps = nn.Module()
        self._names: list[str] | None = None
        self._programs: dict[Any, list[Program]] = {}
        self._lifted: dict[Any, Lifted] = {}
        self._prepared: dict[int, tuple[Any, Any]] = {}
        self._run: Callable[[Lifted], Callable[..., Any]] = _plain_run
        self._own = _tied(model)
        _refuse_not_finite(model)
        if not isinstance(layers, int) or isinstance(layers, bool):
            self._choose(_chosen(model, layers))

    @property
    def model(self) -> nn.Module:
        """The underlying model."""
        return self._model[0]

    # --- the gaps ---

    def _choose(self, names: Iterable[str]) -> None:
        """Give gaps to the parameters in ``names``."""
        self._names = sorted({self._own[name] for name in names}, key=list(self._own).index)
        for name in self._names:
            parent = self.gaps
            *path, last = name.split(".")
            for step in path:
                if not hasattr(parent, step):
                    parent.add_module(step, nn.Module())
                parent = getattr(parent, step)
            parent.add_module(last, Gaps(self.model.get_parameter(name)))

    def _gaps_of(self, name: str) -> Gaps:
        gaps = self.gaps.get_submodule(self._own[name])
        assert isinstance(gaps, Gaps)
        return gaps

    @property
    def names(self) -> list[str]:
        """Names of the parameters of the underlying model that have gaps."""
        if self._names is None:
            raise RuntimeError(
                f"layers={self.layers!r} means the last ones in the order in which they run, which is not known "
                "before the first call; call net(x) once, or give the layers by name"
            )
        return self._names

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Return an iterator over the gaps, by name."""
        _ = self.names
        return super().named_parameters(*args, **kwargs)

    def weight_intervals(self) -> dict[str, Interval]:
        """Return the interval of every parameter of the underlying model, without gaps where it is a point."""
        chosen, result = set(self.names), {}
        for name, own in self._own.items():
            point = self.model.get_parameter(name).detach()
            has_gaps = own in chosen
            result[name] = self._gaps_of(own).interval(point, None) if has_gaps else Interval.of(point)
        return result

    @torch.no_grad()
    def set_gaps(self, name: str, below: Tensor | float, above: Tensor | float) -> None:
        """Set the gaps of one parameter of the underlying model.

        Args:
            name: The parameter's name in the underlying model.
            below: How far its interval reaches below each entry, ``>= 0``; a number for all.
            above: How far it reaches above.
        """
        if name not in self._own:
            raise KeyError(f"the model has no parameter '{name}'{_did_you_mean(name, self._own)}")
        if self._own[name] not in self.names:
            raise ValueError(
                f"'{name}' is a point: it is not among the interval layers ({', '.join(self.names) or 'none'}); "
                "choose it with the argument layers"
            )
        gaps = self._gaps_of(name)
        for gap, value in ((gaps.below, below), (gaps.above, above)):
            new = torch.as_tensor(value, dtype=gap.dtype, device=gap.device)
            if new.dim() > 0 and new.shape != gap.shape:
                raise ValueError(
                    f"gaps of '{name}' must have shape {tuple(gap.shape)}, or be a number, got {tuple(new.shape)}"
                )
            if not bool((new >= 0).all()) or not bool(new.isfinite().all()):
                raise ValueError(
                    f"gaps of '{name}' must be finite and not negative, got {float(new.min())} at the least"
                )
            gap.copy_(new.expand(gap.shape))

    # --- the forward pass ---

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the bounds of what the underlying model returns for these arguments.

        Takes what the model takes, where any tensor may be an interval, and returns what the
        model returns, with an interval for each tensor. Integers stay as they are.
        """
        call = Call.of(args, kwargs)
        program, lifted = self._lookup(call)
        if not torch.compiler.is_compiling():
            refuse_training(self.model)
        prepared = self._weights(program, lifted)
        inputs = (_with_gap_dtype(t, self.form.gap_dtype) for t in call.tensors)
        outputs = self._run(lifted)(*prepared, *inputs)
        return pytree.tree_unflatten(outputs, program.out_spec)

    def predict(self, *args: Any, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Return point, bounds, score and direction, without gradients.

        Args:
            args: What the model takes.
            batch_size: How many samples to take at a time, if not all at once; every tensor
                among the arguments is then cut along its first dimension.
            kwargs: What the model takes by name.

        Returns:
            A :class:`Prediction`, or the model's own structure of them.
        """
        with torch.no_grad():
            if batch_size is None:
                bounds = self(*args, **kwargs)
            else:
                bounds = _joined([self(*a, **k) for a, k in _batches(Call.of(args, kwargs), batch_size)])
        return pytree.tree_map(
            lambda x: Prediction.of(x) if isinstance(x, Interval) else x,
            bounds,
            is_leaf=lambda x: isinstance(x, Interval),
        )

    def compile(self, **options: Any) -> None:
        """Compile the interval forward with ``torch.compile(**options)``; splitting the weights stays outside."""
        compiled: dict[int, Callable[..., Any]] = {}

        def run(lifted: Lifted) -> Callable[..., Any]:
            if id(lifted) not in compiled:
                compiled[id(lifted)] = torch.compile(lifted.run, **options)
            return compiled[id(lifted)]

        self._run = run

    def _lookup(self, call: Call) -> tuple[Program, Lifted]:
        """Return the program for a call, captured if need be, and its form over intervals."""
        tensors = call.tensors
        programs = self._programs.setdefault(call.key, [])
        index = next((i for i, known in enumerate(programs) if known.fits(tensors)), None)
        if index is None:
            index = self._capture(call, programs)
        key = (call.key, index, tuple(self.names))
        if key not in self._lifted:
            self._lifted[key] = self._lift(programs[index], tensors)
        return programs[index], self._lifted[key]

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _capture(self, call: Call, programs: list[Program]) -> int:
        if not call.tensors:
            raise ValueError("the call has no tensor among its arguments, so there is nothing to bound")
        program = capture(self.model, call)
        if self._names is None:
            assert isinstance(self.layers, int)
            self._choose(_last(self.layers, program, self._own))
        programs.append(program)
        return len(programs) - 1

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _lift(self, program: Program, tensors: list[Tensor | Interval]) -> Lifted:
        chosen = set(self.names)
        intervals = {
            name
            for name, source in program.sources.items()
            if (source.kind == "parameter" and self._own[source.name] in chosen)
            or (source.kind == "input" and isinstance(tensors[source.index], Interval))
        }
        return lift(program, intervals, self.form)

    def _weights(self, program: Program, lifted: Lifted) -> Any:
        """Return what the forward pass needs of the weights, from the cache where none has changed."""
        chosen = set(self.names)
        values: list[Any] = []
        parts: list[Tensor] = []
        for name in lifted.weights:
            source = program.sources[name]
            point = _read(self.model, source.name, program.constants).detach()
            parts.append(point)
            if source.kind == "parameter" and self._own[source.name] in chosen:
                gaps = self._gaps_of(source.name)
                parts += [gaps.below, gaps.above]
                values.append(gaps.interval(point, self.form.gap_dtype))
            else:
                values.append(point)
        training = torch.is_grad_enabled() and any(part.requires_grad for part in parts)
        if training or torch.compiler.is_compiling():
            return lifted.prepare(*values)
        return self._cached(lifted, values, parts)

    def _cached(self, lifted: Lifted, values: list[Any], parts: list[Tensor]) -> Any:
        state = tuple((part.data_ptr(), part._version) for part in parts if not part.is_inference())
        known = self._prepared.get(id(lifted))
        if known is None or known[0] != state:
            self._prepared[id(lifted)] = known = (state, lifted.prepare(*values))
        return known[1]

    def refresh(self) -> None:
        """Forget what was captured and prepared: for changes to the model that torch does not count.

        Parameters, buffers and gaps may change freely. Call this after changing the model's
        Python side (an attribute that its forward reads), or numbers behind ``.data``.
        """
        self._programs.clear()
        self._lifted.clear()
        self._prepared.clear()

    # --- torch's own bookkeeping ---

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> IntervalNetwork:
        """Move the underlying model along, as a module that holds another does; never convert it."""
        probe = fn(torch.zeros(1, dtype=torch.float32))
        if probe.dtype != torch.float32:
            raise TypeError(
                f"an interval network follows the dtype of its model; call model.to({probe.dtype}) and wrap it anew, "
                "or set gap_dtype for the gaps alone"
            )
        self.model._apply(fn, recurse)
        self._prepared.clear()
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what a call makes anew."""
        state = self.__dict__.copy()
        state.update(_programs={}, _lifted={}, _prepared={}, _run=_plain_run)
        return state

    def extra_repr(self) -> str:
        """Return the one line that printing the network adds."""
        return f"{type(self.model).__name__}, layers={self.layers!r}"


def _plain_run(lifted: Lifted) -> Callable[..., Any]:
    return lifted.run


def _tied(model: nn.Module) -> dict[str, str]:
    """Return for each parameter its name, or the first name of the one it is tied to."""
    first: dict[int, str] = {}
    return {
        name: first.setdefault(id(parameter), name)
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if parameter.is_floating_point()
    }


def _refuse_not_finite(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if parameter.device.type != "meta" and not bool(parameter.detach().isfinite().all()):
            raise ValueError(f"parameter '{name}' has entries that are NaN or infinite; no interval is around them")


def _read(model: nn.Module, name: str, constants: Mapping[str, Tensor]) -> Tensor:
    """Return a parameter, a buffer or another tensor of the model as it is now."""
    value: Any = model
    for step in name.split("."):
        value = getattr(value, step, None)
    if isinstance(value, Tensor):
        return value
    return constants[name]


def _with_gap_dtype(x: Tensor | Interval, dtype: torch.dtype | None) -> Tensor | Interval:
    if dtype is None or not isinstance(x, Interval):
        return x
    return Interval(x.point, x.below.to(dtype), x.above.to(dtype))


# --- which layers ---


def _layer(name: str) -> str:
    """Return the name of the layer that a parameter belongs to."""
    return name.rpartition(".")[0].partition("parametrizations")[0].rstrip(".")


def _chosen(model: nn.Module, layers: Layers) -> list[str]:
    """Return the parameters that ``layers``, anything but a number, stands for."""
    names = list(_tied(model))
    if isinstance(layers, str):
        if layers != "all":
            raise ValueError(
                f"layers must be 'all', a number, names or a predicate, got {layers!r}; for one name: [{layers!r}]"
            )
        return names
    if callable(layers):
        return [name for name in names if layers(_layer(name), model.get_submodule(_layer(name)))]
    if isinstance(layers, int):
        raise TypeError(f"layers must be 'all', a number, names or a predicate, got {layers!r}")
    chosen: list[str] = []
    for wanted in layers:
        found = [name for name in names if name == wanted or name.startswith(wanted + ".")]
        if not found:
            raise ValueError(f"the model has no layer or parameter '{wanted}'{_did_you_mean(wanted, _known(names))}")
        chosen += found
    return chosen


def _known(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(part for name in names for part in (_layer(name), name) if part))


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(name, known, n=3) or known[:8]
    return f"; did you mean {' or '.join(repr(c) for c in close)}?" if close else "; it has no parameters at all"


def _last(count: int, program: Program, own: Mapping[str, str]) -> list[str]:
    """Return the parameters of the last ``count`` weight layers, by when they first run."""
    order = list(dict.fromkeys(_layer(name) for name in _weights_in_order(program)))
    if not 0 < count <= len(order):
        raise ValueError(f"layers must be between 1 and {len(order)}, the number of weight layers, got {count}")
    last = set(order[-count:])
    return [name for name in own if _layer(name) in last]


def _weights_in_order(program: Program) -> Iterator[str]:
    """Yield the parameters that products and look-ups multiply or index, in the order in which they run."""
    from_weights: dict[Any, list[str]] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            source = program.sources[node.name]
            if source.kind != "input":
                from_weights[node] = [source.name] if source.kind == "parameter" else []
        elif node.op == "call_function":
            parents = node.all_input_nodes
            if parents and all(p in from_weights for p in parents):
                from_weights[node] = [name for p in parents for name in from_weights[p]]
                continue
            entry = lookup(node.target)
            if (entry is not None and entry.prepare is not None) or "embedding" in str(node.target):
                yield from (name for p in parents for name in from_weights.get(p, []))


# --- batches ---


def _batches(call: Call, size: int) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    if size < 1:
        raise ValueError(f"batch_size must be at least 1, got {size}")
    total = len(call.tensors[0])
    if any(len(t) != total for t in call.tensors):
        raise ValueError(
            f"with batch_size, all tensors must have one first dimension, got {[len(t) for t in call.tensors]}"
        )
    for start in range(0, total, size):
        yield call.rebuild([t[start : start + size] for t in call.tensors])


def _joined(parts: list[Any]) -> Any:
    """Join the outputs of several batches along their first dimension."""

    def is_leaf(x: Any) -> bool:
        return isinstance(x, Interval)

    flat = [pytree.tree_flatten(part, is_leaf=is_leaf) for part in parts]
    spec = flat[0][1]
    joined = [_cat(column) for column in zip(*(leaves for leaves, _ in flat), strict=True)]
    return pytree.tree_unflatten(joined, spec)


def _cat(column: tuple[Any, ...]) -> Any:
    if isinstance(column[0], Interval):
        return Interval(*(torch.cat(part) for part in zip(*((x.point, x.below, x.above) for x in column), strict=True)))
    return torch.cat(column) if isinstance(column[0], Tensor) else column[0]
