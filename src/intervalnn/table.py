"""The table of rules: what each ATen operation does to intervals, or why it refuses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import torch

from intervalnn.torch_private import OpOverload, OpOverloadPacket, arguments_of

__all__ = ["MissingRuleError", "Rule", "apply", "bound_of", "complex_rule", "lookup", "plain", "refuse", "rule"]

Operation = OpOverloadPacket | OpOverload
Sign = Literal["unknown", "keeps", "nonnegative"]
Function = TypeVar("Function", bound=Callable[..., Any])


class MissingRuleError(NotImplementedError):
    """An operation of the underlying model has no interval rule, or refuses intervals."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How one operation treats intervals.

    Attributes:
        bound: Called as ``bound(fn, *args, **kwargs)`` where at least one argument is an
            interval; returns the interval of ``fn``. None if the operation refuses intervals.
        takes: Positions of the arguments that may be intervals.
        sign: What is known of the result: ``"nonnegative"`` whatever the arguments,
            ``"keeps"`` if it is non-negative wherever all arguments in ``takes`` are;
            or a function of the arguments that says so.
        prepare: Splits the second argument into what the products need. It runs once, and
            again only when the weights change; ``bound`` then gets its result instead.
        hidden: Outputs that cannot be intervals, with the reason.
        refusal: Why intervals are refused, for those that are.
        even_plain: Refuse the operation even where no interval reaches it.
        reads_shape_only: The result does not depend on the values of the arguments in ``takes``.
        discrete: ``bound`` takes truth values and whole numbers that may change inside an interval as they are.
        complexes: Whether ``bound`` bounds complex numbers too.
    """

    bound: Callable[..., Any] | None = None
    takes: tuple[int, ...] = (0,)
    sign: Sign | Callable[..., Sign] = "unknown"
    prepare: Callable[..., Any] | None = None
    hidden: Mapping[int, str] = field(default_factory=dict)
    refusal: str = ""
    even_plain: bool = False
    reads_shape_only: bool = False
    discrete: bool = False
    complexes: bool = False

    def sign_of(self, *args: Any, **kwargs: Any) -> Sign:
        """Return what is known of the result of these arguments."""
        return self.sign(*args, **kwargs) if callable(self.sign) else self.sign


RULES: dict[Operation, Rule] = {}
COMPLEX: dict[Operation, Callable[..., Any]] = {}


def rule(
    *operations: Operation,
    takes: tuple[int, ...] = (0,),
    sign: Sign | Callable[..., Sign] = "unknown",
    prepare: Callable[..., Any] | None = None,
    hidden: Mapping[int, str] | None = None,
    discrete: bool = False,
    complexes: bool = False,
    replace: bool = False,
) -> Callable[[Function], Function]:
    """Register the decorated function as the interval rule of ``operations``.

    Args:
        operations: ATen or custom operations, ``torch.ops.aten.relu`` for all its overloads
            or ``torch.ops.aten.relu.default`` for one.
        takes: Positions of the arguments that may be intervals; an interval elsewhere is
            refused with an error that says so.
        sign: ``"nonnegative"`` if the result never is negative, ``"keeps"`` if it is
            non-negative where the arguments are: later layers then take a cheaper form. Or a
            function of the arguments that says which.
        prepare: See :class:`Rule`.
        hidden: Outputs that cannot be intervals (indices, say), with the reason.
        discrete: Take a :class:`~intervalnn.rules.discrete_values.Discrete` as it is: an answer or a whole number
            that may change inside an interval; else it is converted to floating point before, as torch itself does.
        complexes: Whether the function bounds complex numbers too. They have no order, and their intervals are
            boxes with gaps for the real and for the imaginary part; unless a rule says so, they are refused.
        replace: Replace a rule that is there already, instead of refusing to.

    Example:
        >>> import intervalnn as inn
        >>> @inn.rule(torch.ops.aten.logit.default, replace=True)  # doctest: +SKIP
        ... def logit(fn, x, eps=None):
        ...     return inn.Interval.around(fn(x.point, eps), fn(x.lower, eps), fn(x.upper, eps))
    """

    def register(function: Function) -> Function:
        _fill()
        entry = Rule(function, takes, sign, prepare, hidden or {}, discrete=discrete, complexes=complexes)
        _add(operations, entry, replace)
        return function

    return register


def complex_rule(*operations: Operation) -> Callable[[Function], Function]:
    """Register the decorated function for calls with complex numbers, of operations with another rule for real ones.

    Args:
        operations: ATen or custom operations.
    """

    def register(function: Function) -> Function:
        for operation in operations:
            if operation in COMPLEX:
                raise ValueError(f"{operation} has a rule for complex numbers already")
            COMPLEX[operation] = function
        return function

    return register


def refuse(*operations: Operation, why: str, even_plain: bool = False) -> None:
    """Register ``operations`` as ones that take no interval, and say why.

    Args:
        operations: ATen or custom operations.
        why: The reason, as the end of a sentence that starts with the operation's name.
        even_plain: Refuse them in any model, even where no interval reaches them.
    """
    _add(operations, Rule(refusal=why, even_plain=even_plain), False)


def plain(*operations: Operation, shape_of: tuple[int, ...] = ()) -> None:
    """Register operations that read no values of intervals.

    Args:
        operations: ATen or custom operations.
        shape_of: Positions of the arguments of which nothing but shape, dtype and device is read. An interval
            elsewhere is refused.
    """
    _add(operations, Rule(takes=shape_of, reads_shape_only=True), False)


def _add(operations: tuple[Operation, ...], entry: Rule, replace: bool) -> None:
    for operation in operations:
        if not isinstance(operation, OpOverloadPacket | OpOverload):
            raise TypeError(
                f"a rule belongs to an operation such as torch.ops.aten.relu, got {operation!r}; "
                "wrap a Python function with torch.library.custom_op to make it one"
            )
        if operation in RULES and not replace:
            raise ValueError(f"{operation} has a rule already; pass replace=True to replace it")
        RULES[operation] = entry


def _fill() -> Any:
    """Have the library's own rules in the table; they import this module, so it cannot import them sooner."""
    import intervalnn.rules

    return intervalnn.rules


