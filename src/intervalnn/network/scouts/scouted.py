"""Interval weights with scouts beside them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from intervalnn.interval import Interval
from intervalnn.network.capture.program import Program
from intervalnn.network.gaps import Gaps, Kind
from intervalnn.network.interval_weights import IntervalWeights, choose_by
from intervalnn.network.layers import Layers, layers_in
from intervalnn.network.lifting.lift import Form
from intervalnn.network.scouts.scout import Scout, Widening
from intervalnn.network.scouts.scouting import new_scouts

__all__ = ["ScoutedWeights", "choose_all_by", "features_of", "gaps_of", "normalise", "scouts_of", "take_scouts"]

USUAL = 1  # the last layers that get intervals beside a scout, where nobody said
USUAL_ALONE = 4  # and without one
_SCOUT = "scout "  # before the number of its output; no parameter has a blank in its name


class ScoutedWeights(IntervalWeights):
    """A model whose parameters have become intervals, and scouts that widen its outputs.

    Args:
        model: See :class:`IntervalWeights`, as for all but the last.
        layers: 0 stands for none, where there is a scout; None for as many as are usual.
        kind: See there.
        cap: See there.
        form: See there.
        scout: What scout each output gets, ``True`` for the usual one; None for the usual one where ``layers`` is
            None too, else for none.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Layers | None,
        kind: Kind,
        cap: float | None,
        form: Form,
        scout: Scout | bool | None,
    ) -> None:
        self._asked_for = scout is not None
        wanted = layers is None if scout is None else scout
        own = Scout() if wanted is True else wanted or None
        self._usual = layers is None
        if layers is None:
            layers = USUAL if own is not None else USUAL_ALONE
        alone = own is not None and layers == 0 and not isinstance(layers, bool)
        super().__init__(model, () if alone else layers, kind, cap, form)
        self.layers, self.scout = layers, own
        self.scouts = nn.ModuleDict()  # by the number of the output
        self._scouted = own is None

    @property
    def _opening(self) -> list[str]:
        return [*self.names, *(_SCOUT + number for number in self.scouts)]

    def _closed(self, name: str) -> Gaps:
        return super()._closed(name) if name in self._own else self._gaps_of(name).closed()

    def _gaps_of(self, name: str) -> Gaps:
        return super()._gaps_of(name) if name in self._own else widening_of(self, name.removeprefix(_SCOUT)).gaps

    def _intervals(self) -> dict[str, Interval]:
        """Return the interval of everything that opens the bounds; around zero for the weights of scouts."""
        own = self.weight_intervals()
        return {name: own[name] if name in own else self._gaps_of(name).around_zero() for name in self._opening}

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Return an iterator over the gaps and the weights of scouts, by name."""
        if not self._scouted:
            raise RuntimeError("which values a scout reads is not known before the first call; call net(x) once")
        return super().named_parameters(*args, **kwargs)


def widening_of(weights: ScoutedWeights, number: str) -> Widening:
    """Return the scout of one output."""
    widening = weights.scouts[number]
    assert isinstance(widening, Widening)
    return widening


def scouts_of(weights: ScoutedWeights) -> dict[int, Widening]:
    """Return the scouts, by the numbers of the outputs that they widen."""
    return {int(number): widening_of(weights, number) for number in weights.scouts}


def take_scouts(weights: ScoutedWeights, scouts: Mapping[int, Widening]) -> None:
    """Put scouts beside a model; other threads see all of them or none."""
    made = {str(number): scout.to(weights.device).train(weights.training) for number, scout in scouts.items()}
    weights.scouts, weights._scouted = nn.ModuleDict(made), True


def choose_all_by(weights: ScoutedWeights, program: Program) -> None:
    """Choose by a program what was not known before: the last layers, if a number was asked for, and the scouts."""
    made = None if weights._scouted or weights.scout is None else new_scouts(program, weights.scout)
    if weights._usual and weights._names is None:
        weights.layers = usual_layers(program, scouted=bool(made or weights.scouts))
        if weights.layers == "all":
            weights._choose(weights._own)
    choose_by(weights, program)
    if made is None:
        return
    if not made and weights._asked_for:
        warnings.warn(
            "no value that the model computes on the way fits its output, so it gets no scout; leave out scout",
            stacklevel=2,
        )
    take_scouts(weights, made)


def usual_layers(program: Program, *, scouted: bool) -> int | str:
    """Return how many of the last layers get intervals where nobody said; all, where there are no weight layers."""
    return min(USUAL if scouted else USUAL_ALONE, layers_in(program)) or "all"


# --- for training ---


def gaps_of(weights: ScoutedWeights) -> list[nn.Parameter]:
    """Return all gaps that are trained, those of scouts too."""
    return [gap for name in weights._opening for gap in weights._gaps_of(name).sides]


def features_of(weights: ScoutedWeights) -> list[nn.Parameter]:
    """Return the weights of scouts, which are points."""
    return [own for scout in scouts_of(weights).values() for own in scout.features.parameters()]


def normalise(weights: ScoutedWeights, sums: Sequence[Tensor]) -> None:
    """Standardise what scouts read, for those whose gaps are closed.

    Args:
        weights: Whose scouts.
        sums: Count, sum and sum of squares of each channel that they read.
    """
    left = iter(sums)
    for scout in scouts_of(weights).values():
        own = [next(left) for _ in scout.features.fits]
        if not any(bool(gap.any()) for gap in scout.gaps.sides):
            scout.features.normalise(own)
