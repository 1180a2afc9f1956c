"""IntervalNetwork: the underlying model and the gaps around its weights."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, fx, nn

from intervalnn.calibration.guarantee import Offsets, solve_offsets
from intervalnn.interval import Interval
from intervalnn.network.accepted import endless_unless_sound, gap_dtype_of, refuse_gaps, refuse_input, refuse_model
from intervalnn.network.call import Call
from intervalnn.network.capture import capture
from intervalnn.network.capture_errors import UnexplainedError
from intervalnn.network.explanation import Explanation
from intervalnn.network.failures import refuse_call, refuse_failure
from intervalnn.network.faithful import Witness, own_random_numbers
from intervalnn.network.gaps import Gaps, Kind
from intervalnn.network.layers import Layers, chosen, did_you_mean, last, tied
from intervalnn.network.lift import Form
from intervalnn.network.parts import Structure
from intervalnn.network.plan import Plan, Prepared, refuse_other
from intervalnn.network.program import Program
from intervalnn.network.programs import PROGRAMS, Programs, Recent
from intervalnn.network.recompute import Segments
from intervalnn.network.side_effects import refuse_training
from intervalnn.network.turns import TURNS
from intervalnn.network.undisturbed import undisturbed
from intervalnn.prediction import Prediction
from intervalnn.rules.products.gpu import one_pass, teach_compiler
from intervalnn.table import MissingRuleError
from intervalnn.torch_private import compiler_modes, hooks_of, in_transform, is_traced, own_parameters, pytree

__all__ = ["IntervalNetwork"]


_NOT_WHOLE = (
    "an IntervalNetwork finds its program in Python; call net.compile() instead, or torch.compile(net) without "
    "fullgraph=True, and write files with intervalnn.export"
)
Function = TypeVar("Function", bound=Callable[..., Any])


def _uncompiled(fn: Function) -> Function:
    """Keep torch's compiler out of a function.

    What torch has for that is taken only where a compiler is at work: while another thread captures a program, torch's
    own wrapper writes to a table that all threads share.
    """
    apart = torch.compiler.disable(fn, reason=_NOT_WHOLE)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (apart if torch.compiler.is_dynamo_compiling() else fn)(*args, **kwargs)

    return call  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class _Way:
    """How graphs are run.

    Attributes:
        run: From a graph to what runs it.
        compiled: Whether a compiler runs it, which in training takes what is made of the weights along.
        overwrites: Whether a call returns tensors that the next one writes into.
    """

    run: Callable[[fx.GraphModule], Callable[..., Any]] = lambda graph: graph
    compiled: bool = False
    overwrites: bool = False


# Networks that compute again what they do not keep, in this thread, and how.
_RECOMPUTING: ContextVar[tuple[tuple[nn.Module, _Way], ...]] = ContextVar("_RECOMPUTING", default=())


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
        kind: What has a gap of its own: every ``"weight"`` below and above (the paper), every weight, the same
            below and above (``"symmetric"``: three products instead of four), or every ``"input"`` channel (two:
            the fast choice), relative to its weights. Biases always have gaps of their own below and above.
        cap: The largest gap, as a multiple of the parameter's root mean square.
        exact: Take the exact form of the linear rules: bounds tighter by gap times width,
            for half as many products again behind a ReLU, three times as many elsewhere.
            See :mod:`intervalnn.rules.products`.
        gap_dtype: Data type in which gaps are propagated; by default the model's own, and float32 for a model in
            float16, in which small gaps would vanish. ``torch.bfloat16`` is the fast choice on tensor cores; the
            point keeps its dtype.

    Example:
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
        >>> net = IntervalNetwork(model, layers=["2"])
        >>> net.set_gaps("2.bias", below=0.1, above=0.2)
        >>> net(torch.ones(1, 3)).width
        tensor([[0.3000, 0.3000]], grad_fn=<AddBackward0>)
    """

    _seen: list[tuple[nn.Module, bool]]  # all modules of the model, and their modes
    _held: list[int]  # parameters, by which a tie would show
    _programs: Programs  # another one, rather than an empty one, where those known are out of date
    _way: _Way
    _lock: threading.Lock

    def __init__(
        self,
        model: nn.Module,
        layers: Layers = "all",
        *,
        kind: Kind = "weight",
        cap: float | None = None,
        exact: bool = False,
        gap_dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        refuse_model(model, IntervalNetwork)
        self._model = (model,)  # in a tuple, so that it is no submodule and its parameters are not ours
        self.layers = layers
        self.form = Form(exact, gap_dtype_of(model, gap_dtype))
        self.kind, self.cap = kind, cap
        self.gaps = nn.Module()
        # What predict does to the bounds, first the one, then the other; a call returns them as they are.
        self.offsets: Callable[[Prediction], Prediction] | None = None
        self.calibration: Callable[[Prediction], Prediction] | None = None
        self.training_settings: dict[str, Any] | None = None  # how it was trained, as plain values; saved along
        self._names: list[str] | None = None
        self._forget()
        self._own = tied(model)
        _refuse_not_finite(model)
        if not isinstance(layers, int) or isinstance(layers, bool):
            self._choose(chosen(model, layers))

    @property
    def model(self) -> nn.Module:
        """The underlying model."""
        return self._model[0]

    @property
    def device(self) -> torch.device:
        """Device of the underlying model."""
        return next(self.model.parameters()).device

    # --- the gaps ---

    def _choose(self, names: Iterable[str]) -> None:
        """Give gaps to the parameters in ``names``; other threads see all of them or none."""
        chosen = sorted({self._own[name] for name in names}, key=list(self._own).index)
        gaps = nn.Module()
        for name in chosen:
            parent = gaps
            *path, last = name.split(".")
            for step in path:
                if not hasattr(parent, step):
                    parent.add_module(step, nn.Module())
                parent = getattr(parent, step)
            parent.add_module(last, Gaps(self.model.get_parameter(name), self.kind, self.cap))
        self.gaps, self._names = gaps.train(self.training), chosen

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
        names, result = set(self.names), {}
        for name, own in self._own.items():
            point = self.model.get_parameter(name).detach()
            has_gaps = own in names
            result[name] = self._gaps_of(own).interval(point, self.form.gap_dtype) if has_gaps else Interval.of(point)
        return result

    @torch.no_grad()
    def set_gaps(self, name: str, below: Tensor | float, above: Tensor | float) -> None:
        """Set the gaps of one parameter of the underlying model.

        Args:
            name: The parameter's name in the underlying model.
            below: How far its interval reaches below each entry, ``>= 0``; a number for all.
            above: How far it reaches above; the same for ``kind="symmetric"``.
        """
        if name not in self._own:
            raise KeyError(f"the model has no parameter '{name}'{did_you_mean(name, self._own)}")
        if self._own[name] not in self.names:
            raise ValueError(
                f"'{name}' is a point: it is not among the interval layers ({', '.join(self.names) or 'none'}); "
                "choose it with the argument layers"
            )
        gaps = self._gaps_of(name)
        if gaps.by_input:
            raise ValueError(f"'{name}' has one gap per {self.kind}, relative to its weights; set net.gaps directly")
        given = [_as_gap(value, gaps.below, name) for value in (below, above)]
        if gaps.above is None and not bool((given[0] == given[1]).all()):
            raise ValueError(f"'{name}' has the same gaps below and above (kind='symmetric'), got two that differ")
        for gap, new in zip(gaps.sides, given, strict=False):  # the second of two equal ones is left over
            gap.copy_(new / gaps.scale if bool(gaps.scale > 0) else new)

    def project(self) -> None:
        """Cut negative gaps (Sec. 3), after a step of an optimiser.

        The network does so where it reads them, and lets them come back; but which of them is a matter
        of the whole batch's gradient, that no process sees while it computes its own.
        """
        for name in self.names:
            self._gaps_of(name).project()

    def sensitivities(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Return for each parameter with gaps how much wider the bounds get per unit of all its gaps.

        This is the mean width of the output that a tiny gap on both sides of every entry gives,
        over that gap, with all other gaps closed: one backward pass from zero gaps gives them all,
        since the derivative there has no cancellation.
        """
        call = Call.of(args, kwargs)
        plan, way = self._look_up(call)
        names = self.names  # a number of layers has names from the first call on
        own = {name: self._gaps_of(name) for name in names}
        closed = {name: Gaps(self.model.get_parameter(name), self.kind, self.cap) for name in names}
        plan = plan.with_gaps({own[name]: closed[name] for name in names})
        if way.compiled:  # for a single call no compiler pays
            way = _Way(Segments)
        with torch.inference_mode(False), torch.enable_grad(), TURNS.together():
            outputs = self._outputs(plan, [_recordable(x) for x in call.tensors], way)
            width = torch.stack([_real(x.width).double().mean() for x in outputs if _is_interval(x)]).mean()
            ends = [end for gap in closed.values() for end in gap.sides]
            slopes = torch.autograd.grad(width, ends, allow_unused=True) if width.requires_grad else [None] * len(ends)
        totals = iter([0.0 if slope is None else float(slope.double().sum()) for slope in slopes])
        return {name: sum(next(totals) for _ in gap.sides) for name, gap in closed.items()}

    def balance(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Scale what is trained of each parameter by one over its sensitivity, on a batch of inputs.

        A step of training then moves the output by the same amount whichever layer it is in;
        without it, gaps of early layers explode. The gaps themselves stay as they are.
        """
        found = self.sensitivities(*args, **kwargs)
        self.balance_by(found)
        return found

    def balance_by(self, sensitivities: Mapping[str, float]) -> None:
        """Do what :meth:`balance` does, with sensitivities that are known already."""
        most = max(sensitivities.values(), default=0.0)
        for name, own in sensitivities.items():
            # One that nothing depends on here may matter elsewhere: it goes as carefully as the most sensitive one.
            sensitivity, gaps = own or most, self._gaps_of(name)
            if sensitivity > 0:
                gaps.rescale(gaps.scale.new_tensor(1 / sensitivity))

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Return, layer by layer, sensitivity, gap and share in the width of the output, for some inputs."""
        sensitivities, intervals = self.sensitivities(*args, **kwargs), self.weight_intervals()
        gaps = {name: float(_real(intervals[name].width.detach()).mean()) / 2 for name in sensitivities}
        return Explanation.of({name: (sensitivity, gaps[name]) for name, sensitivity in sensitivities.items()})

    # --- the forward pass ---

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the bounds of what the underlying model returns for these arguments.

        Takes what the model takes, where any tensor may be an interval, and returns what the
        model returns, with an interval for each tensor. Integers stay as they are.
        """
        call = Call.of(args, kwargs)
        plan, way = self._look_up(call)
        try:
            if torch.compiler.is_dynamo_compiling():
                outputs = self._outputs(plan, call.tensors, way)
            else:
                with TURNS.together():
                    outputs = self._outputs(plan, call.tensors, way)
        except Exception as error:
            refuse_failure(error, self.model, plan, call, [_given(x, self.form.gap_dtype) for x in call.tensors])
            raise
        return plan.program.returned.rebuild(outputs)

    def _outputs(self, plan: Plan, tensors: list[Tensor | Interval], way: _Way) -> tuple[Any, ...]:
        inputs = [_given(x, self.form.gap_dtype) for x in tensors]
        if way.compiled and plan.training:  # what is made of the weights is made anew at each step
            outputs = way.run(plan.whole())(*plan.points, *inputs)
        else:
            prepared = self._prepared(plan, way)
            outputs = prepared.or_endless(way.run(plan.lifted.run)(*prepared.values, *inputs))
        if way.overwrites:
            outputs = pytree.tree_map_only(Tensor, Tensor.clone, outputs)
        return outputs  # type: ignore[no-any-return]

    @_uncompiled
    def _prepared(self, plan: Plan, way: _Way) -> Prepared:
        return plan.current(static=way.compiled)

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
        return Structure.map(self._prediction, bounds)

    def _prediction(self, bounds: Any) -> Any:
        if not isinstance(bounds, Interval):
            return bounds
        prediction = Prediction.of(bounds)
        for change in (self.offsets, self.calibration):
            prediction = prediction if change is None else change(prediction)
        return prediction

    def solve_offsets(self, loader: Iterable[Any], *, beta: float) -> Offsets:
        """Move the bounds of :meth:`predict` by the offsets that make the paper's coverage bound hold (App. A).

        See :func:`intervalnn.guarantee.solve_offsets`. A calibration is dropped, since it was
        made for other bounds.
        """
        offsets = solve_offsets(self, loader, beta=beta)
        self.offsets, self.calibration = offsets, None
        return offsets

    def compile(self, **options: Any) -> None:
        """Compile the interval forward with ``torch.compile(**options)``, and in training its backward.

        Splitting the weights stays outside, but for training, where it is done in every step. What lies between two
        products becomes one pass over memory. With ``mode="reduce-overhead"``, CUDA graphs save the calls of kernels,
        for which small inputs wait.
        """
        own = dict(options)
        fuse = own.get("backend", "inductor") == "inductor"
        chosen: dict[str, Any] = {}
        if fuse:  # torch takes either a mode or options
            teach_compiler()
            chosen = _mode(own.pop("mode", None) or "default") | (own.pop("options", None) or {})
        known: Recent[fx.GraphModule, Callable[..., Any]] = Recent(2 * PROGRAMS)  # of each one for training too

        def compiled(graph: fx.GraphModule) -> Callable[..., Any]:
            more = {"options": one_pass(graph, self.device) | chosen} if fuse else {}
            return torch.compile(graph, **(own | more))

        overwrites = chosen.get("triton.cudagraphs", False)
        self._way = _Way(lambda graph: known.get(graph, compiled), compiled=True, overwrites=overwrites)

    @contextlib.contextmanager
    def recomputing(self) -> Iterator[None]:
        """Keep little for the backward pass for a while, in this thread, and compute the rest again: for large inputs.

        Gradients stay the same bit for bit; a step of training takes half as long again on a CPU, up to
        twice as long on a GPU.
        """
        if self._way.compiled:
            raise RuntimeError("a compiled network chooses itself what to compute again; use either of the two")
        known: Recent[fx.GraphModule, Callable[..., Any]] = Recent(PROGRAMS)
        own = self, _Way(lambda graph: known.get(graph, Segments))
        token = _RECOMPUTING.set((*_RECOMPUTING.get(), own))
        try:
            yield
        finally:
            _RECOMPUTING.reset(token)

    @_uncompiled
    def _look_up(self, call: Call) -> tuple[Plan, _Way]:
        """Return the program for a call, captured if need be, in its form over intervals, and how to run it."""
        _refuse_inside()
        for x in call.tensors:
            refuse_input(x.point if isinstance(x, Interval) else x)
            if isinstance(x, Interval):
                refuse_gaps(x.below, x.above)
        modules = list(self.model.modules())
        seen = [(module, _mode_of(module)) for module in modules]
        if any(mode is not False for _, mode in seen):
            refuse_training(self.model)
        self._refuse_elsewhere(call)
        held = [id(parameter) for module in modules for parameter in own_parameters(module).values()]
        programs = self._programs_of(seen, held)
        key = (call.key, self.form, *(_autocast(device) for device in {tensor.device.type for tensor in call.tensors}))
        plan = programs.find(key, call.tensors) or self._planned(call, key, programs)
        return plan, next((way for net, way in _RECOMPUTING.get() if net is self), self._way)

    def _programs_of(self, seen: list[tuple[nn.Module, Any]], held: list[int]) -> Programs:
        """Return what is known of the model: nothing, once a part of it was replaced or its mode was changed."""
        with self._lock:
            if seen != self._seen:
                self._programs, self._seen = Programs(), seen
            if held != self._held:
                self._refuse_changed()
            self._held = held
            return self._programs

    def _planned(self, call: Call, key: Any, programs: Programs) -> Plan:
        """Find or make the program for a call; one thread at a time, so that each program is made once."""

        def find_or_make() -> Plan:
            with TURNS.alone(), own_random_numbers():
                plan = programs.find(key, call.tensors)
                if plan is None:
                    before = [each.program for each in programs.like(key)]
                    witness = Witness(self.model, call)  # which sees the model before torch does
                    plan = self._lift(self._capture(call, before), call)
                    witness.refuse_other(plan.program)
                    programs.add(plan, key)
                return plan

        return undisturbed(find_or_make)

    def _refuse_changed(self) -> None:
        """Raise if the model's parameters are not those around which the intervals were put, or have another shape."""
        now = tied(self.model)
        if now != self._own:
            names = ", ".join(sorted({f"'{name}'" for name, _ in now.items() ^ self._own.items()}))
            raise ValueError(
                f"parameters of the model were tied together, untied, added or removed ({names}) since the intervals "
                "were put around them; make a new IntervalNetwork"
            )
        for name in self._names or ():
            parameter = self.model.get_parameter(name)
            refuse_other(name, self._gaps_of(name), parameter, "make a new IntervalNetwork")

    def _refuse_elsewhere(self, call: Call) -> None:
        """Raise if what is to be computed together lies on several devices."""
        first = next(self.model.parameters(), None)
        if first is None:
            return
        own = next(self.gaps.parameters(), first).device
        if own != first.device:
            raise ValueError(
                f"the model is on {first.device}, and the gaps around its weights on {own}, for it was moved without "
                f"them; call net.to('{first.device}')"
            )
        for x in call.tensors:  # single numbers and indices may come from elsewhere
            if x.device != own and x.dim() and x.dtype.is_floating_point and not self._is_spread():
                raise ValueError(
                    f"the model is on {own}, and an input on {x.device}; move it there with x.to('{own}'), "
                    f"or the network here with net.to('{x.device}')"
                )

    def _is_spread(self) -> bool:
        """Say whether the model itself lies on several devices, and so must know what to move where."""
        return len({parameter.device for parameter in self.model.parameters()}) > 1

    def _capture(self, call: Call, before: list[Program]) -> Program:
        if not call.tensors:
            got = ", ".join(sorted({type(leaf).__name__ for leaf in pytree.tree_leaves(call.rebuild([]))})) or "nothing"
            raise ValueError(
                f"the call has no tensor among its arguments (got {got}), so there is nothing to bound; give torch "
                "tensors, such as torch.from_numpy(x) or torch.tensor(x)"
            )
        try:
            program = capture(self.model, call, before)
        except UnexplainedError:
            refuse_call(self.model, call)
            raise
        if self._names is None:
            assert isinstance(self.layers, int)
            self._choose(last(self.layers, program, self._own))
        return program

    def _lift(self, program: Program, call: Call) -> Plan:
        names, sources = set(self.names), program.sources.items()
        own = {name: self._own[s.name] for name, s in sources if s.kind == "parameter" and s.name in self._own}
        gaps = {name: self._gaps_of(parameter) for name, parameter in own.items() if parameter in names}
        inputs = [
            n for n, source in sources if source.kind == "input" and isinstance(call.tensors[source.index], Interval)
        ]
        try:
            return Plan.of(program, self.model, gaps, self.form, inputs)
        except MissingRuleError:
            refuse_call(self.model, call)
            raise

    def refresh(self) -> None:
        """Forget what was captured and prepared: for changes to the model's Python side.

        Parameters, buffers and gaps may change freely. Call this after changing an attribute that the model's
        forward reads.
        """
        self._programs = Programs()

    def save(self, path: str | Path, *, include_model: bool = False) -> None:
        """Write gaps, layers, offsets and calibration to a safetensors file; :func:`intervalnn.load` reads it.

        See :func:`intervalnn.saving.save`.
        """
        from intervalnn.saving.saving import save  # which imports this module

        save(self, path, include_model=include_model)

    # --- torch's own bookkeeping ---

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> IntervalNetwork:
        """Move the underlying model along, as a module that holds another does; never convert it."""
        for dtype in {parameter.dtype for parameter in self.model.parameters()}:
            new = fn(torch.zeros(1, dtype=dtype)).dtype
            if new != dtype:
                raise TypeError(
                    f"an interval network follows the dtype of its model; call model.to({new}) and wrap it anew, "
                    "or set gap_dtype for the gaps alone"
                )
        self.model._apply(fn, recurse)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def __prepare_scriptable__(self) -> None:
        """Say to ``torch.jit.script`` what to do instead."""
        raise TypeError("an IntervalNetwork cannot be scripted; write it with intervalnn.export(net, x, 'net.onnx')")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what a call makes anew."""
        made = ("_seen", "_held", "_programs", "_way", "_lock")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start with nothing captured."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._forget()

    def _forget(self) -> None:
        self._seen, self._held = [], []
        self._programs = Programs()
        self._way = _Way()
        self._lock = threading.Lock()

    def extra_repr(self) -> str:
        """Return the one line that printing the network adds."""
        return f"{type(self.model).__name__}, layers={self.layers!r}"


def _is_interval(x: Any) -> bool:
    return isinstance(x, Interval)


def _real(width: Tensor) -> Tensor:
    return torch.view_as_real(width) if width.is_complex() else width


def _recordable(x: Tensor | Interval) -> Tensor | Interval:
    """Return an input that gradients may pass, which nothing made in inference mode is."""
    if isinstance(x, Interval):
        return x.map(lambda part: part.clone() if part.is_inference() else part)
    return x.clone() if x.is_inference() else x


def _as_gap(value: Tensor | float, like: Tensor, name: str) -> Tensor:
    """Return what a user gives as gaps as a tensor, or say why it is none."""
    if isinstance(value, float | int):  # which torch would round to float32
        value = torch.tensor(value, dtype=torch.float64)
    new = torch.as_tensor(value, device=like.device)
    new = (torch.view_as_real(new) if new.is_complex() else new).to(like.dtype)
    if new.dim() > 0 and new.shape != like.shape:
        raise ValueError(
            f"gaps of '{name}' must have shape {tuple(like.shape)}, or be a number, got {tuple(new.shape)}"
        )
    if not bool((new >= 0).all()) or not bool(new.isfinite().all()):
        raise ValueError(f"gaps of '{name}' must be finite and not negative, got {float(new.min())} at the least")
    return new


def _mode(name: str) -> dict[str, Any]:
    """Return the options of torch's compiler that a mode stands for."""
    modes = compiler_modes()
    if name not in modes:
        raise ValueError(f"mode must be one of {', '.join(map(repr, modes))}, got {name!r}")
    return modes[name]


def _mode_of(module: nn.Module) -> Any:
    """Return in what mode a module is: whether in training, and which hooks it has, or a forward of its own."""
    own, hooks = module.__dict__.get("forward"), hooks_of(module)
    return (module.training, *hooks, own) if hooks or own is not None else module.training


def _refuse_inside() -> None:
    """Raise where torch would write down, transform or trace the search for a program, not the program."""
    if in_transform():
        raise RuntimeError(
            "an IntervalNetwork cannot run inside torch.func (vmap, grad, jacrev, jvp); it takes whole batches, so "
            "vmap is not needed, and derivatives of net(x).width, say, come from torch.autograd.grad or "
            "torch.autograd.functional.jacobian"
        )
    if is_traced() or _is_exporting():
        raise RuntimeError(
            "an IntervalNetwork cannot be traced or exported as a module; write it with "
            "intervalnn.export(net, x, 'net.onnx'), which exports the program over intervals"
        )


def _is_exporting() -> bool:
    """Say whether ``torch.export`` runs in this thread; torch's own flag holds for captures of all threads."""
    if not torch.compiler.is_exporting():
        return False
    with TURNS.together():  # in which no other thread captures
        return torch.compiler.is_exporting()


def _refuse_not_finite(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if parameter.device.type != "meta" and not bool(parameter.detach().isfinite().all()):
            raise ValueError(f"parameter '{name}' has entries that are NaN or infinite; no interval is around them")


def _given(x: Tensor | Interval, dtype: torch.dtype | None) -> Tensor | Interval:
    """Return an input in the form that a program takes; gaps that are negative or not a number are without end."""
    if not isinstance(x, Interval):
        return x
    dtype = dtype or (x.dtype if x.gap_dtype == torch.float16 else x.gap_dtype)
    return Interval(x.point, *(endless_unless_sound(gap).to(dtype) for gap in (x.below, x.above)))


# --- batches ---


def _autocast(device: str) -> torch.dtype | None:
    """Return in what dtype products are taken instead of the model's own, if any."""
    used = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    return torch.get_autocast_dtype(device) if used else None


def _batches(call: Call, size: int) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    if size < 1:
        raise ValueError(f"batch_size must be at least 1, got {size}")
    for x in call.tensors:
        refuse_input(x.point if isinstance(x, Interval) else x)
    total = call.tensors[0].shape[:1] if call.tensors else (1,)  # none at all is refused where it is captured
    if not total or any(t.shape[:1] != total for t in call.tensors):
        shapes = [tuple(t.shape) for t in call.tensors]
        raise ValueError(f"with batch_size, all tensors must have one first dimension, got shapes {shapes}")
    for start in range(0, max(*total, 1), size):
        yield call.rebuild([t[start : start + size] for t in call.tensors])


def _joined(parts: list[Any]) -> Any:
    """Join the outputs of several batches along their first dimension."""
    flat = [Structure.of(part) for part in parts]
    joined = [_cat(column) for column in zip(*(leaves for leaves, _ in flat), strict=True)]
    return flat[0][1].rebuild(joined)


def _cat(column: tuple[Any, ...]) -> Any:
    if isinstance(column[0], Interval):
        return Interval(*(torch.cat(part) for part in zip(*((x.point, x.below, x.above) for x in column), strict=True)))
    return torch.cat(column) if isinstance(column[0], Tensor) else column[0]
