"""What learns from data is compared and calibrated only once it has learnt."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.prediction import is_fitted

HEADED = [inn.ErrorPredictor, inn.ProbOut, inn.QuantileHeads, inn.IntervalLossHeads]
LEARNING: dict[str, Callable[[nn.Module], Any]] = {
    **{each.__name__: each for each in HEADED},
    **{f"{each.__name__} of copies": partial(each, heads="copy") for each in HEADED},
    "Ensemble.like": inn.Ensemble.like,
    "IntervalNetwork": inn.IntervalNetwork,
    "the last layer of an IntervalNetwork": partial(inn.IntervalNetwork, layers=1),
}
BATCHES = [(torch.linspace(-1, 1, 40)[:, None], torch.linspace(0, 1, 40)[:, None])]


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Dropout(0.1), nn.Linear(4, 1)).eval()


def own_loop(method: nn.Module) -> None:
    """Take one step, as a user's own code may."""
    method(BATCHES[0][0])  # the last layer of a network is known from the first call on
    optimizer = torch.optim.Adam(method.parameters(), lr=1e-3)
    _loss(method(BATCHES[0][0])).backward()
    optimizer.step()


def _loss(output: Any) -> Tensor:
    if isinstance(output, tuple):
        return sum(map(_loss, output), torch.zeros(()))
    return output.sum() if isinstance(output, Tensor) else -output.width.sum()


@pytest.mark.parametrize("make", LEARNING.values(), ids=LEARNING)
def test_what_was_never_fitted_is_neither_compared_nor_calibrated(make: Callable[[nn.Module], Any]) -> None:
    method = make(model())

    with pytest.raises(ValueError, match=r"method 'a' was never fitted; call inn.fit\(method, train\) first"):
        inn.evaluate({"a": method}, BATCHES)
    with pytest.raises(ValueError, match=rf"this {type(method).__name__} was never fitted; call inn.fit"):
        inn.calibrate(method, BATCHES)


@pytest.mark.parametrize("make", LEARNING.values(), ids=LEARNING)
def test_what_was_fitted_is_known_after_its_state_was_loaded(make: Callable[[nn.Module], Any], tmp_path: Path) -> None:
    underlying = model()
    method, again, untouched = make(underlying), make(underlying), make(underlying)
    inn.fit(method, BATCHES, epochs=1, progress=False)
    for other in (again, untouched):
        other.predict(BATCHES[0][0])
    torch.save(method.state_dict(), tmp_path / "state.pt")

    again.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    untouched.load_state_dict(copy.deepcopy(untouched.state_dict()))

    assert is_fitted(method) and is_fitted(again) and not is_fitted(untouched)
    inn.evaluate({"a": again}, BATCHES, progress=False)


@pytest.mark.parametrize("make", LEARNING.values(), ids=LEARNING)
def test_a_loop_of_ones_own_fits_too(make: Callable[[nn.Module], Any]) -> None:
    method = make(model())

    own_loop(method)

    assert is_fitted(method)


@pytest.mark.parametrize(
    "make",
    [inn.ConstantWidth, inn.MCDropout, lambda given: inn.Ensemble([given, model()])],
    ids=["constant", "dropout", "members"],
)
def test_what_learns_nothing_needs_no_fit(make: Callable[[nn.Module], Any]) -> None:
    assert is_fitted(make(model()))
    assert is_fitted(object())


def test_gaps_and_offsets_that_were_set_by_hand_will_do() -> None:
    by_gaps, by_offsets = (inn.IntervalNetwork(model(), layers="all") for _ in range(2))

    by_gaps.set_gaps("3.bias", below=0.0, above=0.1)
    by_offsets.solve_offsets(BATCHES, beta=0.1)

    assert is_fitted(by_gaps) and is_fitted(by_offsets)


def test_a_scout_without_interval_layers_is_fitted_once_its_gaps_are_open() -> None:
    net = inn.IntervalNetwork(model(), layers=0, scout=True)
    net(BATCHES[0][0])
    assert not is_fitted(net)

    inn.fit(net, BATCHES, epochs=1, progress=False)

    assert is_fitted(net)
