"""What a capture changes in torch is put back, whatever interrupts it, and meanwhile no other thread notices."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import warnings
from typing import Any

import pytest
import torch
import torch.export.exported_program as exporting
from torch import Tensor, nn

import intervalnn as inn
from intervalnn.network.capture.quiet import quiet
from intervalnn.network.capture.undisturbed import TABLES, undisturbed
from leftovers import Snapshot


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.Softshrink(), nn.Linear(4, 2)).eval()


def test_the_check_finds_an_override_that_was_left() -> None:
    before = Snapshot()
    kernels = torch.ops.aten.adaptive_avg_pool2d.default.py_kernels
    kernels[torch._C.DispatchKey.CompositeImplicitAutograd] = lambda *args: NotImplemented

    left = before.differences()

    assert len(left) == 1 and "aten.adaptive_avg_pool2d.default has other kernels" in left[0]
    assert not before.differences() and not kernels


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("change", "back", "told"),
    [
        (lambda: torch.backends.mha.set_fastpath_enabled(False), lambda: torch.backends.mha.set_fastpath_enabled(True),
         "the fast path of attention is False"),
        (lambda: logging.getLogger("torch").setLevel(7), lambda: None, "the logger torch has level 7"),
        (lambda: setattr(nn.Module, "__call__", print), lambda: None, "Module.__call__ was replaced"),
        (lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True), "gradients is"),
    ],
)  # fmt: skip
def test_the_check_finds_what_else_was_left(change: Any, back: Any, told: str) -> None:
    before = Snapshot()
    change()

    left = before.differences()
    back()

    assert len(left) == 1 and told in left[0]


def test_ctrl_c_leaves_no_kernels_overridden(monkeypatch: pytest.MonkeyPatch) -> None:
    before, true = Snapshot(), exporting._get_decomp_for_cia
    calls: list[Any] = []

    def stopping(op: Any) -> Any:
        calls.append(op)
        if len(calls) == 40:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)  # the main thread is told of it within that
        return true(op)

    monkeypatch.setattr(exporting, "_get_decomp_for_cia", stopping)

    with pytest.raises(KeyboardInterrupt):
        inn.IntervalNetwork(small(), layers="all")(torch.ones(2, 3))

    assert not before.differences()
    assert inn.IntervalNetwork(small(), layers="all")(torch.ones(2, 3)).point.isfinite().all()


def test_what_is_interrupted_ends_by_itself() -> None:
    started, ended = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        undisturbed(work)

    assert started.is_set() and not ended.is_set()
    with TABLES:
        assert ended.is_set()


def test_it_runs_where_the_caller_stands() -> None:
    def here() -> Any:
        return (
            torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled(), torch.zeros(1).device,
        )  # fmt: skip

    for surroundings in (
        torch.no_grad(), torch.inference_mode(), torch.device("meta"),
        torch.autocast("cpu", torch.float16, cache_enabled=False), torch.enable_grad(),
    ):  # fmt: skip
        with surroundings:
            assert undisturbed(here) == here()


def test_its_errors_are_the_callers() -> None:
    with pytest.raises(KeyError, match="own"):
        undisturbed(lambda: {}["own"])


def test_a_network_inside_a_model_is_refused_and_does_not_wait_for_itself() -> None:
    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = (inn.IntervalNetwork(small(), layers="all"),)
            self.layer = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(self.inner[0](x).point)

    with pytest.raises(ValueError, match="could not capture"):
        inn.IntervalNetwork(Nested().eval(), layers="all")(torch.ones(2, 3))


# --- quiet ---


def test_quiet_is_this_thread_alone(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []
    logs: list[str] = []
    logger, handler = logging.getLogger("torch.fx"), logging.Handler()
    handler.emit = lambda record: logs.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)

    def elsewhere() -> None:
        print("printed elsewhere")
        logger.error("logged elsewhere")
        try:
            warnings.warn("warned elsewhere", stacklevel=1)
        except UserWarning as warning:
            heard.append(str(warning))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with quiet():
            print("printed here")
            print("printed here", file=sys.stderr)
            logger.error("logged here")
            warnings.warn("warned here", stacklevel=1)
            other = threading.Thread(target=elsewhere)
            other.start()
            other.join()

    logger.removeHandler(handler)
    assert heard == ["warned elsewhere"] and logs == ["logged elsewhere"]
    printed, noted = capsys.readouterr()
    assert printed == "printed elsewhere\n"
    assert all(line.endswith("logged elsewhere") for line in noted.splitlines())  # as torch's own handler writes it


def test_what_another_thread_puts_in_place_meanwhile_stays() -> None:
    with warnings.catch_warnings():
        own = quiet()
        own.__enter__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BytesWarning)
            before = list(warnings.filters)
            own.__exit__(None, None, None)

            assert ("ignore", None, BytesWarning, None, 0) in warnings.filters
            assert len(warnings.filters) == len(before) - 1
        with pytest.raises(UserWarning, match="heard again"):  # although the list of before has come back
            warnings.warn("heard again", stacklevel=1)
