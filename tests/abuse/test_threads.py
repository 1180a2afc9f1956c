"""Threads: what several of them may do at once gives each of them what it would give alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn

import intervalnn as inn
from abuse.threads import USES, conv_net, hammer, mlp, subjects

THREADS = 8


@pytest.mark.parametrize("seconds", [1.5, pytest.param(60, marks=pytest.mark.slow)])
def test_threads_that_do_all_at_once_each_get_what_they_get_alone(seconds: float) -> None:
    found = hammer(seconds, threads=THREADS, seed=1)

    assert not found.wrong, found.wrong[0]
    assert sum(found.done.values()) >= THREADS


def test_an_explanation_writes_to_no_gap() -> None:
    subject = subjects()[0].prepare()
    before = [gap._version for gap in subject.net.parameters()]

    subject.net.explain(subject.inputs[0])
    subject.net.sensitivities(subject.inputs[1])

    assert [gap._version for gap in subject.net.parameters()] == before


class Watching:
    """A loader during which another thread looks at a network."""

    def __init__(self, batches: list[Any], look: Callable[[], Any]) -> None:
        self.batches, self.look = batches, look

    def __iter__(self) -> Any:
        for batch in self.batches:
            self.look()
            yield batch


def test_a_calibration_stays_on_while_the_next_one_is_made() -> None:
    subject, seen = subjects()[2].prepare(), []
    net, before = subject.net, subject.net.calibration
    loader = Watching(subject.held_out, lambda: seen.append((net.calibration, net.offsets)))

    inn.calibrate(net, loader, coverage=0.5)
    net.calibration = before
    inn.evaluate({"mine": net}, subject.held_out, held_out=loader, coverage=0.5, progress=False)

    assert len(seen) >= 4 and all(calibration is before for calibration, _ in seen)
    assert net.calibration is before


def at_once(work: Callable[[int], Any]) -> list[Any]:
    start = threading.Barrier(THREADS)

    def begin(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


@pytest.mark.parametrize("layers", [1, "all"])
def test_the_first_calls_of_one_network_give_one_program(layers: Any) -> None:
    model, x = conv_net().eval(), torch.randn(2, 1, 8, 8)
    net = inn.IntervalNetwork(model, layers=layers)
    uses: list[Callable[[], Any]] = [lambda: net.predict(x).point, lambda: list(net.explain(x).rows)]

    found = at_once(lambda number: uses[number % 2]())

    assert all(torch.equal(point, model(x)) for point in found[::2])
    assert all(len(rows) == len(net.names) for rows in found[1::2])
    assert len(net._search.programs) == 1


def test_first_calls_of_many_networks_around_one_model_leave_it_as_it_is() -> None:
    model, x = conv_net().eval(), torch.randn(2, 1, 8, 8)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    wanted = model(x)

    found = at_once(
        lambda number: inn.IntervalNetwork(model, layers=number // 2 % 2 + 1 if number % 2 else "all")(x).point
    )

    assert all(torch.equal(point, wanted) for point in found)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_plain_model_runs_beside_first_calls() -> None:
    model, x, end = conv_net().eval(), torch.randn(2, 1, 8, 8), time.monotonic() + 1
    wanted, runs = model(x), []

    def plain() -> None:
        while time.monotonic() < end:
            with torch.no_grad():
                runs.append(torch.allclose(model(x), wanted, atol=1e-6))

    def first_calls() -> None:
        while time.monotonic() < end:
            inn.IntervalNetwork(mlp().eval(), layers="all").predict(torch.randn(2, 3))

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for work in (plain, plain, first_calls, first_calls)]:
            done.result()

    assert len(runs) > 10 and all(runs)


def test_recomputing_is_a_matter_of_one_thread() -> None:
    net, x = inn.IntervalNetwork(conv_net().eval(), layers="all"), torch.randn(2, 1, 8, 8)
    plain = _way(net, x)

    with net.recomputing():
        with ThreadPoolExecutor(1) as pool:
            elsewhere = pool.submit(_way, net, x).result()
        here = _way(net, x)

    assert elsewhere == plain != here
    assert _way(net, x) == plain


def _way(net: inn.IntervalNetwork, x: torch.Tensor) -> Any:
    from intervalnn.network.capture.call import Call

    return net._look_up(Call.of((x,), {}))[1]


def test_every_use_is_checked_against_what_it_is_alone() -> None:
    subject = subjects()[2].prepare()
    for wanted in subject.wanted.values():
        wanted[0] = ()

    for use in subject.wanted:
        with pytest.raises((AssertionError, ValueError)):
            subject.check(use, 0, 0)
    assert set(subject.wanted) < set(USES)


class Slow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)  # type: ignore[no-any-return]


def test_forgetting_while_others_predict_leaves_nothing_old(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Slow().eval()
    model.factor = 1.0
    monkeypatch.setattr(Slow, "forward", lambda self, x: self.layer(x) * self.factor)
    net, x, wrong, end = inn.IntervalNetwork(model, layers="all"), torch.ones(1, 2), [], threading.Event()
    net.predict(x)

    def predict() -> None:
        while not end.is_set():
            factors = [float(v) for v in (net.predict(x).point / model.layer(x)).detach().flatten()]
            wrong.extend(value for value in factors if abs(value - round(value)) > 1e-5)

    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(THREADS - 1):
            pool.submit(predict)
        for factor in range(2, 6):
            model.factor = float(factor)
            net.refresh()
            assert torch.allclose(net.predict(x).point, factor * model.layer(x))
        end.set()

    assert not wrong