def lookup(operation: Any) -> Rule | None:
    """Return the rule of an overload: its own, else the one of all its overloads."""
    _fill()
    own = RULES.get(operation)
    if own is None and isinstance(operation, OpOverload):
        own = RULES.get(operation.overloadpacket)
    return own


def overloads(operation: Operation) -> list[OpOverload]:
    """Return all overloads that an entry of the table stands for."""
    if isinstance(operation, OpOverload):
        return [operation]
    return [getattr(operation, name) for name in operation.overloads()]


def apply(operation: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Bound one operation, called with intervals, tensors and plain values.

    Example:
        >>> from intervalnn import Interval
        >>> x = Interval(torch.tensor([0.5]), torch.tensor([1.0]), torch.tensor([1.0]))
        >>> apply(torch.ops.aten.relu.default, x).lower
        tensor([0.])
    """
    entry = lookup(operation)
    bound = bound_of(operation, entry, args, kwargs)
    assert entry is not None
    args, kwargs = by_position(operation, args, kwargs)
    if entry.prepare is not None:
        args = (args[0], entry.prepare(operation, *args), *args[2:])
    return _fill().bounded(operation, entry, bound, *args, **kwargs)


def bound_of(operation: Any, entry: Rule | None, *values: Any) -> Callable[..., Any]:
    """Return the function that bounds a call of ``operation`` with these values.

    Raises:
        MissingRuleError: If there is none, or none for complex numbers where one of the values is complex.
    """
    if entry is None or entry.bound is None:
        raise MissingRuleError(why_not(operation, entry))
    if entry.complexes or not any(map(is_complex, values)):
        return entry.bound
    own = COMPLEX.get(operation) or COMPLEX.get(getattr(operation, "overloadpacket", operation))
    if own is None:
        raise MissingRuleError(
            f"{operation} has an interval rule for real numbers only, and is given complex ones; compute with their "
            f"real and imaginary part instead, or add a rule with intervalnn.rule({_path(operation)}, complexes=True)"
        )
    return own


def is_complex(value: Any) -> bool:
    """Say whether a value is complex, or a dtype that is, or has one that is among its parts."""
    if isinstance(value, list | tuple):
        return any(map(is_complex, value))
    if isinstance(value, dict):
        return any(map(is_complex, value.values()))
    dtype = value if isinstance(value, torch.dtype) else getattr(value, "dtype", None)
    return isinstance(value, complex) or (isinstance(dtype, torch.dtype) and dtype.is_complex)


def by_position(
    operation: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with every one by position that may be."""
    placed, named = list(args), dict(kwargs)
    missing: list[Any] = []
    for argument in arguments_of(operation)[len(placed) :] if isinstance(operation, OpOverload) else ():
        if argument.kwarg_only:
            break
        if argument.name in named:
            placed += [*missing, named.pop(argument.name)]
            missing = []
        else:
            missing.append(argument.default_value)
    return tuple(placed), named


def why_not(operation: Any, entry: Rule | None) -> str:
    """Say why ``operation`` cannot be bounded, and what can be done."""
    if entry is not None and entry.refusal:
        return f"{operation} {entry.refusal}"
    if entry is not None and entry.reads_shape_only:
        return f"{operation} returns no interval: it reads nothing but the shape of its arguments"
    return f"no interval rule for {operation}; add one with intervalnn.rule({_path(operation)})"


def _path(operation: Any) -> str:
    return f"torch.ops.{operation}" if isinstance(operation, OpOverload | OpOverloadPacket) else repr(operation)


aten = torch.ops.aten


def if_there(*names: str) -> list[Operation]:
    """Return those of the named ATen operations that this torch has; torch drops some that it had deprecated."""
    return [getattr(aten, name) for name in names if hasattr(aten, name)]
