"""What of a program is refused: intervals where a rule takes none, and what has no single value to put one around."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from intervalnn.network.capture.flat import where
from intervalnn.network.lifting.facts import Facts, is_discrete, is_truth
from intervalnn.table import MissingRuleError, Rule, aten, bound_of, by_position, why_not
from intervalnn.torch_private import OpOverload, arguments_of, pytree

__all__ = ["bound_or_refused", "refuse_as_argument", "refuse_output", "refuse_part", "refuse_random", "refuse_subgraph"]

_BY_INDEX = {aten.index.Tensor, aten._unsafe_index.Tensor}


def refuse_random(node: fx.Node, entry: Rule | None) -> None:
    """Raise for an operation that no model may call, and for one that draws random numbers."""
    if entry is not None and entry.even_plain:
        raise MissingRuleError(f"{why_not(node.target, entry)} ({where(node)})")
    if isinstance(node.target, OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags:
        args, _ = by_position(node.target, node.args, node.kwargs)
        attention = node.target is aten.scaled_dot_product_attention.default
        if not attention or (len(args) > 4 and args[4] != 0.0):
            raise MissingRuleError(
                f"{node.target} draws random numbers, so the model has no single prediction to bound; "
                f"call model.eval() ({where(node)})"
            )


def refuse_subgraph(node: fx.Node) -> None:
    """Raise for a function that a program holds beside its graph, in the name of the operation that takes it."""
    name = next(iter(node.users)).target
    raise MissingRuleError(
        f"torch's higher-order operation {name} runs functions of its own, without interval rules ({where(node)}); "
        "write a branch with torch.where, and a loop in Python"
    )


def refuse_part(node: fx.Node, facts: Facts) -> None:
    """Raise if a node takes that part of a result with several which is no interval."""
    whole, index = node.args
    assert isinstance(whole, fx.Node)
    fact = facts[whole]
    if fact.interval and index in fact.hidden and node.users:
        raise MissingRuleError(f"output {index} of {whole.target} {fact.hidden[index]} ({where(whole)})")  # type: ignore[index]


def refuse_output(value: fx.Node, facts: Facts) -> None:
    """Raise if the model returns a truth value or a whole number that may change inside an interval."""
    if facts[value].interval and is_discrete(value):
        raise MissingRuleError(
            f"the model returns the result of {value.target}, a truth value or a whole number, which has no "
            f"bounds: inside an interval it may change ({where(value)}); return the scores that it is made of"
        )


def refuse_as_argument(node: fx.Node, entry: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], facts: Facts) -> None:
    """Raise if an interval is an argument where the rule takes none."""
    if node.target in _BY_INDEX and any(facts[n].interval and is_truth(n) for n in _nodes(args[1])):
        raise MissingRuleError(
            f"{node.target} picks by a mask that may change inside an interval, and with it the shape of the "
            f"result ({where(node)}); choose with torch.where instead"
        )
    operation: Any = node.target
    given: list[tuple[Any, Any]] = [*enumerate(args), *kwargs.items()]
    for position, value in given:
        if position not in entry.takes and any(facts[leaf].interval for leaf in _nodes(value)):
            name = position if isinstance(position, str) else arguments_of(operation)[position].name
            raise MissingRuleError(
                f"{operation} takes no interval as its argument '{name}' ({where(node)}); keep that value "
                "out of reach of the interval layers, or register a rule with intervalnn.rule"
            )


def bound_or_refused(node: fx.Node, entry: Rule | None, args: Any, kwargs: Any) -> Any:
    """Return the function that bounds a call, by its operation and by whether it is given complex numbers."""
    try:
        return bound_of(node.target, entry, *fx.map_arg((args, kwargs), lambda n: n.meta.get("val")))
    except MissingRuleError as error:
        raise MissingRuleError(f"{error} ({where(node)})") from None


def _nodes(value: Any) -> list[fx.Node]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, fx.Node)]
