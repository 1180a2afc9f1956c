"""The parameters of a trained model, and the gaps around those of its layers that are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn.interval import Interval
from intervalnn.network.capture.accepted import refuse_not_finite
from intervalnn.network.capture.program import Program
from intervalnn.network.gaps import Gaps, Kind
from intervalnn.network.layers import Layers, chosen, did_you_mean, last, tied
from intervalnn.network.lifting.lift import Form
from intervalnn.network.plan import refuse_other

__all__ = ["IntervalWeights", "choose_by", "gaps_in", "refuse_changed"]


class IntervalWeights(nn.Module):
    """A model whose parameters have become intervals.

    Args:
        model: The model, one that is accepted.
        layers: Which layers get intervals; :class:`intervalnn.IntervalNetwork` says how.
        kind: What has a gap of its own.
        cap: The largest gap, as a multiple of the parameter's root mean square.
        form: How products are bounded.
    """

    def __init__(self, model: nn.Module, layers: Layers, kind: Kind, cap: float | None, form: Form) -> None:
        super().__init__()
        self._model = (model,)  # in a tuple, so that it is no submodule and its parameters are not ours
        self.layers, self.kind, self.cap, self.form = layers, kind, cap, form
        self.gaps = nn.Module()
        self._names: list[str] | None = None
        self._own = tied(model)
        refuse_not_finite(model)
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

    # --- which parameters have gaps ---

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
            parent.add_module(last, self._closed(name))
        self.gaps, self._names = gaps.train(self.training), chosen

    def _closed(self, name: str) -> Gaps:
        """Return new gaps for a parameter, all zero."""
        return Gaps(self.model.get_parameter(name), self.kind, self.cap)

    def _gaps_of(self, name: str) -> Gaps:
        """Return the gaps around a parameter that has some."""
        gaps = self.gaps.get_submodule(self._own[name])
        assert isinstance(gaps, Gaps)
        return gaps

    @property
    def names(self) -> list[str]:
        """Names of the parameters of the underlying model that have gaps."""
        if self._names is None:
            raise RuntimeError(
                f"layers={self.layers!r} means the last ones in the order in which they run, which is not known "
                "before the first call; call net(x) once, give the layers by name, or take layers='all'"
            )
        return self._names

    @property
    def _opening(self) -> list[str]:
        """Names of all that opens the bounds."""
        return self.names

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Return an iterator over the gaps, by name."""
        _ = self.names
        return super().named_parameters(*args, **kwargs)

    # --- their values ---

    def weight_intervals(self) -> dict[str, Interval]:
        """Return the interval of every parameter of the underlying model, without gaps where it is a point."""
        names, result = set(self.names), {}
        for name, own in self._own.items():
            point = self.model.get_parameter(name).detach()
            has_gaps = own in names
            result[name] = self._gaps_of(name).interval(point, self.form.gap_dtype) if has_gaps else Interval.of(point)
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
        self._gaps_of(name).set(name, below, above)

    def project(self) -> None:
        """Cut negative gaps (Sec. 3), after a step of an optimiser.

        The network does so where it reads them, and lets them come back. With several processes each sees only its
        share of the gradient, so clipping waits until after the step.
        """
        for name in self._opening:
            self._gaps_of(name).project()

    def balance_by(self, sensitivities: Mapping[str, float]) -> None:
        """Scale what is trained of each parameter by one over its sensitivity; see :meth:`IntervalNetwork.balance`."""
        most = max(sensitivities.values(), default=0.0)
        for name, own in sensitivities.items():
            # One that nothing depends on here may matter elsewhere: it goes as carefully as the most sensitive one.
            sensitivity, gaps = own or most, self._gaps_of(name)
            if sensitivity > 0:
                gaps.rescale(gaps.scale.new_tensor(1 / sensitivity))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> IntervalWeights:
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


def choose_by(weights: IntervalWeights, program: Program) -> None:
    """Give gaps to the last layers of a program, if a number of layers was asked for and they have none yet."""
    if weights._names is None:
        assert isinstance(weights.layers, int)
        weights._choose(last(weights.layers, program, weights._own))


def gaps_in(weights: IntervalWeights, program: Program) -> dict[str, Gaps]:
    """Return the gaps of all parameters that a program reads, by the program's names for these."""
    names, sources = set(weights.names), program.sources.items()
    own = {name: weights._own.get(s.name) for name, s in sources if s.kind == "parameter"}
    return {name: weights._gaps_of(parameter) for name, parameter in own.items() if parameter in names}


def refuse_changed(weights: IntervalWeights) -> None:
    """Raise if the model's parameters are not those around which the intervals were put, or have another shape."""
    now = tied(weights.model)
    if now != weights._own:
        names = ", ".join(sorted({f"'{name}'" for name, _ in now.items() ^ weights._own.items()}))
        raise ValueError(
            f"parameters of the model were tied together, untied, added or removed ({names}) since the intervals "
            "were put around them; make a new IntervalNetwork"
        )
    for name in weights._names or ():
        refuse_other(name, weights._gaps_of(name), weights.model.get_parameter(name), "make a new IntervalNetwork")
