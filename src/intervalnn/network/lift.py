"""A program over tensors to a program over intervals, with the rules of the table.

The result is two flat graphs. The first depends on the weights alone (splits them, applies
parametrisations) and runs again only when they change. The second takes what the first has
made, and the inputs. What no interval can reach stays a plain operation in both.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx, nn
from torch._ops import OpOverload

from intervalnn.interval import Interval
from intervalnn.network.capture import Program, where
from intervalnn.rules.answers import Discrete
from intervalnn.rules.discrete import discrete_way
from intervalnn.rules.products.bilinear import Repeated, joined, prepare_layer, repeats_before, stretches
from intervalnn.rules.structure import copies, nearest, upsampled
from intervalnn.table import RULES, MissingRuleError, Rule, aten, bound_of, by_position, lookup, why_not

_BY_INDEX = {aten.index.Tensor, aten._unsafe_index.Tensor}
_VIEWS = {aten.view.default: aten.reshape.default, aten._unsafe_view.default: aten.reshape.default}


@dataclass(frozen=True, slots=True)
class Form:
    """How products are bounded: see :mod:`intervalnn.rules.products.bilinear`."""

    exact: bool = False
    gap_dtype: torch.dtype | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one value before anything runs.

    Attributes:
        interval: Whether it may be an interval.
        weight: Whether it depends on the weights alone.
        nonneg: Whether it is never negative.
        hidden: For a result of several parts, those that are not intervals, with the reason.
    """

    interval: bool
    weight: bool
    nonneg: bool
    hidden: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lifted:
    """A program over intervals.

    Attributes:
        prepare: From the weights to all that the second graph needs of them.
        run: From that and the inputs to the outputs.
        weights: Names of the placeholders of ``prepare``.
        inputs: Names of the placeholders of ``run`` that are inputs of the model.
        stretched: Those of ``weights`` that are to be given as :class:`intervalnn.rules.products.stretched.Stretched`.
        makes_points: Whether ``prepare`` computes points, and not only what bounds are made of.
    """

    prepare: fx.GraphModule
    run: fx.GraphModule
    weights: list[str]
    inputs: list[str]
    stretched: frozenset[str] = frozenset()
    makes_points: bool = False


def lift(program: Program, intervals: set[str], form: Form, by_input: Collection[str] = ()) -> Lifted:
    """Return ``program`` over intervals, for the placeholders in ``intervals``.

    Weights in ``by_input`` have gaps that are shares of every input: where nothing but layers take such a weight,
    the inputs of these carry the shares.

    Raises:
        MissingRuleError: If an interval meets an operation that has no rule, or refuses it.
    """
    return _Lift(program, intervals, form, by_input).lifted()


def whole(lifted: Lifted, gaps: Mapping[str, nn.Module], gap_dtype: torch.dtype | None) -> fx.GraphModule:
    """Return one graph of both, from the weights as the model has them and the inputs to the outputs.

    Args:
        lifted: The program over intervals.
        gaps: Modules that put gaps around weights, by the names of these.
        gap_dtype: Data type in which gaps are propagated.
    """
    graph = fx.Graph()
    weights, taken = (part.graph.find_nodes(op="placeholder") for part in (lifted.prepare, lifted.run))
    handed_over, inputs = taken[: -len(lifted.inputs)], taken[-len(lifted.inputs) :]
    values = {node: graph.placeholder(node.name) for node in (*weights, *inputs)}  # first: they keep their names
    for node in weights:
        if node.name in gaps:
            values[node] = graph.call_module(node.name, (values[node], gap_dtype, node.name in lifted.stretched))
    handed = graph.graph_copy(lifted.prepare.graph, values)
    assert isinstance(handed, tuple)
    values |= dict(zip(handed_over, handed, strict=True))
    graph.output(graph.graph_copy(lifted.run.graph, values))
    return fx.GraphModule(dict(gaps), graph)


