"""Rewrites: what of a program is computed otherwise over intervals, for tighter bounds or fewer products.

Each rewrite says which nodes it is for, by the facts of what these take, and puts other nodes in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from torch import fx

from intervalnn.network.capture.program import Program
from intervalnn.network.lifting.facts import Fact, Facts, is_discrete, is_real
from intervalnn.rules.arithmetic import point_of
from intervalnn.rules.products.factors import Repeated, joined
from intervalnn.rules.products.layers import prepare_layer, stretches
from intervalnn.rules.products.repeats import repeats_before
from intervalnn.rules.structure import copies, nearest, upsampled
from intervalnn.table import aten, bound_of, by_position, lookup

__all__ = ["REWRITES", "Rewrite", "rewritten"]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite.

    Attributes:
        matches: Says whether a node is to be replaced; called with the node and the facts of those before it.
        replace: Changes the node, the nodes in front of it, or the facts.
    """

    matches: Callable[[fx.Node, Facts], bool]
    replace: Callable[[fx.Node, Facts], None]


def rewritten(program: Program, intervals: Collection[str], by_input: Collection[str] = ()) -> Facts:
    """Return a copy of a program, rewritten for the placeholders in ``intervals``, and the facts of its nodes."""
    facts = Facts(program, intervals, by_input)
    for node in facts.graph.nodes:
        for rewrite in REWRITES:
            if rewrite.matches(node, facts):
                rewrite.replace(node, facts)
        facts.find(node)
    return facts


# --- views: the gaps may lie in memory otherwise than the point does ---


def _is_view(node: fx.Node, facts: Facts) -> bool:
    return node.target in (aten.view.default, aten._unsafe_view.default)


def _reshape(node: fx.Node, facts: Facts) -> None:
    args, _ = by_position(node.target, node.args, node.kwargs)
    node.target, node.args, node.kwargs = aten.reshape.default, args, {}


# --- a product of a value by itself is a square, whose factors move together ---


def _is_square(node: fx.Node, facts: Facts) -> bool:
    if node.target is not aten.mul.Tensor or node.args[0] is not node.args[1]:
        return False
    return any(facts[x].interval and not is_discrete(x) for x in node.all_input_nodes)


def _square(node: fx.Node, facts: Facts) -> None:
    square, (x, *_) = aten.square.default, node.all_input_nodes
    if is_real(node):
        node.target, node.args = square, (x,)
        return
    mul: Any = node.target  # complex ones are rounded otherwise
    node.target, node.args = bound_of(square, lookup(square), x.meta["val"]), (mul, x)
    facts[node] = Fact(True, facts.weight(node), as_is=True)


# --- parts that are joined for a product alone, which joins what it makes of each ---


def _is_of_joined(node: fx.Node, facts: Facts) -> bool:
    first = _first_factor(node)
    return first is not None and first.target is aten.cat.default and facts[first].interval and not is_discrete(first)


def _join_late(node: fx.Node, facts: Facts) -> None:
    (first, *rest), kwargs = by_position(node.target, node.args, node.kwargs)
    (parts, *dim), _ = by_position(first.target, first.args, first.kwargs)
    rank = len(first.meta["val"].shape)
    axis = (dim[0] if dim else 0) % rank - rank
    late = facts.insert(node, first, joined, parts, axis, interval=True, nonneg=facts[first].nonneg)
    node.args, node.kwargs = (late, *rest), kwargs
    _tell(node, facts, moving=_moving(parts, axis, facts))


def _moving(parts: list[fx.Node], axis: int, facts: Facts) -> tuple[int, int, int] | None:
    """Return along which dimension and from where to where joined parts may have gaps, if not everywhere."""
    sizes = [part.meta["val"].shape[axis] for part in parts]
    moves = [i for i, part in enumerate(parts) if facts[part].interval]
    if len(moves) == len(parts) or not all(isinstance(size, int) for size in sizes):
        return None
    return axis, sum(sizes[: moves[0]]), sum(sizes[: moves[-1] + 1])


# --- values that are upsampled before a layer, which takes each of them once ---


