"""Programs: what a network was called with last, and how that is run."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from torch import Tensor, nn

from intervalnn.interval import Interval
from intervalnn.network.plan import Plan

__all__ = ["Programs", "Recent"]

PROGRAMS = 32  # that are kept: each holds a graph
PREPARED = 4  # of which so many hold what was made of the weights, several times as large as these
SIZES = 1024  # of inputs, whose programs are found without asking each

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """A least-recently-used cache of what was made, by key.

    Args:
        most: How many are kept.

    Example:
        >>> squares = Recent(2)
        >>> [squares.get(n, lambda n: n * n) for n in (1, 2, 3)], len(squares)
        ([1, 4, 9], 2)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._items: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Key, make: Callable[[Key], Value]) -> Value:
        """Return what belongs to a key, made if need be; by one thread, while others wait."""
        with self._lock:
            found = self._items[key] if key in self._items else make(key)
            self._items[key] = found
            self._items.move_to_end(key)
            if len(self._items) > self.most:
                self._items.popitem(last=False)
            return found

    def __len__(self) -> int:
        return len(self._items)


class Programs:
    """The programs of the calls that a network has met last.

    A service may meet new sizes, structures and numbers in every call. So this is a least-recently-used cache: the
    program that was longest unused is dropped, and captured again when a call needs it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: OrderedDict[Plan, Hashable] = OrderedDict()  # with what its calls have in common; latest last
        self._sizes: dict[Hashable, Plan] = {}

    def __len__(self) -> int:
        return len(self._plans)

    def like(self, key: Hashable) -> list[Plan]:
        """Return those for calls that differ in sizes alone."""
        with self._lock:
            return [plan for plan, own in self._plans.items() if own == key]

    def find(self, key: Hashable, tensors: Sequence[Tensor | Interval], model: nn.Module) -> Plan | None:
        """Return the plan for a call, if there is one.

        Args:
            key: What such calls have in common, but for the sizes.
            tensors: Its tensors.
            model: The model, of which a program may have read a buffer.
        """
        sizes = (key, *(tensor.shape for tensor in tensors))
        plan = self._sizes.get(sizes)
        if plan is None or not plan.program.holds(model, tensors):
            like = (each for each in self.like(key) if each.program.fits(tensors))
            plan = next((each for each in like if each.program.holds(model, tensors)), None)
        if plan is not None:
            self._use(plan, key, sizes)
        return plan

    def add(self, plan: Plan, key: Hashable) -> None:
        """Take up the plan for a call that had none."""
        self._use(plan, key)

    def _use(self, plan: Plan, key: Hashable, sizes: Hashable = None) -> None:
        with self._lock:
            self._plans[plan] = key
            self._plans.move_to_end(plan)
            if sizes is not None:
                self._sizes[sizes] = plan
            if len(self._plans) > PROGRAMS or len(self._sizes) > SIZES:
                self._sizes.clear()  # a shortcut, which else would keep what is forgotten
            while len(self._plans) > PROGRAMS:
                self._plans.popitem(last=False)
            for old in list(self._plans)[:-PREPARED]:
                old.prepared = None
