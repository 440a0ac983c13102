"""The scalarization pass: small arrays become their elements where nothing needs the array.

Complex numbers become their parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from wend.backends.native.scalarize.draws import expand_draws_in_loops
from wend.backends.native.scalarize.plan import SplitPlan, forms
from wend.backends.native.scalarize.scope import ScalarElements, ScalarScope
from wend.backends.native.scalarize.table import rule_of
from wend.backends.native.target.small_arrays import (
    MAX_SCALARIZED_ELEMENTS,
    constant_of,
    element_type,
    innermost,
    is_complex_number,
    is_small,
    size,
)
from wend.ir.dataflow import Use, region_edges, region_flow
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node
from wend.ir.types import TOKEN, Type
from wend.ops.frame_states import contents_in, frame_state
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
    split = split_arrays(expand_draws_in_loops(graph))
    return graph if split is graph else run_passes(split, (algebra, hoist, cse, dce))


def split_arrays(graph: Graph) -> Graph:
    """Split small arrays; params and results of the graph keep their types.

    A graph in which this gains nothing is returned unchanged.
    """
    if not any(map(_has_small, graph.types)):
        return graph
    for max_elements in _MAX_ELEMENTS_TRIED:
        plan = SplitPlan(graph, max_elements)
        if not any(map(plan.splits, graph.walk())):
            return graph
        if plan.cost <= MAX_SCALAR_OPS:
            return _Splitter(plan).graph(graph)
    return graph


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
            if region_edges(node):
                self._regions(scope, node)
            elif node.op is frame_state:
                self._frame_state(scope, node)
            elif self._plan.splits(node):
                rule = rule_of(node)
                assert rule is not None
                results = rule.expand(scope, node)
                for result, elements in zip(node.results, results, strict=True):
                    scope.put_elements(result, elements)
            elif not scope.is_materialized_lazily(node):
                copy = copy_node(node, [scope.whole(value) for value in node.operands])
                scope.b.nodes.append(copy)
                for result, whole in zip(node.results, copy.results, strict=True):
                    scope.put_whole(result, whole)

    def _frame_state(self, scope: ScalarScope, node: Node) -> None:
        """Emit a frame state on the forms that its operands have; complex numbers are whole."""
        contents = contents_in(node)
        tokens = node.operands[: len(node.operands) - len(contents)]
        forms = [
            ((scope.whole(value),), False)
            if is_complex_number(value.type)
            else scope.present(value)
            for value in contents
        ]
        shapes = [
            value.tensor.shape if is_split else None
            for value, (_, is_split) in zip(contents, forms, strict=True)
        ]
        operands = [*map(scope.whole, tokens), *(x for elements, _ in forms for x in elements)]
        attrs = {**node.attrs, "shapes": tuple(shapes)} if any(shapes) else node.attrs
        copy = Node(node.op, operands, attrs, (), [TOKEN], node.source)
        scope.b.nodes.append(copy)
        scope.put_whole(node.results[0], copy.results[0])

    def _regions(self, scope: ScalarScope, node: Node) -> None:
        """Emit a node with regions on the forms of what it passes on."""
        split = {use for use, inputs in forms(node) if all(map(self._plan.is_split, inputs))}
        sources: dict[Value, list[Use]] = {}
        for use, value in region_flow(node):
            sources.setdefault(value, []).append(use)
        elements = [
            scope.whole_or_elements(value, (node, k) in split)
            for k, value in enumerate(node.operands)
        ]
        varying = {use for uses in sources.values() if len({*uses}) > 1 for use in uses}
        regions = []
        for region in node.regions:
            builder = _RegionBuilder(region.name)
            for param in region.params:
                owner, k = use = sources[param][0]
                if owner is node and use not in varying:
                    builder.known_param(param, use in split, elements[k])
                else:
                    builder.param(param, use in split)
            results = [(region, k) in split for k in range(len(region.results))]
            regions.append(self._region(builder, region, results))
        operands = [
            _without_constants(x) if (node, k) in split and (node, k) not in varying else x
            for k, x in enumerate(elements)
        ]
        attrs, counter = dict(node.attrs), node.op.leading_operands
        if counter:
            attrs[counter] = sum(map(len, operands[: attrs[counter]]))
        result_split = [sources[result][0] in split for result in node.results]
        self._emit(scope, node, [*chain(*operands)], regions, result_split, attrs)

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

    def param(self, param: Value, is_split: bool) -> None:
        """Add the params for one of the old region."""
        if is_split:
            elements = [self.scope.b.param(type) for type in _element_types(param)]
            self.scope.put_elements(param, elements)
        else:
            self.scope.put_whole(param, self.scope.b.param(param.type, param.name))

    def known_param(self, param: Value, is_split: bool, operand: ScalarElements) -> None:
        """Add the params for one whose operand is known; constant elements are made here."""
        if not is_split:
            self.param(param, is_split=False)
            return
        b = self.scope.b
        constants = [constant_of(value) for value in operand]
        elements = [
            b.param(value.type) if number is None else b.constant(number)
            for value, number in zip(operand, constants, strict=True)
        ]
        self.scope.put_elements(param, elements)


def _without_constants(elements: ScalarElements) -> Sequence[Value]:
    return [x for x in elements if constant_of(x) is None]


def _element_types(value: Value) -> list[Type]:
    return [element_type(value.type)] * size(innermost(value.type))