def _is_of_upsampled(node: fx.Node, facts: Facts) -> bool:
    return _repeats(node, facts) is not None


def _take_once(node: fx.Node, facts: Facts) -> None:
    repeats = _repeats(node, facts)
    (first, *rest), kwargs = by_position(node.target, node.args, node.kwargs)
    upsampling, padding, _ = _upsampling(first)
    (source, *how), _ = by_position(upsampling.target, upsampling.args, upsampling.kwargs)
    point = facts.insert(node, source, point_of, source, interval=False)
    point = facts.insert(node, upsampling, upsampled, upsampling.target, point, *how)
    if padding is not None:
        args, _ = by_position(padding.target, padding.args, padding.kwargs)
        point = facts.insert(node, padding, padding.target, point, *args[1:])  # type: ignore[arg-type]
    once = facts.insert(node, first, Repeated, point, source, interval=True, nonneg=facts[first].nonneg)
    node.args, node.kwargs = (once, *rest), kwargs
    _tell(node, facts, repeats=repeats)


def _repeats(node: fx.Node, facts: Facts) -> tuple[tuple[int, ...], ...] | None:
    """Return how often values stand side by side in the first factor of a layer, and the zeros around them, if so."""
    first, entry = _first_factor(node), lookup(node.target)
    if first is None or not facts[first].interval or entry is None or entry.prepare is not prepare_layer:
        return None
    upsampling, _, zeros = _upsampling(first)
    repeat = lookup(upsampling.target)
    if repeat is None or repeat.bound is not nearest:
        return None
    (_, *how), _ = by_position(upsampling.target, upsampling.args, upsampling.kwargs)
    (_, weight, *rest), _ = by_position(node.target, node.args, node.kwargs)  # the first of the rest is a bias
    times = copies(*how[:2])
    return repeats_before(node.target, weight.meta["val"], tuple(rest[1:]), times, zeros) if times else None


def _upsampling(node: fx.Node) -> tuple[fx.Node, fx.Node | None, list[int]]:
    """Return an upsampling to nearest neighbours, the zeros put around it, if any, and how many these are."""
    if node.target not in (aten.pad.default, aten.constant_pad_nd.default):
        return node, None, []
    (inner, sizes, *how), _ = by_position(node.target, node.args, node.kwargs)
    if all(value in ("constant", 0, None) for value in how) and all(isinstance(n, int) and n >= 0 for n in sizes):
        return inner, node, sizes
    return node, None, []


# --- gaps that are shares of every input, carried by the inputs where nothing but layers take the weight ---


def _is_stretched(node: fx.Node, facts: Facts) -> bool:
    return node.name in facts.by_input and all(_lets_inputs_carry(user, node) for user in node.users)


def _stretch(node: fx.Node, facts: Facts) -> None:
    facts.find(node)
    facts[node] = replace(facts[node], stretched=True)


def _lets_inputs_carry(user: fx.Node, weight: fx.Node) -> bool:
    entry = lookup(user.target)
    if entry is None or entry.prepare is not prepare_layer:
        return False
    (first, second, *rest), _ = by_position(user.target, user.args, user.kwargs)
    if second is not weight or any(weight is other for other in (first, *rest)):
        return False
    return stretches(user.target, weight.meta["val"], tuple(rest[1:]))


def _tell(product: fx.Node, facts: Facts, **told: Any) -> None:
    """Have the rule that prepares a product told more."""
    facts.find(product)
    facts[product] = replace(facts[product], told=told)


def _first_factor(node: fx.Node) -> fx.Node | None:
    """Return the first factor of a product whose second one is prepared; None of anything else."""
    entry = lookup(node.target) if node.op == "call_function" else None
    args = by_position(node.target, node.args, node.kwargs)[0] if entry is not None and entry.prepare else ()
    return args[0] if args and isinstance(args[0], fx.Node) else None


REWRITES = [
    Rewrite(_is_view, _reshape),
    Rewrite(_is_square, _square),
    Rewrite(_is_of_joined, _join_late),
    Rewrite(_is_of_upsampled, _take_once),
    Rewrite(_is_stretched, _stretch),
]
