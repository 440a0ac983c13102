"""A loop out of nodes of an existing graph (libnnc: control flow on a graph that is already there).

The nodes before the test are the exit nodes and what they need inside; the others come after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from wend.base.errors import listed
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes, inline
from wend.ir.types import TensorType, accepts
from wend.ops.build import Build
from wend.ops.control import PREDICATE
from wend.passes.graph_regions import ancestors, check_equal_types, fail, name_of, text_of


@dataclass(frozen=True, slots=True)
class LoopFromGraph:
    """A graph in which a loop stands for some nodes of another one.

    Attributes:
        graph: the new graph; it has the params and results of the old one.
        node: the loop.
        trips: the number of trips, a value of the new graph.
    """

    graph: Graph
    node: Node
    trips: Value
    _at_exit: Mapping[Value, Value]

    def at_exit(self, value: Value) -> Value:
        """Return what a value of the old graph is when the loop ends, as a value of the new one.

        A carry target has its value at the last test, a value before the test that of the last
        test, a value after the test that of the last trip.

        Raises:
            GraphError: the loop does not keep it.
        """
        if value not in self._at_exit:
            fail(
                f"while_from: {name_of(value)} has no value at the exit",
                "name its value where no trip is made: while_from(…, initial={value: start}).",
            )
        return self._at_exit[value]

    def with_results(self, *results: Value) -> Graph:
        """Return the new graph with other results, such as values at the exit."""
        return replace(self.graph, results=results)


def while_from(
    graph: Graph,
    nodes: Collection[Node],
    incoming: Collection[Node],
    exit: Collection[Node],
    end: Collection[Node],
    carry: Mapping[Value, Value] | Iterable[tuple[Value, Value]],
    cond: Graph,
    *,
    reads: Sequence[Value] = (),
    initial: Mapping[Value, Value] | None = None,
) -> LoopFromGraph:
    """Replace nodes of a graph by a loop that runs them until a condition fails.

    A trip runs the exit nodes and what they need, tests the condition, and runs the others. Then
    each carry target takes the value of its source, all at once. A node may be incoming, exit and
    end node. Outside, a carry target keeps the value from before the loop; what an exit node gives
    is that of the last test. Params, captures and constants may be read anywhere in the loop.

    Args:
        graph: the graph.
        nodes: the nodes of the loop.
        incoming: those that take values from outside; nothing inside comes before them.
        exit: those after which the loop may end.
        end: those that nothing inside follows.
        carry: from each target, a value from outside that the loop replaces, to its source: what
            a node of the loop gives, or another target.
        cond: whether to go on. It takes the number of trips made, then the values `reads`.
        reads: values that the condition takes: of outside, targets, or from before the test.
        initial: what values from after the test are where no trip is made; such values may be read
            after the loop.

    Raises:
        GraphError: the nodes are no loop; there is an error for each rule that they break.

    Example:
        >>> import wend
        >>> from wend.ir import while_from
        >>> from wend.ops.build import Build
        >>> graph = wend.function(lambda z, x: z * x).get_concrete_function(1.0, 0.5).graph
        >>> z, (multiply,) = graph.params[0], graph.nodes
        >>> test = Build("test")
        >>> trips = test.param(test.integer(0).type)
        >>> below = test.finish([test.lt(trips, test.integer(4))])
        >>> all = [multiply]
        >>> loop = while_from(graph, all, all, all, all, {z: multiply.results[0]}, below)
        >>> loop.graph.count("while")
        1
    """
    pairs = [*carry.items()] if isinstance(carry, Mapping) else [*carry]
    region = _LoopRegion(graph, nodes, incoming, exit, end, pairs, initial or {})
    region.check()
    region.check_condition(cond, reads)
    return _build(region, cond, reads)


class _LoopRegion:
    """The nodes of a loop to be, and what they read and give."""

    def __init__(
        self,
        graph: Graph,
        nodes: Collection[Node],
        incoming: Collection[Node],
        exit: Collection[Node],
        end: Collection[Node],
        carry: Sequence[tuple[Value, Value]],
        initial: Mapping[Value, Value],
    ) -> None:
        members = {*nodes}
        self.graph, self.members, self.carry, self.initial = graph, members, carry, initial
        self.incoming, self.exit, self.end = {*incoming}, {*exit}, {*end}
        for role, chosen in (("the loop", members), *self._roles()):
            for node in chosen:
                if node not in members or node not in {*graph.nodes}:
                    fail(f"while_from: {text_of(node)} of {role} is no node of the loop")
        self.nodes = [node for node in graph.nodes if node in members]
        self.products = {result for node in self.nodes for result in node.results}
        self.targets = [target for target, _ in carry]
        needed = ancestors(self.exit, members)
        self.before = [node for node in self.nodes if node in needed]
        self.after = [node for node in self.nodes if node not in needed]
        self.before_products = [x for node in self.before for x in node.results]

    def _roles(self) -> Sequence[tuple[str, set[Node]]]:
        return ("incoming", self.incoming), ("exit", self.exit), ("end", self.end)

    def check(self) -> None:
        """Check the rules for edges and carries."""
        if not self.exit:
            fail("while_from: there is no exit node", "name the nodes after which it may end.")
        self._check_edges_inside()
        self._check_edges_in()
        self._check_edges_out()
        self._check_carry()

    def _check_edges_inside(self) -> None:
        for node in self.nodes:
            inside = [x for x in node.operands if x in self.products]
            if node in self.incoming and any(
                x.node is not None and x.node.operands for x in inside
            ):
                fail(f"while_from: incoming {text_of(node)} has a predecessor inside the loop")
            for x in inside:
                assert x.node is not None
                if x.node in self.end:
                    fail(f"while_from: end node {text_of(x.node)} has a successor inside the loop")
        reached = {*self.incoming}
        for node in self.nodes:
            if any(x.node in reached for x in node.operands):
                reached.add(node)
        for node in self.nodes:
            if node not in reached and node.operands:
                fail(
                    f"while_from: {text_of(node)} cannot be reached from an incoming node",
                    "make it incoming, or leave it out of the loop.",
                )
        leading = ancestors(self.exit | self.end, self.members)
        for node in self.nodes:
            if node not in leading:
                fail(f"while_from: {text_of(node)} leads to no exit and no end node")

    def _check_edges_in(self) -> None:
        for node in self.nodes:
            for x in node.operands:
                is_free = x in self.products or x.node is None or not x.node.operands
                if not is_free and node not in self.incoming:
                    fail(
                        f"while_from: {text_of(node)} takes {name_of(x)} from outside, and is not "
                        "incoming",
                        "make it incoming, or add the node that gives it to the loop.",
                    )

    def _check_edges_out(self) -> None:
        for user, values in self._outside_uses():
            for x in values:
                assert x.node is not None
                if x.node not in self.exit and x not in self.initial:
                    fail(
                        f"while_from: {user} reads {name_of(x)}, which no exit node gives",
                        "make its node an exit node; of one after the test, name the value where "
                        "no trip is made: initial={value: start}.",
                    )

    def _outside_uses(self) -> Iterable[tuple[str, list[Value]]]:
        for node in self.graph.nodes:
            if node not in self.members:
                yield text_of(node), [x for x in node.operands if x in self.products]
        yield "a result of the graph", [x for x in self.graph.results if x in self.products]

    def _check_carry(self) -> None:
        seen: set[Value] = set()
        for target, source in self.carry:
            if target in self.products:
                fail(f"while_from: carry target {name_of(target)} is written inside the loop")
            if target in seen:
                fail(f"while_from: carry target {name_of(target)} is used twice")
            seen.add(target)
            if source not in self.products and source not in self.targets:
                fail(
                    f"while_from: carry source {name_of(source)} is no product of the loop and no "
                    "carry target",
                )
            check_equal_types("while_from: carry source", target, source)
            for x in (target, source):
                if x.node is not None and x.node.op.view_of is not None:
                    fail(
                        f"while_from: {name_of(x)} is a view of another array",
                        "carry a copy, or what it views.",
                    )
        for value, start in self.initial.items():
            if value not in self.products or value in self.before_products:
                fail(
                    f"while_from: {name_of(value)} has an initial value, but no node after the test"
                )
            check_equal_types("while_from: initial value", value, start)

    def check_condition(self, cond: Graph, reads: Sequence[Value]) -> None:
        """Check what the condition takes and gives."""
        late = {x for node in self.after for x in node.results}
        for x in reads:
            if x in late:
                fail(
                    f"while_from: the condition reads {name_of(x)}, which comes after the exits",
                    "make its node an exit node.",
                )
        types = [_TRIPS, *(x.type for x in reads)]
        if len(cond.params) != len(types) or not all(map(accepts, cond.param_types, types)):
            fail(
                f"while_from: the condition takes {listed(cond.param_types)}, not "
                f"{listed(types)}, the number of trips and what it reads"
            )
        if cond.result_types != (PREDICATE,):
            types_text = listed(cond.result_types)
            fail(f"while_from: the condition gives {types_text}, and no bool scalar")

    def outer_values(self, reads: Sequence[Value]) -> list[Value]:
        """Return what the loop reads of outside, and does not replace."""
        operands = (*(x for node in self.nodes for x in node.operands), *reads)
        inside = self.products.union(self.targets)
        return [x for x in dict.fromkeys(operands) if x not in inside]


_TRIPS = TensorType(Build("trips").integer(0).tensor.dtype, ())


def _build(region: _LoopRegion, cond: Graph, reads: Sequence[Value]) -> LoopFromGraph:
    graph, targets, late = region.graph, region.targets, [*region.initial]
    outer = region.outer_values(reads)
    b = Build(graph.name)
    b.source = region.nodes[0].source
    before, after = Build("before"), Build("after")
    before.source = after.source = b.source
    # before: trips, targets, late values | outer → predicate, trips, targets, products, late values
    inside = _params(before, targets, late, outer)
    products = [x for x in region.before_products if x not in outer]
    before.nodes += copy_nodes(region.before, inside)
    trips = before.params[0]
    arguments = [trips, *(inside[x] for x in reads)]
    (predicate,) = inline(cond, arguments, before.nodes)
    forwarded = [trips, *(inside[x] for x in (*targets, *products, *late))]
    later = _params(after, [*targets, *products], late, outer)
    after.nodes += copy_nodes(region.after, later)
    count = after.add(after.params[0], after.integer(1))
    nexts = [count, *(later[source] for _, source in region.carry), *(later[x] for x in late)]
    regions = before.finish([predicate, *forwarded]), after.finish(nexts)
    return _place(region, b, outer, products, regions)


def _params(b: Build, *groups: Sequence[Value]) -> dict[Value, Value]:
    """Add params for the number of trips and for values; the last that stand for one are used."""
    b.param(_TRIPS, "trips")
    return {x: b.param(x.type, x.name) for group in groups for x in group}


def _place(
    region: _LoopRegion,
    b: Build,
    outer: Sequence[Value],
    products: Sequence[Value],
    regions: tuple[Graph, Graph],
) -> LoopFromGraph:
    """Return the graph with the loop where all that it reads is known."""
    graph, late = region.graph, [*region.initial]
    starts = [*region.targets, *region.initial.values()]
    for x in (*starts, *outer):
        if x.node is not None and not region.members.isdisjoint(ancestors([x.node], graph.nodes)):
            fail(f"while_from: {name_of(x)} goes into the loop, and needs what comes out of it")
    needed = ancestors([x.node for x in (*starts, *outer) if x.node is not None], graph.nodes)
    others = [node for node in graph.nodes if node not in region.members]
    b.params = [*graph.params]
    b.nodes += [node for node in others if node in needed]
    node = b.while_([b.integer(0), *starts], outer, *regions)
    trips, *values = node.results
    names = [*region.targets, *products, *late]
    at_exit = dict(zip(names, values, strict=True))
    mapping = {x: at_exit[x] for x in (*products, *late)}
    b.nodes += copy_nodes([node for node in others if node not in needed], mapping)
    results = [mapping.get(x, x) for x in graph.results]
    new = replace(b.finish(results), captures=graph.captures)
    return LoopFromGraph(new, node, trips, at_exit)
