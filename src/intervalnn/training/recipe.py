"""Recipe: how a run trains, with everything settled that was not given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from intervalnn.calibration.guarantee import beta_for_coverage
from intervalnn.training import losses
from intervalnn.training.error import mean_absolute_error
from intervalnn.training.job import Job

__all__ = ["Learner", "Recipe", "default_epochs", "settle"]

# The paper's own choices (Sec. 4 and 5).
PAPER = {"beta": 2e-3, "epochs": 100, "lr": 1e-5}
STEPS = 1500  # optimiser steps to aim at
GROWTH = 150.0  # learning rate times steps: how far the logarithm of a gap may travel, twice over
FASTEST = 0.3  # how far in one step, where there are but few
EXPLODED = 1e4  # mean width, in mean absolute errors, from which on training has failed


@runtime_checkable
class Learner(Protocol):
    """A module that knows how to be trained, such as a baseline: :func:`intervalnn.fit` needs no loss for it.

    It may have ``paper``, a mapping with the ``"epochs"`` and the ``"lr"`` of ``recipe="paper"``.
    """

    def point(self, *args: Any) -> Tensor:
        """Return what the underlying model predicts."""
        ...

    def start_fit(self, *, coverage: float | None, mae: float) -> losses.Loss:
        """Get ready to be trained, given the underlying model's mean absolute error, and return the loss."""
        ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a run trains.

    Attributes:
        loss: What is minimised.
        epochs: How often to go through the batches.
        lr: The learning rate at the start.
        seed: Chooses the order of the batches, and what is random in the model.
        paper: Whether this is the published procedure: one rate throughout, and bounds may explode and come back.
        balanced: Whether every layer starts with an equal say, and gaps take steps in proportion to their size;
            None for what has no gaps.
        mae: The underlying model's mean absolute error; None for what has no gaps.
        coverage: The coverage that the loss asks for, if it does.
        beta: The price of width in the loss, if it has one.
    """

    loss: losses.Loss
    epochs: int
    lr: float
    seed: int
    paper: bool
    balanced: bool | None = None
    mae: float | None = None
    coverage: float | None = None
    beta: float | None = None

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of one of so many steps."""
        return self.lr if self.paper else self.lr * (1 + math.cos(math.pi * step / steps)) / 2

    @property
    def widest(self) -> float:
        """The mean width from which on training has failed."""
        # The bounds of the published recipe explode at first and come back, so explosion is no failure there.
        return math.inf if self.paper or self.mae is None else EXPLODED * self.mae

    def settings(self) -> dict[str, Any]:
        """Return all of it as plain values, for the record."""
        measured = {"coverage": self.coverage, "beta": self.beta, "mae": self.mae, "balanced": self.balanced}
        return {
            "seed": self.seed,
            **{name: value for name, value in measured.items() if value is not None},
            "recipe": "paper" if self.paper else "default",
            "loss": getattr(self.loss, "__qualname__", type(self.loss).__name__).partition(".")[0],
            "epochs": self.epochs,
            "lr": self.lr,
        }


def default_epochs(batches: int) -> int:
    """Return how often to go through so many batches, where nobody said."""
    return min(max(math.ceil(STEPS / batches), 5), 400)


def settle(
    job: Job,
    *,
    coverage: float | None,
    loss: losses.Loss | None,
    beta: float | None,
    recipe: str,
    epochs: int | None,
    lr: float | None,
    balance: bool | None,
) -> Recipe:
    """Return the recipe that the arguments of :func:`intervalnn.fit` stand for, with defaults filled in."""
    _check(recipe, epochs, lr, given=(coverage, loss, beta))
    paper, steps = recipe == "paper", len(job.batches)
    if not steps:
        raise ValueError("the loader is empty: it must yield at least one batch")
    published: dict[str, float] = PAPER if job.net is not None else getattr(job.method, "paper", {})
    if epochs is None:
        epochs = int(published.get("epochs", 100)) if paper else default_epochs(steps)
    if job.net is None:
        loss, coverage = _own_loss(job, coverage, loss, beta)
        default = published.get("lr", 1e-3) if paper else 1e-3
        return Recipe(loss, epochs, default if lr is None else lr, job.batches.seed, paper, coverage=coverage)
    if paper and (job.net.scout is not None or len(job.net.scouts)):
        raise ValueError(
            "the published recipe has no scout: IntervalNetwork(model, layers='all') is the published network, and "
            "scout=False leaves the scout out of any other"
        )
    job.net.calibration = job.net.offsets = None
    mae = mean_absolute_error(job, job.net.model)
    loss, coverage, beta = _interval_loss(paper, coverage, loss, beta, mae)
    balanced = not paper if balance is None else balance
    default = min(GROWTH / (steps * epochs), FASTEST) if balanced else PAPER["lr"]
    return Recipe(loss, epochs, default if lr is None else lr, job.batches.seed, paper, balanced, mae, coverage, beta)


def _check(recipe: str, epochs: int | None, lr: float | None, given: tuple[Any, ...]) -> None:
    if recipe not in ("default", "paper"):
        raise ValueError(f"recipe must be 'default' or 'paper', got {recipe!r}")
    if sum(each is not None for each in given) > 1:
        raise ValueError("give one of coverage, loss and beta: each of them chooses the loss")
    if epochs is not None and epochs < 1:
        raise ValueError(f"epochs must be at least 1, got {epochs}")
    if lr is not None and not 0 < lr < math.inf:
        raise ValueError(f"lr must be positive, got {lr}")


def _own_loss(
    job: Job, coverage: float | None, loss: losses.Loss | None, beta: float | None
) -> tuple[losses.Loss, float | None]:
    """Return the loss of a module that is no interval network, and the coverage that its own loss asks for."""
    method = job.method
    if not isinstance(method, Learner):
        if loss is None:
            raise ValueError("a plain model needs a loss, for example loss=losses.mse")
        return loss, None
    if beta is not None:
        raise ValueError("beta is for interval networks; give this method a coverage, or loss=losses.interval(...)")
    own = method.start_fit(coverage=coverage, mae=mean_absolute_error(job, method.point))
    return (own, getattr(method, "coverage", None)) if loss is None else (loss, None)


def _interval_loss(
    paper: bool, coverage: float | None, loss: losses.Loss | None, beta: float | None, mae: float
) -> tuple[losses.Loss, float | None, float | None]:
    """Return the loss of the bounds, and its coverage or its price of width, if it has one."""
    if loss is not None:
        return loss, None, None
    if paper and beta is None:
        beta = PAPER["beta"] if coverage is None else beta_for_coverage(coverage, mae)
    if beta is not None:
        return losses.interval(beta=beta), None, beta
    coverage = 0.9 if coverage is None else coverage
    return losses.pinball(coverage=coverage), coverage, None
