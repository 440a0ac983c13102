"""The pass: a graph in which small arrays are their elements, wherever nothing needs the array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wend.backends.native.scalarize.plan import Plan
from wend.backends.native.scalarize.scope import Elements, Scope
from wend.backends.native.scalarize.table import RULES
from wend.backends.native.target.small_arrays import (
    MOST,
    constant_of,
    element_type,
    innermost,
    is_small,
    size,
)
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node
from wend.ir.types import Type
from wend.ops.control import IfParts, WhileParts, call, if_, while_
from wend.passes.algebra import algebra
from wend.passes.cse import cse
from wend.passes.dce import dce
from wend.passes.hoist import hoist
from wend.passes.pipeline import run_passes

# How many scalar operations may come of what was done on arrays (D25); where it would be more,
# only smaller arrays are taken apart.
MOST_OPERATIONS = 2000
_SIZES = (MOST, 9, 4, 2)


def scalarize_small_arrays(graph: Graph) -> Graph:
    """Do what is done on small arrays on their elements."""
    apart = split_arrays(graph)
    return graph if apart is graph else run_passes(apart, (algebra, hoist, cse, dce))


def split_arrays(graph: Graph) -> Graph:
    """Take small arrays apart; params and results of the graph stay what they are.

    A graph in which nothing is gained by that is returned as it is.
    """
    if not any(_has_small(value.type) for value in _values(graph)):
        return graph
    for most in _SIZES:
        plan = Plan(graph, most)
        if not any(map(plan.splits, graph.walk())):
            return graph
        if plan.cost <= MOST_OPERATIONS:
            return _Split(plan).graph(graph)
    return graph


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.params
    for node in graph.walk():
        yield from node.results
        for region in node.regions:
            yield from region.params


def _has_small(type: Type) -> bool:
    return is_small(innermost(type))


class _Split:
    """Writes the new graph as a plan has it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def graph(self, graph: Graph) -> Graph:
        scope = Scope(graph.name)
        for param in graph.params:
            scope.put(param, scope.b.param(param.type, param.name))
        self._nodes(scope, graph)
        results = [scope.whole(value) for value in graph.results]
        return scope.b.finish(results, len(graph.captures))

    def _nodes(self, scope: Scope, graph: Graph) -> None:
        for node in graph.nodes:
            scope.b.source = node.source
            if node.op is while_:
                self._while(scope, node)
            elif node.op is if_ or node.op is call:
                self._branches(scope, node)
            elif self._plan.splits(node):
                found = RULES[node.op].write(scope, node)
                for result, elements in zip(node.results, found, strict=True):
                    scope.take_apart(result, elements)
            elif not scope.is_made_on_demand(node):
                copy = copy_node(node, [scope.whole(value) for value in node.operands])
                scope.b.nodes.append(copy)
                for result, whole in zip(node.results, copy.results, strict=True):
                    scope.put(result, whole)

    # Regions
    def _while(self, scope: Scope, node: Node) -> None:
        w, is_apart = WhileParts.of(node), self._plan.is_apart
        forms = [is_apart(param) for param in w.before_carry]
        handed = [is_apart(param) for param in w.after_forwarded]
        pairs = list(zip(w.before_invariants, w.after_invariants, strict=True))
        steady = [is_apart(a) and is_apart(b) for a, b in pairs]
        carry = [x for v, f in zip(w.carry, forms, strict=True) for x in scope.either(v, f)]
        outer = [scope.either(v, f) for v, f in zip(w.invariants, steady, strict=True)]
        before = _Region(w.before.name)
        before.params(w.before_carry, forms)
        before.given(w.before_invariants, steady, outer)
        after = _Region(w.after.name)
        after.params(w.after_forwarded, handed)
        after.given(w.after_invariants, steady, outer)
        regions = [
            self._region(before, w.before, [False, *handed]),
            self._region(after, w.after, forms),
        ]
        operands = [*carry, *_passed(outer, steady)]
        self._put(scope, node, operands, regions, handed, {"carry": len(carry)})

    def _branches(self, scope: Scope, node: Node) -> None:
        is_apart = self._plan.is_apart
        operands = IfParts.of(node).operands if node.op is if_ else node.operands
        groups = zip(*(region.params for region in node.regions), strict=True)
        forms = [all(map(is_apart, group)) for group in groups]
        outer = [scope.either(v, f) for v, f in zip(operands, forms, strict=True)]
        wanted = [is_apart(result) for result in node.results]
        regions = []
        for region in node.regions:
            made = _Region(region.name)
            made.given(region.params, forms, outer)
            regions.append(self._region(made, region, wanted))
        selector = [scope.whole(node.operands[0])] if node.op is if_ else []
        self._put(
            scope, node, [*selector, *_passed(outer, forms)], regions, wanted, dict(node.attrs)
        )

    def _region(self, made: _Region, region: Graph, forms: Sequence[bool]) -> Graph:
        scope = made.scope
        self._nodes(scope, region)
        pairs = zip(region.results, forms, strict=True)
        return scope.b.finish([x for value, form in pairs for x in scope.either(value, form)])

    def _put(
        self,
        scope: Scope,
        node: Node,
        operands: Sequence[Value],
        regions: Sequence[Graph],
        forms: Sequence[bool],
        attrs: dict[str, object],
    ) -> None:
        types = [
            type
            for result, form in zip(node.results, forms, strict=True)
            for type in (_element_types(result) if form else [result.type])
        ]
        made = Node(node.op, operands, attrs, regions, types, node.source)
        scope.b.nodes.append(made)
        rest = iter(made.results)
        for result, form in zip(node.results, forms, strict=True):
            if form:
                scope.take_apart(result, [next(rest) for _ in _element_types(result)])
            else:
                whole = next(rest)
                whole.name = result.name
                scope.put(result, whole)


class _Region:
    """A region under construction."""

    def __init__(self, name: str) -> None:
        self.scope = Scope(name)

    def params(self, params: Sequence[Value], forms: Sequence[bool]) -> None:
        """Add params for those of the old region."""
        for param, form in zip(params, forms, strict=True):
            if form:
                elements = [self.scope.b.param(type) for type in _element_types(param)]
                self.scope.take_apart(param, elements)
            else:
                self.scope.put(param, self.scope.b.param(param.type, param.name))

    def given(
        self, params: Sequence[Value], forms: Sequence[bool], outer: Sequence[Elements]
    ) -> None:
        """The same where it is known what is given; elements that are constants are so here."""
        b = self.scope.b
        for param, form, given in zip(params, forms, outer, strict=True):
            if not form:
                self.params([param], [False])
                continue
            known = [constant_of(value) for value in given]
            elements = [
                b.param(value.type) if number is None else b.constant(number)
                for value, number in zip(given, known, strict=True)
            ]
            self.scope.take_apart(param, elements)


def _passed(outer: Sequence[Elements], forms: Sequence[bool]) -> list[Value]:
    """What is given to regions; elements that are constants are made there."""
    pairs = zip(outer, forms, strict=True)
    return [x for given, form in pairs for x in given if not form or constant_of(x) is None]


def _element_types(value: Value) -> list[Type]:
    return [element_type(value.type)] * size(innermost(value.type))
