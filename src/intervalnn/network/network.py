"""IntervalNetwork: the underlying model and the gaps around its weights."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn.calibration.guarantee import Offsets, solve_offsets
from intervalnn.interval import Interval
from intervalnn.network.capture.accepted import gap_dtype_of, refuse_model
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.given import refuse_call_from_here, refuse_inputs
from intervalnn.network.capture.parts import Structure
from intervalnn.network.compiling import compiled
from intervalnn.network.cutting import cut, joined
from intervalnn.network.explanation import Explanation
from intervalnn.network.gaps import Kind
from intervalnn.network.layers import Layers
from intervalnn.network.lifting.lift import Form
from intervalnn.network.plan import Plan
from intervalnn.network.recompute import recomputing, way_now
from intervalnn.network.scouts.scout import Scout
from intervalnn.network.scouts.scouted import ScoutedWeights, normalise
from intervalnn.network.search import Search
from intervalnn.network.sensitivities import looks, mean_gap, slopes
from intervalnn.network.ways import Way, bounds, uncompiled
from intervalnn.prediction import Prediction

__all__ = ["IntervalNetwork"]


class IntervalNetwork(ScoutedWeights):
    """A trained model whose weights have become intervals around their values.

    The model is only read, never edited: its program is captured at the first call, and its
    parameters and buffers are read anew at each. ``net.parameters()`` are the gaps and nothing
    else, so any optimiser and any training loop will do; they start at zero.

    Args:
        model: Any trained module, in eval mode.
        layers: Which layers get intervals: a number for the last so many weight layers (linear, convolution,
            embedding) in the order in which they first run; ``"all"`` for every parameter; names of modules or
            parameters; or a predicate, called with the name and the module of each layer. By default what measured
            best: the last layer beside a scout, and the last four of a model where no scout fits, or with
            ``scout=False``.
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
        scout: A small network beside the model, which opens gaps by features of its own (:class:`intervalnn.Scout`);
            ``True`` for the usual one, which there is by default where ``layers`` is not given. With ``layers=0`` it is
            all that opens the bounds.

    Example:
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
        >>> net = IntervalNetwork(model, layers=["2"])
        >>> net.set_gaps("2.bias", below=0.1, above=0.2)
        >>> net(torch.ones(1, 3)).width
        tensor([[0.3000, 0.3000]], grad_fn=<AddBackward0>)
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Layers | None = None,
        *,
        kind: Kind = "weight",
        cap: float | None = None,
        exact: bool = False,
        gap_dtype: torch.dtype | None = None,
        scout: Scout | bool | None = None,
    ) -> None:
        refuse_model(model, IntervalNetwork)
        form = Form(exact, gap_dtype_of(model, gap_dtype))
        super().__init__(model, layers, kind, cap, form, scout)
        # What predict does to the bounds, first the one, then the other; a call returns them as they are.
        self.offsets: Callable[[Prediction], Prediction] | None = None
        self.calibration: Callable[[Prediction], Prediction] | None = None
        self.training_settings: dict[str, Any] | None = None  # how it was trained, as plain values; saved along
        self._search, self._way = Search(), Way()

    # --- bounds and predictions ---

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the bounds of what the underlying model returns for these arguments.

        Takes what the model takes, where any tensor may be an interval, and returns what the
        model returns, with an interval for each tensor. Integers stay as they are.
        """
        call = Call.of(args, kwargs)
        return bounds(self.model, call, *self._look_up(call))

    @uncompiled
    def _look_up(self, call: Call) -> tuple[Plan, Way]:
        """Return the program for a call in its form over intervals, and how to run it."""
        refuse_call_from_here()
        refuse_inputs(call)
        return self._search.plan(self, call), way_now(self, self._way)

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
                found = self(*args, **kwargs)
            else:
                found = joined([self(*a, **k) for a, k in cut(Call.of(args, kwargs), batch_size)])
        return Structure.map(self._prediction, found)

    def _prediction(self, found: Any) -> Any:
        if not isinstance(found, Interval):
            return found
        prediction = Prediction.of(found)
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

    # --- which gaps open the bounds ---

    def sensitivities(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Return for each parameter with gaps how much wider the bounds get per unit of all its gaps.

        The sensitivity of a parameter is the derivative of the mean output width by a gap on both sides of all its
        entries, with all other gaps closed. One backward pass from zero gaps gives the sensitivities of all parameters.
        The derivative at zero gaps is exact, because nothing cancels there.
        """
        call = Call.of(args, kwargs)
        plan, way = self._look_up(call)  # from which on a number of layers has names
        closed = {name: self._closed(name) for name in self._opening}
        plan = plan.with_gaps({self._gaps_of(name): gaps for name, gaps in closed.items()})
        return slopes(plan, closed, call, way)

    def balance(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Scale what is trained of each parameter by one over its sensitivity, on a batch of inputs.

        A step of training then moves the output by the same amount whichever layer it is in;
        without it, gaps of early layers explode. The gaps themselves stay as they are. A scout whose gaps are closed
        takes mean and size of what it reads for zero and one.
        """
        normalise(self, self._read_by_scouts(Call.of(args, kwargs)))
        found = self.sensitivities(*args, **kwargs)
        self.balance_by(found)
        return found

    def _read_by_scouts(self, call: Call) -> list[Tensor]:
        """Return count, sum and sum of squares of each channel that scouts read."""
        plan, _ = self._look_up(call)
        return looks(plan, call) if self.scouts else []

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Return, layer by layer, sensitivity, gap and share in the width of the output, for some inputs."""
        sensitivities, intervals = self.sensitivities(*args, **kwargs), self._intervals()
        return Explanation.of({name: (own, mean_gap(intervals[name])) for name, own in sensitivities.items()})

    # --- how graphs are run ---

    def compile(self, **options: Any) -> None:
        """Compile the interval forward with ``torch.compile(**options)``, and in training its backward.

        The operations between two products are fused into one pass over memory. Splitting the weights is not compiled,
        except in training, where the weights are split in every step. With ``mode="reduce-overhead"``, CUDA graphs
        remove the launch overhead of kernels, which dominates for small inputs.
        """
        self._way = compiled(lambda: self.device, options)

    @contextlib.contextmanager
    def recomputing(self) -> Iterator[None]:
        """Use activation checkpointing for a while, in this thread: less memory, for large inputs.

        Gradients stay the same bit for bit; a step of training takes half as long again on a CPU, up to
        twice as long on a GPU.
        """
        if self._way.compiled:
            raise RuntimeError("a compiled network chooses itself what to compute again; use either of the two")
        with recomputing(self):
            yield

    def refresh(self) -> None:
        """Forget what was captured and prepared: for changes to the model's Python side.

        Parameters, buffers and gaps may change freely, and so may attributes of modules that are plain values or
        functions. Call this after changing what else the model's forward reads: a dictionary, an object, a global.
        """
        self._search = Search()

    def save(self, path: str | Path, *, include_model: bool = False) -> None:
        """Write gaps, layers, offsets and calibration to a safetensors file; :func:`intervalnn.load` reads it.

        See :func:`intervalnn.saving.save`.
        """
        from intervalnn.saving.saving import save  # which imports this module

        save(self, path, include_model=include_model)

    # --- torch's own bookkeeping ---

    def __prepare_scriptable__(self) -> None:
        """Say to ``torch.jit.script`` what to do instead."""
        raise TypeError("an IntervalNetwork cannot be scripted; write it with intervalnn.export(net, x, 'net.onnx')")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what a call makes anew."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_search", "_way")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start with nothing captured."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._search, self._way = Search(), Way()

    def extra_repr(self) -> str:
        """Return the one line that printing the network adds."""
        return f"{type(self.model).__name__}, layers={self.layers!r}"