class _Lift:
    """One walk over the graph, node by node, writing both of the new graphs."""

    def __init__(self, program: Program, intervals: set[str], form: Form, by_input: Collection[str]) -> None:
        self.program = program
        self.intervals = intervals
        self.form = form
        placeholders = (node for node in program.graph.nodes if node.op == "placeholder")
        self.stretched = frozenset(n.name for n in placeholders if n.name in by_input and _only_layers_take(n))
        self.facts: dict[fx.Node, Fact] = {}
        self.made: dict[fx.Node, fx.Node] = {}  # a node of the program to its counterpart
        self.handed: dict[fx.Node, fx.Node] = {}  # a node of `prepare` to its placeholder in `run`
        self.prepare, self.run = fx.Graph(), fx.Graph()

    def lifted(self) -> Lifted:
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node)
        self.first_input = next(iter(self.run.nodes))
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self._call(node)
                self._mark(node)
            elif node.op == "output":
                self._output(node)
            elif node.op != "placeholder":
                _refuse_subgraph(node)
        self.prepare.output(tuple(self.handed))
        self.run.eliminate_dead_code()  # joined values that products take part by part
        sources, splits = self.program.sources, {entry.prepare for entry in RULES.values()}
        return Lifted(
            fx.GraphModule({}, self.prepare),
            fx.GraphModule({}, self.run),
            [name for name in sources if sources[name].kind != "input"],
            [name for name in sources if sources[name].kind == "input"],
            self.stretched,
            any(node.op == "call_function" and node.target not in splits for node in self.prepare.nodes),
        )

    def _placeholder(self, node: fx.Node) -> None:
        weight = self.program.sources[node.name].kind != "input"
        self.facts[node] = Fact(node.name in self.intervals, weight, nonneg=False)
        self.made[node] = (self.prepare if weight else self.run).placeholder(node.name)

    def _output(self, node: fx.Node) -> None:
        results = []
        for value in node.args[0]:  # type: ignore[union-attr]
            if isinstance(value, fx.Node) and self.facts[value].interval and _is_discrete(value):
                raise MissingRuleError(
                    f"the model returns the result of {value.target}, a truth value or a whole number, which has no "
                    f"bounds: inside an interval it may change ({where(value)}); return the scores that it is made of"
                )
            made = self._hand(value) if isinstance(value, fx.Node) else value
            results.append(self.run.call_function(finish, (made,)) if isinstance(value, fx.Node) else made)
        self.run.output(tuple(results))

    def _call(self, node: fx.Node) -> None:
        entry = lookup(node.target)
        parents = [self.facts[parent] for parent in node.all_input_nodes]
        weight = all(fact.weight for fact in parents)
        reached = any(fact.interval for fact in parents)
        _refuse_random(node, entry)
        if node.target is operator.getitem:
            made, fact = self._part(node, weight)
        elif reached and not (entry is not None and entry.reads_shape_only):
            made, fact = self._bounded(node, entry, weight)
        else:
            made, fact = self._plain(node, entry, weight)
        self.made[node], self.facts[node] = made, fact

    def _mark(self, node: fx.Node) -> None:
        """Note in what was made of a node where it comes from, for a failure to be told in the model's line."""
        for graph in (self.prepare, self.run):
            for made in reversed(graph.nodes):
                if made.op == "placeholder" or made.meta.setdefault("of", node) is not node:
                    break

    def _part(self, node: fx.Node, weight: bool) -> tuple[fx.Node, Fact]:
        """One of the results of an operation with several."""
        whole, index = node.args
        assert isinstance(whole, fx.Node)
        fact = self.facts[whole]
        if fact.interval and index in fact.hidden and node.users:
            raise MissingRuleError(f"output {index} of {whole.target} {fact.hidden[index]} ({where(whole)})")  # type: ignore[index]
        made = self._graph(weight).call_function(operator.getitem, (self._value(whole, weight), index))
        return made, Fact(fact.interval and index not in fact.hidden, weight, fact.nonneg)

    def _plain(self, node: fx.Node, entry: Rule | None, weight: bool) -> tuple[fx.Node, Fact]:
        """An operation that no interval reaches, or that reads nothing but shapes."""
        if entry is not None and entry.reads_shape_only:
            self._check(node, entry, *by_position(node.target, node.args, node.kwargs))
        args, kwargs = self._points(node.args, weight), self._points(dict(node.kwargs), weight)
        fact = Fact(False, weight, self._nonneg(node, entry))
        target = _VIEWS.get(node.target, node.target)  # type: ignore[call-overload]
        return self._graph(weight).call_function(target, args, kwargs), fact

    def _bounded(self, node: fx.Node, entry: Rule | None, weight: bool) -> tuple[fx.Node, Fact]:
        """An operation that an interval reaches."""
        target = _VIEWS.get(node.target, node.target)  # type: ignore[call-overload]
        args, kwargs = by_position(node.target, node.args, node.kwargs)
        if target is aten.mul.Tensor and args[0] is args[1]:
            target = aten.square.default if _is_real(node) else target  # complex ones are rounded otherwise
            entry, args = lookup(aten.square.default), args[:1]
        bound = _bound_of(node, target, entry, args, kwargs)
        assert entry is not None
        self._check(node, entry, args, kwargs)
        discrete = [n for n in node.all_input_nodes if self.facts[n].interval and _is_discrete(n)]
        if discrete and not entry.discrete:
            return self._with_discrete(node, entry, bound, args, kwargs, weight)
        made_args = self._map(args, weight)
        if entry.prepare is not None:
            repeats = self._repeats(target, entry, args)
            first = self._once(args[0], weight) if repeats else self._parts(args[0], weight) or made_args[0]
            form = {"repeats": repeats} if repeats else {}
            made_args = (first, self._prepared(target, entry, args, weight, form), *made_args[2:])
        made = self._graph(weight).call_function(bound, (target, *made_args), self._map(kwargs, weight))
        return made, Fact(True, weight, self._nonneg(node, entry), dict(entry.hidden))

    def _with_discrete(
        self, node: fx.Node, entry: Rule, bound: Any, args: tuple[Any, ...], kwargs: dict[str, Any], weight: bool
    ) -> tuple[fx.Node, Fact]:
        """An operation that knows nothing of truth values and whole numbers that may change, and that takes some."""
        graph, values, target = self._graph(weight), self._map(kwargs, weight), node.target
        assert isinstance(target, OpOverload)
        fact = Fact(True, weight, self._nonneg(node, entry), dict(entry.hidden))
        if _is_discrete(node):
            try:
                bound = discrete_way(target, entry)
            except MissingRuleError as error:
                raise MissingRuleError(f"{error} ({where(node)})") from None
            return graph.call_function(bound, (target, *self._map(args, weight)), values), fact
        dtype = _tensors(node)[0].dtype.to_real()

        def take(n: fx.Node) -> fx.Node:
            made = self._value(n, weight)
            known = self.facts[n].interval and _is_discrete(n)
            return graph.call_method("interval", (made, dtype)) if known else made

        return graph.call_function(bound, (target, *fx.map_arg(args, take)), values), fact

    def _prepared(self, target: Any, entry: Rule, args: tuple[Any, ...], weight: bool, more: dict[str, Any]) -> fx.Node:
        """The second factor of a product, split where it is known."""
        first, second, *rest = args
        assert entry.prepare is not None
        side = self.facts[second].weight
        form: dict[str, Any] = more | {
            "by_interval": self.facts[first].interval,
            "nonneg": self.facts[first].nonneg,
            "exact": self.form.exact,
            "gap_dtype": self.form.gap_dtype,
            "moving": self._moving(first),
        }
        rest = [None if isinstance(arg, fx.Node) else arg for arg in rest]  # a bias, or sizes that need not be known
        call = (target, None, self._value(second, side), *fx.map_arg(rest, lambda _: 0))
        split = self._graph(side).call_function(entry.prepare, call, form)
        return split if side == weight else self._across(split)

    def _parts(self, node: fx.Node, weight: bool) -> fx.Node | None:
        """The parts of a joined value, which a product joins in its own way."""
        if node.target is not aten.cat.default or not self.facts[node].interval:
            return None
        axis: Any = node.args[1] if len(node.args) > 1 else 0
        rank = len(node.meta["val"].shape)
        return self._graph(weight).call_function(joined, (self._map(node.args[0], weight), axis % rank - rank))

    def _repeats(self, target: Any, entry: Rule, args: tuple[Any, ...]) -> tuple[tuple[int, ...], ...] | None:
        """How often values stand side by side in the first factor of a layer, and the zeros around them."""
        first, second, *rest = args  # of which the first is a bias
        upsampling, _, zeros = _upsampling(first)
        repeat = lookup(upsampling.target)
        if entry.prepare is not prepare_layer or repeat is None or repeat.bound is not nearest:
            return None
        (_, *how), _ = by_position(upsampling.target, upsampling.args, upsampling.kwargs)
        times = copies(*how[:2]) if self.facts[first].interval else None
        return repeats_before(target, second.meta["val"], tuple(rest[1:]), times, zeros) if times else None

    def _once(self, node: fx.Node, weight: bool) -> fx.Node:
        """Values that are upsampled before a layer: each once with its gaps, and the points as the model has them."""
        upsampling, padding, _ = _upsampling(node)
        (source, *how), _ = by_position(upsampling.target, upsampling.args, upsampling.kwargs)
        graph, values = self._graph(weight), self._value(source, weight)
        point = graph.call_function(_point, (values,))
        point = graph.call_function(upsampled, (upsampling.target, point, *how))  # type: ignore[arg-type]
        if padding is not None:
            pad: Any = padding.target
            point = graph.call_function(pad, (point, *padding.args[1:]), dict(padding.kwargs))
        return graph.call_function(Repeated, (point, values))

    def _moving(self, node: fx.Node) -> tuple[int, int, int] | None:
        """Of a joined value, along which dimension and from where to where it may have gaps."""
        if node.target is not aten.cat.default or not self.facts[node].interval:
            return None
        parts: list[fx.Node] = node.args[0]  # type: ignore[assignment]
        shape = node.meta["val"].shape
        axis: Any = node.args[1] if len(node.args) > 1 else 0
        dim = axis % len(shape)
        sizes = [part.meta["val"].shape[dim] for part in parts]
        if not all(isinstance(size, int) for size in sizes):
            return None
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        moves = [i for i, part in enumerate(parts) if self.facts[part].interval]
        if len(moves) == len(parts):
            return None
        return dim - len(shape), ends[moves[0]] - sizes[moves[0]], ends[moves[-1]]

    def _check(self, node: fx.Node, entry: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse intervals where the rule takes none."""
        if node.target in _BY_INDEX and any(self.facts[n].interval and _is_truth(n) for n in _nodes(args[1])):
            raise MissingRuleError(
                f"{node.target} picks by a mask that may change inside an interval, and with it the shape of the "
                f"result ({where(node)}); choose with torch.where instead"
            )
        for position, value in [*enumerate(args), *kwargs.items()]:
            for leaf in pytree.tree_leaves(value):
                if isinstance(leaf, fx.Node) and self.facts[leaf].interval and position not in entry.takes:
                    name = position if isinstance(position, str) else node.target._schema.arguments[position].name  # type: ignore[union-attr]
                    raise MissingRuleError(
                        f"{node.target} takes no interval as its argument '{name}' ({where(node)}); keep that value "
                        "out of reach of the interval layers, or register a rule with intervalnn.rule"
                    )

    def _nonneg(self, node: fx.Node, entry: Rule | None) -> bool:
        """Say whether the result is known never to be negative."""
        if entry is None:
            return False
        sign = entry.sign_of(*node.args, **node.kwargs)
        taken = pytree.tree_leaves([node.args[i] for i in entry.takes if i < len(node.args)])
        if sign == "unknown" or not _is_real(node) or not all(_is_real(n) or _is_truth(n) for n in taken):
            return False
        if sign == "nonnegative":
            return True
        if any(isinstance(v, int | float) and v < 0 for v in node.kwargs.values()):
            return False
        return all(self._leaf_nonneg(leaf) for leaf in taken)

    def _leaf_nonneg(self, leaf: Any) -> bool:
        if isinstance(leaf, fx.Node):
            return self.facts[leaf].nonneg or _is_truth(leaf)
        return leaf is None or (isinstance(leaf, int | float) and leaf >= 0)

    def _graph(self, weight: bool) -> fx.Graph:
        return self.prepare if weight else self.run

    def _value(self, node: fx.Node, weight: bool) -> fx.Node:
        """The counterpart of ``node``, in the graph of the weights or in the other."""
        return self.made[node] if weight else self._hand(node)

    def _hand(self, node: fx.Node) -> fx.Node:
        made = self.made[node]
        return self._across(made) if self.facts[node].weight else made

    def _across(self, made: fx.Node) -> fx.Node:
        """Hand a value from the graph of the weights over to the other."""
        if made not in self.handed:
            with self.run.inserting_before(self.first_input):
                self.handed[made] = self.run.placeholder(f"w_{made.name}")
        return self.handed[made]

    def _map(self, value: Any, weight: bool) -> Any:
        return fx.map_arg(value, lambda n: self._value(n, weight))

    def _points(self, value: Any, weight: bool) -> Any:
        def take(n: fx.Node) -> fx.Node:
            made = self._value(n, weight)
            return self._graph(weight).call_function(_point, (made,)) if self.facts[n].interval else made

        return fx.map_arg(value, take)


def _nodes(value: Any) -> list[fx.Node]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, fx.Node)]


def _tensors(value: Any) -> list[Tensor]:
    leaves = pytree.tree_leaves(value.meta["val"]) if isinstance(value, fx.Node) else []
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _bound_of(node: fx.Node, target: Any, entry: Rule | None, args: Any, kwargs: Any) -> Any:
    """Return the function that bounds a call, by its operation and by whether it is given complex numbers."""
    operation = aten.square.default if entry is lookup(aten.square.default) else target
    try:
        return bound_of(operation, entry, *fx.map_arg((args, kwargs), lambda n: n.meta.get("val")))
    except MissingRuleError as error:
        raise MissingRuleError(f"{error} ({where(node)})") from None


def _is_real(value: Any) -> bool:
    """Say whether a value is in floating point: whole numbers wrap around, and complex ones have no sign."""
    return all(t.is_floating_point() for t in _tensors(value))


def _is_discrete(node: fx.Node) -> bool:
    """Say whether a value is made of truth values or whole numbers."""
    return not any(t.is_floating_point() or t.is_complex() for t in _tensors(node)[:1])


def _is_truth(node: fx.Node) -> bool:
    return all(t.dtype == torch.bool for t in _tensors(node))


def _upsampling(node: fx.Node) -> tuple[fx.Node, fx.Node | None, list[int]]:
    """Return an upsampling to nearest neighbours, the zeros put around it, if any, and how many these are."""
    if node.target not in (aten.pad.default, aten.constant_pad_nd.default):
        return node, None, []
    (inner, sizes, *how), _ = by_position(node.target, node.args, node.kwargs)
    if all(value in ("constant", 0, None) for value in how) and all(isinstance(n, int) and n >= 0 for n in sizes):
        return inner, node, sizes
    return node, None, []


def _only_layers_take(node: fx.Node) -> bool:
    """Say whether a weight goes nowhere but into layers that let their inputs carry its gaps."""
    for user in node.users:
        entry = lookup(user.target)
        if entry is None or entry.prepare is not prepare_layer:
            return False
        (first, weight, *rest), _ = by_position(user.target, user.args, user.kwargs)
        if weight is not node or any(node is other for other in (first, *rest)):
            return False
        if not stretches(user.target, node.meta["val"], tuple(rest[1:])):
            return False
    return True


def _refuse_random(node: fx.Node, entry: Rule | None) -> None:
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


def _refuse_subgraph(node: fx.Node) -> None:
    """Raise for a function that a program holds beside its graph, in the name of the operation that takes it."""
    name = next(iter(node.users)).target
    raise MissingRuleError(
        f"torch's higher-order operation {name} runs functions of its own, without interval rules ({where(node)}); "
        "write a branch with torch.where, and a loop in Python"
    )


def _point(x: Any) -> Any:
    return x.point if isinstance(x, Interval | Discrete) else x


def finish(x: Any) -> Any:
    """Make an output an interval, and a gap that is not a number an infinite one."""
    if isinstance(x, Tensor):
        return Interval.of(x) if x.is_floating_point() or x.is_complex() else x
    if not isinstance(x, Interval):
        return x
    if x.dtype.is_complex:
        return finish(x.map(torch.view_as_real)).map(torch.view_as_complex)
    below, above = (torch.where(gap.isnan(), torch.inf, gap) for gap in (x.below, x.above))
    return Interval(x.point, below, above)
