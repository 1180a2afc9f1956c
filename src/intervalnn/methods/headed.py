"""Headed: what the baselines that train heads on a copy of the model have in common."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from intervalnn.methods.baseline import Baseline
from intervalnn.methods.heads import Heads, HeadsKind
from intervalnn.training import losses

__all__ = ["Headed"]


class Headed(Baseline):
    """A baseline that learns its bounds by heads on a copy of the model.

    Args:
        model: Any trained module that returns one tensor.
        coverage: Share of the targets that the bounds are to contain, if ``fit`` is not told another.
        heads: ``"layer"`` puts the heads beside the last weight layer of one copy of the model;
            ``"copy"`` makes each of them a whole copy, whatever the model does after its last layer.
        last: Name of the last weight layer; by default the one that was registered last.
    """

    outputs: ClassVar[int]  # how many heads
    own: ClassVar[bool] = False  # whether it predicts with the copy instead of the model itself

    def __init__(
        self, model: nn.Module, *, coverage: float = 0.9, heads: HeadsKind = "layer", last: str | None = None
    ) -> None:
        super().__init__(model, coverage=coverage)
        self.heads = Heads(model, self.outputs, own=self.own, kind=heads, last=last)

    @property
    def fitted(self) -> bool:
        """Whether it was trained, by :func:`intervalnn.fit` or any other loop: its heads are not as they started."""
        return self.heads.trained(self.model)

    def start_fit(self, *, coverage: float | None, mae: float) -> losses.Loss:
        """Take the size of the model's errors as the unit, and return the loss; for :func:`intervalnn.fit`."""
        self._start_anew(coverage)
        self.heads.scale.fill_(mae)
        return self._loss()

    def _loss(self) -> losses.Loss:
        raise NotImplementedError

    def _point_and_offsets(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Return the underlying model's prediction, or the copy's own, and how far each head lies from it."""
        if self.own:
            own, offsets = self.heads(None, *args, **kwargs)
            return own, offsets
        point = self.point(*args, **kwargs)
        return point, self.heads(point, *args, **kwargs)[1]
