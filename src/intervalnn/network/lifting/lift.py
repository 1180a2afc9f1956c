"""A program over tensors to a program over intervals, with the rules of the table.

The result is two flat graphs. The first depends on the weights alone (splits them, applies
parametrisations) and runs again only when they change. The second takes what the first has
made, and the inputs. What no interval can reach stays a plain operation in both.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from intervalnn.interval import Interval
from intervalnn.network.capture.flat import where
from intervalnn.network.capture.program import Program
from intervalnn.network.lifting.facts import Facts, is_discrete, tensors_of
from intervalnn.network.lifting.refused import (
    bound_or_refused,
    refuse_as_argument,
    refuse_output,
    refuse_part,
    refuse_random,
    refuse_subgraph,
)
from intervalnn.network.lifting.rewrites import rewritten
from intervalnn.rules.arithmetic import point_of
from intervalnn.rules.discrete_operations import discrete_way
from intervalnn.table import RULES, MissingRuleError, Rule, by_position, lookup
from intervalnn.torch_private import OpOverload


@dataclass(frozen=True, slots=True)
class Form:
    """How products are bounded: see :mod:`intervalnn.rules.products`."""

    exact: bool = False
    gap_dtype: torch.dtype | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """What widens one output of a program.

    Attributes:
        name: Its name as a module of the graph.
        widening: Takes the output's bounds and the taps, as intervals or points.
        taps: Names of the values that it reads.
    """

    name: str
    widening: nn.Module
    taps: tuple[str, ...]


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


def lift(
    program: Program,
    intervals: set[str],
    form: Form,
    by_input: Collection[str] = (),
    scouts: Mapping[int, Placed] | None = None,
) -> Lifted:
    """Return ``program`` over intervals, for the placeholders in ``intervals``.

    Args:
        program: What the model computes.
        intervals: The placeholders.
        form: How products are bounded.
        by_input: Weights that have gaps as shares of every input: where nothing but layers take such a weight, the
            inputs of these carry the shares.
        scouts: What widens outputs, by their numbers.

    Raises:
        MissingRuleError: If an interval meets an operation that has no rule, or refuses it.
    """
    return _Lift(program, rewritten(program, intervals, by_input), form, scouts or {}).lifted()


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
    return fx.GraphModule({**dict(gaps), **dict(lifted.run.named_children())}, graph)


class _Lift:
    """One walk over the graph, node by node, writing both of the new graphs."""

    def __init__(self, program: Program, facts: Facts, form: Form, scouts: Mapping[int, Placed]) -> None:
        self.program, self.facts, self.form, self.scouts = program, facts, form, scouts
        self.made: dict[fx.Node, fx.Node] = {}  # a node of the program to its counterpart
        self.handed: dict[fx.Node, fx.Node] = {}  # a node of `prepare` to its placeholder in `run`
        self.prepare, self.run = fx.Graph(), fx.Graph()

    def lifted(self) -> Lifted:
        nodes = self.facts.graph.nodes
        for node in nodes:
            if node.op == "placeholder":
                self.made[node] = self._graph(self.facts[node].weight).placeholder(node.name)
        self.first_input = next(iter(self.run.nodes))
        for node in nodes:
            if node.op == "call_function":
                self.made[node] = self._call(node)
                self._mark(node)
            elif node.op == "output":
                self._output(node)
            elif node.op != "placeholder":
                refuse_subgraph(node)
        self.prepare.output(tuple(self.handed))
        # Joined values that products take part by part; of modules there are none but scouts, which are pure.
        self.run.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
        sources, splits = self.program.sources, {entry.prepare for entry in RULES.values()}
        return Lifted(
            fx.GraphModule({}, self.prepare),
            fx.GraphModule({placed.name: placed.widening for placed in self.scouts.values()}, self.run),
            [name for name in sources if sources[name].kind != "input"],
            [name for name in sources if sources[name].kind == "input"],
            frozenset(node.name for node in nodes if self.facts[node].stretched),
            any(node.op == "call_function" and node.target not in splits for node in self.prepare.nodes),
        )

    def _output(self, node: fx.Node) -> None:
        results: list[Any] = []
        for number, value in enumerate(node.args[0]):  # type: ignore[arg-type]
            if isinstance(value, fx.Node):
                refuse_output(value, self.facts)
                results.append(self.run.call_function(finish, (self._widened(number, self._hand(value)),)))
            else:
                results.append(value)
        self.run.output(tuple(results))

    def _widened(self, number: int, made: fx.Node) -> fx.Node:
        """An output, widened by its scout, if it has one."""
        if number not in self.scouts:
            return made
        placed = self.scouts[number]
        taps = (self._hand(self.facts.named[name]) for name in placed.taps)
        return self.run.call_module(placed.name, (made, *taps))

    def _call(self, node: fx.Node) -> fx.Node:
        fact, entry = self.facts[node], lookup(node.target)
        refuse_random(node, entry)
        if fact.as_is:
            return self._written(node, node.target, node.args, node.kwargs)
        if node.target is operator.getitem:
            refuse_part(node, self.facts)
            return self._written(node, node.target, node.args, node.kwargs)
        return self._bounded(node, entry) if fact.interval else self._plain(node, entry)

    def _mark(self, node: fx.Node) -> None:
        """Note in what was made of a node where it comes from, for a failure to be told in the model's line."""
        of = node.meta["of"]
        for graph in (self.prepare, self.run):
            for made in reversed(graph.nodes):
                if made.op == "placeholder" or made.meta.setdefault("of", of) is not of:
                    break

    def _plain(self, node: fx.Node, entry: Rule | None) -> fx.Node:
        """An operation that no interval reaches, or that reads nothing but shapes."""
        if entry is not None and entry.reads_shape_only:
            refuse_as_argument(node, entry, *by_position(node.target, node.args, node.kwargs), self.facts)
        weight = self.facts[node].weight

        def take(n: fx.Node) -> fx.Node:
            made = self._value(n, weight)
            return self._graph(weight).call_function(point_of, (made,)) if self.facts[n].interval else made

        args, kwargs = fx.map_arg((node.args, dict(node.kwargs)), take)
        return self._graph(weight).call_function(node.target, args, kwargs)  # type: ignore[arg-type]

    def _bounded(self, node: fx.Node, entry: Rule | None) -> fx.Node:
        """An operation that an interval reaches."""
        args, kwargs = by_position(node.target, node.args, node.kwargs)
        bound = bound_or_refused(node, entry, args, kwargs)
        assert entry is not None
        refuse_as_argument(node, entry, args, kwargs, self.facts)
        discrete = [n for n in node.all_input_nodes if self.facts[n].interval and is_discrete(n)]
        if discrete and not entry.discrete:
            return self._with_discrete(node, entry, bound, args, kwargs)
        if entry.prepare is None:
            return self._written(node, bound, (node.target, *args), kwargs)
        weight = self.facts[node].weight
        first, _, *rest = args
        call: list[Any] = [node.target, self._map(first, weight), self._prepared(node, entry, args)]
        return self._graph(weight).call_function(bound, (*call, *self._map(rest, weight)), self._map(kwargs, weight))

    def _with_discrete(
        self, node: fx.Node, entry: Rule, bound: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> fx.Node:
        """An operation that knows nothing of truth values and whole numbers that may change, and that takes some."""
        weight, target = self.facts[node].weight, node.target
        assert isinstance(target, OpOverload)
        if is_discrete(node):
            try:
                bound = discrete_way(target, entry)
            except MissingRuleError as error:
                raise MissingRuleError(f"{error} ({where(node)})") from None
            return self._written(node, bound, (target, *args), kwargs)
        dtype = tensors_of(node)[0].dtype.to_real()

        def take(n: fx.Node) -> fx.Node:
            made = self._value(n, weight)
            known = self.facts[n].interval and is_discrete(n)
            return self._graph(weight).call_method("interval", (made, dtype)) if known else made

        call = (target, *fx.map_arg(args, take))
        return self._graph(weight).call_function(bound, call, self._map(kwargs, weight))

    def _prepared(self, node: fx.Node, entry: Rule, args: tuple[Any, ...]) -> fx.Node:
        """The second factor of a product, split where it is known."""
        first, second, *rest = args
        assert entry.prepare is not None
        side = self.facts[second].weight
        form: dict[str, Any] = self.facts[node].told | {
            "by_interval": self.facts[first].interval,
            "nonneg": self.facts[first].nonneg,
            "exact": self.form.exact,
            "gap_dtype": self.form.gap_dtype,
        }
        rest = [None if isinstance(arg, fx.Node) else arg for arg in rest]  # a bias, or sizes that need not be known
        call = (node.target, None, self._value(second, side), *fx.map_arg(rest, lambda _: 0))
        split = self._graph(side).call_function(entry.prepare, call, form)
        return split if side == self.facts[node].weight else self._across(split)

    def _written(self, node: fx.Node, fn: Any, args: Any, kwargs: Any) -> fx.Node:
        """A call of ``fn`` by the counterparts of what a node takes, in the graph of the node."""
        weight = self.facts[node].weight
        return self._graph(weight).call_function(fn, self._map(args, weight), self._map(kwargs, weight))

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
