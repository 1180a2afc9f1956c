"""History: what training measured, epoch by epoch, and the file from which it can go on."""

from __future__ import annotations

import io
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from intervalnn.files.container import verify_archive
from intervalnn.files.whole import replacing
from intervalnn.training.engine import Engine

__all__ = ["Epoch", "History", "State"]


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one epoch of training measured.

    Attributes:
        loss: Mean training loss, over the samples and the steps.
        coverage: Share of the training targets between the bounds; NaN for a plain model.
        width: Mean width of the bounds; NaN for a plain model.
        validation: Mean loss on the validation loader; NaN without one.
        seconds: How long it took.
        held_out: Share of the targets of the validation loader between the bounds; NaN without one, or for a plain
            model.
    """

    loss: float
    coverage: float
    width: float
    validation: float
    seconds: float
    held_out: float = math.nan


@dataclass(slots=True)
class History:
    """What training did.

    Attributes:
        settings: All that was given or chosen, as plain values.
        epochs: What each epoch measured.
        best: Which of them was kept, from 0; the last one without validation.
    """

    settings: dict[str, Any]
    epochs: list[Epoch] = field(default_factory=list)
    best: int = -1

    def as_dict(self) -> dict[str, Any]:
        """Return the history as plain values, for a JSON file; None stands for NaN, which JSON has not."""
        epochs = [
            {name: None if math.isnan(value) else value for name, value in asdict(epoch).items()}
            for epoch in self.epochs
        ]
        return {"settings": self.settings, "epochs": epochs, "best": self.best}

    @staticmethod
    def from_dict(saved: dict[str, Any]) -> History:
        """Return the history that :meth:`as_dict` gave."""
        epochs = [
            Epoch(**{name: math.nan if value is None else value for name, value in epoch.items()})
            for epoch in saved["epochs"]
        ]
        return History(saved["settings"], epochs, saved["best"])


class State:
    """What a run needs to go on after it was stopped.

    Random states are not kept, because randomness in an epoch depends on the seed and the epoch alone.
    """

    def __init__(self, history: History, method: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.history, self.method, self.optimizer = history, method, optimizer
        self.best: dict[str, Tensor] | None = None

    def add(self, epoch: Epoch) -> None:
        """Take note of an epoch, and of the state after it if it is the best."""
        history = self.history
        history.epochs.append(epoch)
        if math.isnan(epoch.validation):
            history.best = len(history.epochs) - 1
        elif epoch.validation <= min(known.validation for known in history.epochs):
            history.best = len(history.epochs) - 1
            self.best = {name: value.detach().clone() for name, value in self.method.state_dict().items()}

    def waited(self) -> int:
        """Return how many epochs have passed since the best one."""
        return len(self.history.epochs) - 1 - self.history.best

    def restore(self) -> None:
        """Put the best epoch's state back."""
        if self.best is not None:
            self.method.load_state_dict(self.best)

    def save(self, path: Path) -> None:
        """Write all of it, whole or not at all."""
        content = {
            "history": self.history.as_dict(),
            "method": self.method.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
        }
        whole = io.BytesIO()  # torch itself ends the process where a disk is full
        torch.save(content, whole)
        with replacing(path) as temporary:
            temporary.write_bytes(whole.getbuffer())

    def load(self, path: Path, engine: Engine, device: torch.device) -> bool:
        """Go on from a file that :meth:`save` wrote for the same settings; False if there is none.

        The first process reads the file and sends it to the others, which need not share a disk.
        """
        content = engine.broadcast(_read(path) if engine.rank == 0 and path.exists() else None)
        if content is None:
            return False
        history = History.from_dict(content["history"])
        for name, value in self.history.settings.items():
            saved = history.settings.get(name)
            if not _same(saved, value):
                raise ValueError(
                    f"the checkpoint {path} was written with {name}={saved}, now it is {value}; use the same settings "
                    "to go on, or delete it or name another checkpoint (--checkpoint FILE) to start anew"
                )
        self.history.settings.update(history.settings)
        self.history.epochs, self.history.best = history.epochs, history.best
        try:
            self.method.load_state_dict(content["method"])
            self.optimizer.load_state_dict(content["optimizer"])
            self.best = content["best"] and {name: value.to(device) for name, value in content["best"].items()}
        except (RuntimeError, ValueError, LookupError, ArithmeticError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path} belongs to a network with other layers or another kind of gaps; "
                "go on with the same options, or remove it to start anew"
            ) from error
        return True


def _read(path: Path) -> Any:
    try:
        verify_archive(path)
        content = torch.load(path, weights_only=True, map_location="cpu")
        if not {"history", "method", "optimizer", "best"} <= content.keys():
            raise KeyError("history")
        _check(History.from_dict(content["history"]))
    except Exception as error:
        raise ValueError(f"{path} is not a checkpoint that fit has written; move it away to start anew") from error
    return content


def _check(history: History) -> None:
    """Refuse what :meth:`History.as_dict` cannot have given."""
    numbers = [value for epoch in history.epochs for value in asdict(epoch).values()]
    if not isinstance(history.settings, dict) or not all(isinstance(value, float | int) for value in numbers):
        raise TypeError("settings and numbers")
    history.as_dict()  # which no number beyond a float's range comes through
    if type(history.best) is not int or not -1 <= history.best < len(history.epochs):
        raise ValueError("the best epoch")


def _same(saved: Any, now: Any) -> bool:
    """Compare two settings; measured settings may differ by rounding where the number of processes differs."""
    if isinstance(saved, float) and isinstance(now, float):
        return math.isclose(saved, now, rel_tol=1e-5)
    return bool(saved == now)
