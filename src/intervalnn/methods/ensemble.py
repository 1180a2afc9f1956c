"""Ensemble: several models of the same kind, and how far apart they are (Lakshminarayanan et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn.methods.baseline import Baseline
from intervalnn.methods.copies import in_eval_mode, output_of, own_copy, seeded
from intervalnn.prediction import Prediction
from intervalnn.training import losses

__all__ = ["Ensemble"]


class Ensemble(Baseline):
    """The mean of several models, and their spread around it.

    Members that were trained elsewhere are only read. Those that :meth:`like` makes are the
    ensemble's own, and :func:`intervalnn.fit` trains them all at once with the squared error.

    Args:
        members: At least two trained modules.
        coverage: Share of the targets that the bounds would contain if errors were normal with the members' standard
            deviation. They rarely are, so calibrate.

    Example:
        >>> Ensemble([nn.Linear(2, 1), nn.Linear(2, 1)])
        Ensemble(2 x Linear, coverage=0.9)
        >>> Ensemble.like(nn.Linear(2, 1), 5)(torch.ones(3, 2)).shape
        torch.Size([5, 3, 1])
    """

    def __init__(self, members: Sequence[nn.Module], *, coverage: float = 0.9) -> None:
        if not isinstance(members, Sequence | nn.ModuleList):  # nn.Sequential would pass for a list of its layers
            raise TypeError(
                f"an ensemble takes a list of models, got a {type(members).__name__}; "
                "Ensemble.like(model, 5) makes copies of one"
            )
        super().__init__(*members, coverage=coverage)
        if len(members) < 2:
            raise ValueError(f"an ensemble has at least 2 members, for fewer have no deviation, got {len(members)}")
        self.own: nn.ModuleList | None = None
        self._start: list[float] = []  # some numbers of its own members, before they are trained

    @staticmethod
    def like(model: nn.Module, members: int = 5, *, coverage: float = 0.9, seed: int = 0) -> Ensemble:
        """Return an ensemble of copies of a model that are still to be trained, each with weights drawn anew.

        Args:
            model: Any module made of layers that know how to draw their weights, as torch's own do.
            members: How many copies; at least two.
            coverage: As for the ensemble itself.
            seed: Seed of the weights.
        """
        ensemble = Ensemble([_drawn_anew(model, (seed + 1) * 1_000_003 + i) for i in range(members)], coverage=coverage)
        ensemble.own, ensemble._read = nn.ModuleList(ensemble._read), ()
        ensemble._start = _first_numbers(ensemble.own)
        return ensemble

    @property
    def fitted(self) -> bool:
        """Whether its own members were trained; those that were given have been."""
        return self.own is None or _first_numbers(self.own) != self._start

    @property
    def members(self) -> tuple[nn.Module, ...]:
        """The models."""
        return self._read if self.own is None else tuple(self.own)

    @property
    def model(self) -> nn.Module:
        """The first member."""
        return self.members[0]

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return what each member predicts, ``(members, batch, *signal)``."""
        return torch.stack([output_of(member, *args, **kwargs) for member in self.members])

    @torch.no_grad()
    def point(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the mean of what the members predict in eval mode."""
        return self._outputs(*args, **kwargs).mean(0)

    def start_fit(self, *, coverage: float | None, mae: float) -> losses.Loss:  # noqa: ARG002 - as for any Learner
        """Return the squared error, averaged over the members; for :func:`intervalnn.fit`."""
        self._start_anew(coverage)
        return losses.mse

    def _outputs(self, *args: Any, **kwargs: Any) -> Tensor:
        return torch.stack([output_of(in_eval_mode(member), *args, **kwargs) for member in self.members])

    def _predict(self, *args: Any, **kwargs: Any) -> Prediction:
        outputs = self._outputs(*args, **kwargs)
        return Prediction.symmetric(outputs.mean(0), outputs.std(0), coverage=self.coverage)

    def extra_repr(self) -> str:
        """Return what stands between the brackets when it is printed."""
        return f"{len(self.members)} x {super().extra_repr()}"


def _first_numbers(members: nn.Module) -> list[float]:
    """Return the first number of each parameter: training moves some of them at least."""
    return [float(parameter.detach().flatten()[0].real) for parameter in members.parameters() if parameter.numel()]


@torch.no_grad()
def _drawn_anew(model: nn.Module, seed: int) -> nn.Module:
    """Return a copy of a model with other weights, refusing to keep any of the old ones."""
    copied = own_copy(model)
    device = next((parameter.device for parameter in copied.parameters()), torch.device("cpu"))
    for parameter in copied.parameters():
        parameter.fill_(torch.nan)  # so that those that no layer draws are known
    with seeded(device, seed):
        for module in copied.modules():
            for name in ("reset_parameters", "_reset_parameters"):
                getattr(module, name, lambda: None)()
    kept = [name for name, parameter in copied.named_parameters() if bool(parameter.isnan().any())]
    if kept:
        raise ValueError(
            f"no layer of {type(model).__name__} draws {', '.join(map(repr, kept))} anew: give the modules that hold "
            "them a method reset_parameters, or build the members yourself and pass Ensemble(members)"
        )
    return copied
