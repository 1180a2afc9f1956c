from __future__ import annotations

import threading
import time

import pytest

from intervalnn.network.capture.turns import Turns


def test_many_run_together_and_one_alone() -> None:
    turns, running, most, seen = Turns(), 0, 0, []
    lock, end = threading.Lock(), time.monotonic() + 0.5

    def together() -> None:
        nonlocal running, most
        while time.monotonic() < end:
            with turns.together():
                with lock:
                    running += 1
                    most = max(most, running)
                time.sleep(0.001)
                with lock:
                    running -= 1

    def alone() -> None:
        while time.monotonic() < end:
            with turns.alone():
                seen.append(running)
                time.sleep(0.002)
                seen.append(running)
            time.sleep(0.005)

    workers = [threading.Thread(target=work) for work in (together, together, together, alone, alone)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert most > 1, "they have waited for each other"
    assert len(seen) > 10 and not any(seen)


def test_a_thread_never_waits_for_itself() -> None:
    turns = Turns()

    with turns.together(), turns.alone(), turns.together():
        pass
    with turns.alone(), turns.together(), turns.alone():
        pass


def test_one_that_runs_may_go_deeper_while_another_waits_to_be_alone() -> None:
    turns, order = Turns(), []

    def alone() -> None:
        with turns.alone():
            order.append("alone")

    with turns.together():
        other = threading.Thread(target=alone)
        other.start()
        while turns._alone is None:
            time.sleep(0.001)
        with turns.together():
            order.append("together")
    other.join()

    assert order == ["together", "alone"]


def test_what_fails_gives_its_turn_back() -> None:
    turns = Turns()

    for turn in (turns.alone, turns.together):
        with pytest.raises(ValueError, match="mine"), turn():
            raise ValueError("mine")

    with turns.alone():
        pass
