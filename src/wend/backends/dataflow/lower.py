"""Lowering: graphs of nodes with regions to cyclic dataflow graphs.

A loop becomes, for each value of its carry, `Enter` → `Merge` → … → `NextIteration` → back to the
`Merge`; the values that `before` forwards go through a `Switch` on its predicate, to `after` or to
an `Exit`. A branch is the nodes between switches and merges. The construction is that of Yu et al.,
"Dynamic control flow in large-scale machine learning" (2018).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wend.backends.dataflow.graph import DataflowGraph
from wend.backends.dataflow.node import DataflowNode, Output, Primitive
from wend.backends.dataflow.normal_form import prepare
from wend.backends.dataflow.ordering import Order, is_barrier, must_run_in_order
from wend.base.source import Source
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import TOKEN, Type
from wend.ops import effects
from wend.ops.control import IfParts, WhileParts, if_, while_
from wend.ops.frame_states import frame_state

if TYPE_CHECKING:
    from wend.function.concrete import ConcreteFunction


def lower(function: ConcreteFunction | Graph) -> DataflowGraph:
    """Return the dataflow graph of a function that has been traced, or of a graph.

    Calls are inlined, loops become cycles, branches switches and merges. The order of effects, and
    of what may fail beside them, is kept by control edges. A `maybe` value is one token that holds
    a value or a zero.

    Args:
        function: a concrete function, or its graph.

    Example:
        >>> import wend
        >>> double = wend.function(lambda x: wend.while_loop(lambda v: v < 8.0, lambda v: v * 2, x))
        >>> graph = wend.lower(double.get_concrete_function(1.0))
        >>> graph.count("NextIteration"), graph.count("Switch"), graph.frames()
        (1, 1, ['while_0'])
    """
    graph = function if isinstance(function, Graph) else function.graph
    return lower_prepared(prepare(graph))


def lower_prepared(graph: Graph) -> DataflowGraph:
    """Return the dataflow graph of a graph that `prepare` has written as loops and branches."""
    params = [Output(param.type, name=param.name) for param in graph.params]
    lowering = _RegionLowering()
    results = lowering.graph(graph, params, _EmitPlace(lowering.nodes, lambda: None, None))
    captures = tuple(params[len(params) - len(graph.captures) :])
    nodes = tuple(lowering.nodes)
    return DataflowGraph(graph.name, tuple(params), nodes, tuple(results), captures)


class _EmitPlace:
    """A graph or region in which nodes are emitted.

    A node runs in it only if an input does: one without such an input waits for the pivot.
    """

    def __init__(
        self,
        nodes: list[DataflowNode],
        pivot: Callable[[], Output | None],
        state: DataflowNode | None,
    ) -> None:
        self.nodes, self.pivot = nodes, pivot
        self.state = state  # the last frame state before what is emitted now
        self.inside: set[Output] = set()
        self.order: Order[Output] = Order()

    def emit(
        self,
        op: Op | Primitive,
        inputs: Sequence[Output],
        types: Sequence[Type],
        source: Source | None = None,
        controls: Sequence[Output] = (),
        attrs: Mapping[str, Any] | None = None,
    ) -> tuple[Output, ...]:
        """Append a node that runs where this place does, and return its outputs."""
        controls = [x for x in dict.fromkeys(controls) if x not in inputs]
        if self.inside.isdisjoint((*inputs, *controls)):
            pivot = self.pivot()
            controls += [] if pivot is None else [pivot]
        node = DataflowNode(op, inputs, types, controls, attrs, source)
        node.state = self.state
        self.nodes.append(node)
        self.inside.update(node.outputs)
        return node.outputs

    def pass_on(
        self,
        primitive: Primitive,
        *inputs: Output,
        type: Type | None = None,
        source: Source | None = None,
        controls: Sequence[Output] = (),
        attrs: Mapping[str, Any] | None = None,
    ) -> Output:
        """Append a primitive that gives its first input on its one output."""
        types = [inputs[0].type if type is None else type]
        return self.emit(primitive, inputs, types, source, controls, attrs)[0]


class _RegionLowering:
    """A graph that is being lowered."""

    def __init__(self) -> None:
        self.nodes: list[DataflowNode] = []
        self._frames = itertools.count()

    def graph(self, graph: Graph, arguments: Sequence[Output], place: _EmitPlace) -> list[Output]:
        """Emit the nodes of a graph or region, and return its results."""
        mapping: dict[Value, Output] = dict(zip(graph.params, arguments, strict=True))
        for node in graph.nodes:
            inputs = [mapping[operand] for operand in node.operands]
            controls = place.order.waits(node)
            if node.op is while_:
                outputs: Sequence[Output] = self._loop(node, inputs, place, controls)
            elif node.op is if_:
                outputs = self._branches(node, inputs, place, controls)
            else:
                types = [result.type for result in node.results]
                outputs = place.emit(node.op, inputs, types, node.source, controls, node.attrs)
                place.state = outputs[0].node if node.op is frame_state else place.state
            place.order.add(node, outputs if node.regions else outputs[:1])
            for result, output in zip(node.results, outputs, strict=True):
                output.name = output.name or result.name
                mapping[result] = output
        return [mapping[result] for result in graph.results]

    def _loop(
        self, node: Node, inputs: Sequence[Output], place: _EmitPlace, controls: Sequence[Output]
    ) -> list[Output]:
        w, source = WhileParts.of(node), node.source
        frame = f"while_{next(self._frames)}"
        attrs = {key: value for key, value in node.attrs.items() if key != "carry"}
        attrs |= {"frame": frame, "is_constant": False}
        attrs |= {"in_order": True} if must_run_in_order(node) else {}
        starts = [*inputs[: len(w.carry)]]
        has_pivot = not (w.carry and w.forwarded)
        if has_pivot:  # a token that goes round, for nodes that no value reaches
            starts += place.emit(effects.token, (), [TOKEN], source)
        types = [*(param.type for param in w.before_carry), TOKEN]
        enters = [
            place.pass_on(
                Primitive.ENTER, x, type=type, source=source, controls=controls, attrs=attrs
            )
            for x, type in zip(starts, types, strict=False)
        ]
        constants = [
            place.pass_on(
                Primitive.ENTER,
                x,
                type=param.type,
                source=source,
                attrs={**attrs, "is_constant": True},
            )
            for x, param in zip(inputs[len(w.carry) :], w.before_invariants, strict=True)
        ]
        before = _EmitPlace(self.nodes, lambda: merges[-1], place.state)
        before.inside.update(enters)
        merges = [before.pass_on(Primitive.MERGE, x, source=source) for x in enters]
        before.inside.difference_update(enters)
        arguments = [*merges[: len(w.carry)], *constants]
        predicate, *forwarded = self.graph(w.before, arguments, before)
        forwarded += merges[len(w.carry) :]
        waits = before.order.last if is_barrier(node) else ()
        types = [*(param.type for param in w.after_forwarded), TOKEN]
        cond = before.pass_on(Primitive.LOOP_COND, predicate, source=source, controls=waits)
        switches = [
            before.emit(Primitive.SWITCH, (x, cond), [x.type, type], source)
            for x, type in zip(forwarded, types, strict=False)
        ]
        after = _EmitPlace(self.nodes, lambda: switches[-1][1], place.state)
        after.inside.update(going_on for _, going_on in switches)
        arguments = [*(going_on for _, going_on in switches[: len(w.forwarded)]), *constants]
        nexts = self.graph(w.after, arguments, after)
        nexts += [going_on for _, going_on in switches[len(w.forwarded) :]]
        for merge, value in zip(merges, nexts, strict=True):
            head = merge.node
            assert head is not None
            again = after.pass_on(Primitive.NEXT_ITERATION, value, type=merge.type, source=source)
            head.inputs = (*head.inputs, again)
        exits: list[Output] = []
        for (ended, _), result in zip(switches, node.results, strict=False):
            exit = DataflowNode(Primitive.EXIT, (ended,), [result.type], source=source)
            self.nodes.append(exit)
            place.inside.update(exit.outputs)
            exits += exit.outputs
        return exits

    def _branches(
        self, node: Node, inputs: Sequence[Output], place: _EmitPlace, controls: Sequence[Output]
    ) -> list[Output]:
        parts, source = IfParts.of(node), node.source
        chosen = place.pass_on(Primitive.IDENTITY, inputs[0], source=source, controls=controls)
        switches = [
            place.emit(
                Primitive.SWITCH, (x, chosen), [b.params[j].type for b in parts.branches], source
            )
            for j, x in enumerate(inputs[1:])
        ]
        operands = [*switches]
        if not switches:  # the selector goes each way, for nodes that no value reaches
            types = [chosen.type] * len(parts.branches)
            switches = [place.emit(Primitive.SWITCH, (chosen, chosen), types, source)]
        results: list[list[Output]] = []
        for k, branch in enumerate(parts.branches):
            region = _EmitPlace(self.nodes, lambda k=k: switches[0][k], place.state)  # type: ignore[misc]
            region.inside.update(ways[k] for ways in switches)
            results.append(self.graph(branch, [ways[k] for ways in operands], region))
            place.inside.difference_update(ways[k] for ways in switches)
        merges: list[Output] = []
        for options, result in zip(zip(*results, strict=True), node.results, strict=True):
            merge = DataflowNode(Primitive.MERGE, options, [result.type], source=source)
            self.nodes.append(merge)
            place.inside.update(merge.outputs)
            merges += merge.outputs
        return merges
