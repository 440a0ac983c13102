"""The scalarization pass: small arrays become their elements where nothing needs the array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wend.backends.native.scalarize.plan import SplitPlan
from wend.backends.native.scalarize.scope import ScalarElements, ScalarScope
from wend.backends.native.scalarize.table import RULES
from wend.backends.native.target.small_arrays import (
    MAX_SCALARIZED_ELEMENTS,
    constant_of,
    element_type,
    innermost,
    is_small,
    size,
)
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node
from wend.ir.types import TOKEN, Type
from wend.ops.control import IfParts, WhileParts, call, if_, while_
from wend.ops.frame_states import frame_state
from wend.passes.algebra import algebra
from wend.passes.cse import cse
from wend.passes.dce import dce
from wend.passes.hoist import hoist
from wend.passes.pipeline import run_passes

# The most scalar operations that array operations may expand to (D25); beyond that, only smaller
# arrays are split.
MAX_SCALAR_OPS = 2000
_MAX_ELEMENTS_TRIED = (MAX_SCALARIZED_ELEMENTS, 9, 4, 2)


def scalarize_small_arrays(graph: Graph) -> Graph:
    """Do operations on small arrays on their elements, and clean up."""
    split = split_arrays(graph)
    return graph if split is graph else run_passes(split, (algebra, hoist, cse, dce))


def split_arrays(graph: Graph) -> Graph:
    """Split small arrays; params and results of the graph keep their types.

    A graph in which this gains nothing is returned unchanged.
    """
    if not any(_has_small(value.type) for value in _values(graph)):
        return graph
    for max_elements in _MAX_ELEMENTS_TRIED:
        plan = SplitPlan(graph, max_elements)
        if not any(map(plan.splits, graph.walk())):
            return graph
        if plan.cost <= MAX_SCALAR_OPS:
            return _Splitter(plan).graph(graph)
    return graph


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.params
    for node in graph.walk():
        yield from node.results
        for region in node.regions:
            yield from region.params


def _has_small(type: Type) -> bool:
    return is_small(innermost(type))


class _Splitter:
    """Builds the new graph from a plan."""

    def __init__(self, plan: SplitPlan) -> None:
        self._plan = plan

    def graph(self, graph: Graph) -> Graph:
        scope = ScalarScope(graph.name)
        for param in graph.params:
            scope.put_whole(param, scope.b.param(param.type, param.name))
        self._nodes(scope, graph)
        results = [scope.whole(value) for value in graph.results]
        return scope.b.finish(results, len(graph.captures))

    def _nodes(self, scope: ScalarScope, graph: Graph) -> None:
        for node in graph.nodes:
            scope.b.source = node.source
            if node.op is while_:
                self._while(scope, node)
            elif node.op is if_ or node.op is call:
                self._branches(scope, node)
            elif node.op is frame_state:
                self._frame_state(scope, node)
            elif self._plan.splits(node):
                results = RULES[node.op].expand(scope, node)
                for result, elements in zip(node.results, results, strict=True):
                    scope.put_elements(result, elements)
            elif not scope.is_materialized_lazily(node):
                copy = copy_node(node, [scope.whole(value) for value in node.operands])
                scope.b.nodes.append(copy)
                for result, whole in zip(node.results, copy.results, strict=True):
                    scope.put_whole(result, whole)

    def _frame_state(self, scope: ScalarScope, node: Node) -> None:
        """Emit a frame state on the forms that its operands have."""
        token, *contents = node.operands
        forms = [scope.present(value) for value in contents]
        shapes = [
            value.tensor.shape if is_split else None
            for value, (_, is_split) in zip(contents, forms, strict=True)
        ]
        operands = [scope.whole(token), *(x for elements, _ in forms for x in elements)]
        attrs = {**node.attrs, "shapes": tuple(shapes)} if any(shapes) else node.attrs
        copy = Node(node.op, operands, attrs, (), [TOKEN], node.source)
        scope.b.nodes.append(copy)
        scope.put_whole(node.results[0], copy.results[0])

    # Regions
    def _while(self, scope: ScalarScope, node: Node) -> None:
        w, is_split = WhileParts.of(node), self._plan.is_split
        carry_split = [is_split(param) for param in w.before_carry]
        forwarded_split = [is_split(param) for param in w.after_forwarded]
        pairs = list(zip(w.before_invariants, w.after_invariants, strict=True))
        invariant_split = [is_split(a) and is_split(b) for a, b in pairs]
        carry = [
            x
            for v, f in zip(w.carry, carry_split, strict=True)
            for x in scope.whole_or_elements(v, f)
        ]
        outer = [
            scope.whole_or_elements(v, f)
            for v, f in zip(w.invariants, invariant_split, strict=True)
        ]
        before = _RegionBuilder(w.before.name)
        before.params(w.before_carry, carry_split)
        before.known_params(w.before_invariants, invariant_split, outer)
        after = _RegionBuilder(w.after.name)
        after.params(w.after_forwarded, forwarded_split)
        after.known_params(w.after_invariants, invariant_split, outer)
        regions = [
            self._region(before, w.before, [False, *forwarded_split]),
            self._region(after, w.after, carry_split),
        ]
        operands = [*carry, *_region_operands(outer, invariant_split)]
        attrs = {**node.attrs, "carry": len(carry)}
        self._emit(scope, node, operands, regions, forwarded_split, attrs)

    def _branches(self, scope: ScalarScope, node: Node) -> None:
        is_split = self._plan.is_split
        operands = IfParts.of(node).operands if node.op is if_ else node.operands
        groups = zip(*(region.params for region in node.regions), strict=True)
        param_split = [all(map(is_split, group)) for group in groups]
        outer = [scope.whole_or_elements(v, f) for v, f in zip(operands, param_split, strict=True)]
        result_split = [is_split(result) for result in node.results]
        regions = []
        for region in node.regions:
            builder = _RegionBuilder(region.name)
            builder.known_params(region.params, param_split, outer)
            regions.append(self._region(builder, region, result_split))
        selector = [scope.whole(node.operands[0])] if node.op is if_ else []
        self._emit(
            scope,
            node,
            [*selector, *_region_operands(outer, param_split)],
            regions,
            result_split,
            dict(node.attrs),
        )

    def _region(
        self, builder: _RegionBuilder, region: Graph, result_split: Sequence[bool]
    ) -> Graph:
        scope = builder.scope
        self._nodes(scope, region)
        pairs = zip(region.results, result_split, strict=True)
        return scope.b.finish(
            [x for value, is_split in pairs for x in scope.whole_or_elements(value, is_split)]
        )

    def _emit(
        self,
        scope: ScalarScope,
        node: Node,
        operands: Sequence[Value],
        regions: Sequence[Graph],
        result_split: Sequence[bool],
        attrs: dict[str, object],
    ) -> None:
        types = [
            type
            for result, is_split in zip(node.results, result_split, strict=True)
            for type in (_element_types(result) if is_split else [result.type])
        ]
        new_node = Node(node.op, operands, attrs, regions, types, node.source)
        scope.b.nodes.append(new_node)
        new_results = iter(new_node.results)
        for result, is_split in zip(node.results, result_split, strict=True):
            if is_split:
                scope.put_elements(result, [next(new_results) for _ in _element_types(result)])
            else:
                whole = next(new_results)
                whole.name = result.name
                scope.put_whole(result, whole)


class _RegionBuilder:
    """A region under construction."""

    def __init__(self, name: str) -> None:
        self.scope = ScalarScope(name)

    def params(self, params: Sequence[Value], splits: Sequence[bool]) -> None:
        """Add params for those of the old region."""
        for param, is_split in zip(params, splits, strict=True):
            if is_split:
                elements = [self.scope.b.param(type) for type in _element_types(param)]
                self.scope.put_elements(param, elements)
            else:
                self.scope.put_whole(param, self.scope.b.param(param.type, param.name))

    def known_params(
        self, params: Sequence[Value], splits: Sequence[bool], outer: Sequence[ScalarElements]
    ) -> None:
        """Add params whose operands are known; constant elements become constants here."""
        b = self.scope.b
        for param, is_split, operand_elements in zip(params, splits, outer, strict=True):
            if not is_split:
                self.params([param], [False])
                continue
            constants = [constant_of(value) for value in operand_elements]
            elements = [
                b.param(value.type) if number is None else b.constant(number)
                for value, number in zip(operand_elements, constants, strict=True)
            ]
            self.scope.put_elements(param, elements)


def _region_operands(outer: Sequence[ScalarElements], splits: Sequence[bool]) -> list[Value]:
    """Return the operands of regions; constant elements are left out and made inside."""
    pairs = zip(outer, splits, strict=True)
    return [
        x
        for elements, is_split in pairs
        for x in elements
        if not is_split or constant_of(x) is None
    ]


def _element_types(value: Value) -> list[Type]:
    return [element_type(value.type)] * size(innermost(value.type))
