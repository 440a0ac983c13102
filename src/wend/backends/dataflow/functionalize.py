"""From dataflow back to nodes with regions: loops and branches are found by their primitives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wend.backends.dataflow.contexts import (
    AFTER,
    BEFORE,
    Contexts,
    LoopNodes,
    Path,
    SwitchGroup,
    fail,
)
from wend.backends.dataflow.graph import DataflowGraph
from wend.backends.dataflow.node import DataflowNode, Output, Primitive
from wend.backends.dataflow.normal_form import normalise
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import TOKEN
from wend.ir.verify import verify
from wend.ops.control import if_, while_


def functionalize(graph: DataflowGraph) -> Graph:
    """Return the graph whose loops and branches are nodes, from one in which they are primitives.

    `functionalize(lower(g))` is `g` in its normal form, and lowering the result gives the same
    dataflow graph again. Control edges that are no tokens are dropped: lowering adds them.

    Args:
        graph: the dataflow graph.

    Raises:
        GraphError: it is not made of nested loops and branches; the error names a node at fault.

    Example:
        >>> import wend
        >>> double = wend.function(lambda x: wend.while_loop(lambda v: v < 8.0, lambda v: v * 2, x))
        >>> graph = wend.lower(double.get_concrete_function(1.0))
        >>> wend.functionalize(graph).count("while")
        1
    """
    contexts = Contexts(graph)
    for result, path in ((x, contexts.inner.get(x)) for x in graph.results):
        if path != ():
            assert result.node is not None
            fail(result.node, "is in a loop or branch, and gives a result of the graph")
    params = [Value(param.type, name=param.name) for param in graph.params]
    mapping = dict(zip(graph.params, params, strict=True))
    nodes, results = _RegionMaker(contexts, (), mapping).finish(graph.results)
    captures = tuple(mapping[capture] for capture in graph.captures)
    whole = Graph(graph.name, tuple(params), tuple(nodes), tuple(results), captures)
    return normalise(verify(whole))


class _RegionMaker:
    """A graph or region that is being made from the dataflow nodes of one place."""

    def __init__(self, contexts: Contexts, path: Path, mapping: dict[Output, Value]) -> None:
        self.contexts, self.path, self.mapping = contexts, path, mapping
        self.nodes: list[Node] = []

    def finish(self, results: Sequence[Output]) -> tuple[list[Node], list[Value]]:
        """Return the nodes that results need, and the values of the results."""
        for result in results:
            self._compute(result)
        return self.nodes, [self.mapping[result] for result in results]

    def _compute(self, root: Output) -> None:
        """Make the nodes that an output needs; iterative, so long chains are safe."""
        path: list[tuple[Output, Iterator[Output]]] = []
        waiting: set[Output] = set()

        def enter(output: Output) -> None:
            if output in waiting:
                assert output.node is not None
                fail(output.node, "needs what it gives, in one loop or branch")
            waiting.add(output)
            path.append((output, iter(self._needs(output))))

        if root not in self.mapping:
            enter(root)
        while path:
            output, needs = path[-1]
            needed = next((x for x in needs if x not in self.mapping), None)
            if needed is not None:
                enter(needed)
                continue
            path.pop()
            waiting.remove(output)
            if output not in self.mapping:
                self._make(output)

    def _origin(self, output: Output) -> DataflowNode | LoopNodes | SwitchGroup:
        """Return the node, loop or branches of this place that give an output."""
        node = output.node
        if node is None:
            raise AssertionError("params are mapped")
        if node.op is Primitive.EXIT:
            *outer, loop, _ = self.contexts.place(node)
            if tuple(outer) == self.path and isinstance(loop, LoopNodes):
                return loop
        elif node.op is Primitive.MERGE and self.contexts.inner[output] == self.path:
            group = self.contexts.inner[node.inputs[0]][-2]
            if isinstance(group, SwitchGroup):
                return group
        elif self.contexts.place(node) == self.path and node.op not in _BORDERS:
            return node
        return fail(
            node,
            "gives a value that is read at another place",
            "pass it there through an Enter that is constant, or through a Switch.",
        )

    def _needs(self, output: Output) -> Sequence[Output]:
        """Return the outputs to compute first: inputs, and what control edges lead from."""
        match self._origin(output):
            case LoopNodes() as loop:
                nodes: Sequence[DataflowNode] = (*loop.enters, *loop.constants)
            case SwitchGroup() as group:
                nodes = [node for node in group.switches if self._is_read(node)]
            case node:
                return (*node.inputs, *_awaited(node))
        inputs = [x for node in nodes for x in node.inputs]
        return (*inputs, *(x for node in nodes for x in _awaited(node)))

    def _make(self, output: Output) -> None:
        match self._origin(output):
            case LoopNodes() as loop:
                self._loop(loop)
            case SwitchGroup() as group:
                self._branches(group)
            case DataflowNode(op=Primitive.IDENTITY) as node:
                self.mapping[output] = self.mapping[node.inputs[0]]
            case DataflowNode(op=Op() as op) as node:
                self._add(op, [self.mapping[x] for x in node.inputs], node.attrs, (), node)
            case node:
                fail(node, "is not part of a loop or of branches")

    def _add(
        self,
        op: Op,
        operands: Sequence[Value],
        attrs: Mapping[str, Any],
        regions: Sequence[Graph],
        like: DataflowNode,
        outputs: Sequence[Output] | None = None,
        others: Sequence[Value] = (),
    ) -> Node:
        outputs = like.outputs if outputs is None else outputs
        types = [*(x.type for x in outputs), *(x.type for x in others)]
        node = Node(op, operands, attrs, regions, types, like.source)
        for output, result in zip(outputs, node.results, strict=False):
            result.name = output.name
            self.mapping[output] = result
        self.nodes.append(node)
        return node

    def _inner(
        self, name: str, path: Path, params: Sequence[Output], results: Sequence[Output]
    ) -> Graph:
        """Return the region at a place; an output that is two params is the first of them."""
        values = [Value(param.type, name=param.name) for param in params]
        mapping: dict[Output, Value] = {}
        for param, value in zip(params, values, strict=True):
            mapping.setdefault(param, value)
        nodes, returned = _RegionMaker(self.contexts, path, mapping).finish(results)
        return Graph(name, tuple(values), tuple(nodes), tuple(returned))

    def _loop(self, loop: LoopNodes) -> None:
        if loop.cond is None:
            first = (*loop.enters, *loop.constants)[0]
            fail(first, f"enters {loop.name}, which has no LoopCond")
        merges = [merge for merge in loop.merges if not self._is_pivot(merge)]
        switches = [node for node in loop.switches if self._is_read(node)]
        constants = [enter.outputs[0] for enter in loop.constants]
        path = (*self.path, loop)
        before = self._inner(
            "before",
            (*path, BEFORE),
            [*(merge.outputs[0] for merge in merges), *constants],
            [loop.cond.inputs[0], *(node.inputs[0] for node in switches)],
        )
        after = self._inner(
            "after",
            (*path, AFTER),
            [*(node.outputs[1] for node in switches), *constants],
            [_origin_of(merge.inputs[1]).inputs[0] for merge in merges],
        )
        entries = [_origin_of(merge.inputs[0]) for merge in merges]
        operands = [self.mapping[x.inputs[0]] for x in (*entries, *loop.constants)]
        first = (*loop.enters, *loop.constants)[0]
        hidden = ("frame", "is_constant", "in_order")
        attrs = {key: value for key, value in first.attrs.items() if key not in hidden}
        exits = {x.inputs[0]: x.outputs[0] for x in loop.exits}
        ends = [Output(node.outputs[0].type) for node in switches]
        outputs = [
            exits.get(node.outputs[0], end) for node, end in zip(switches, ends, strict=True)
        ]
        attrs["carry"] = len(merges)
        self._add(while_, operands, attrs, (before, after), first, outputs)
        for exit in loop.exits:  # a second one of the same value
            self.mapping.setdefault(exit.outputs[0], self.mapping[exits[exit.inputs[0]]])

    def _branches(self, group: SwitchGroup) -> None:
        operands = self._operands(group)
        count = len(group.switches[0].outputs)
        regions = [
            self._inner(
                f"branch{k}",
                (*self.path, group, k),
                [node.outputs[k] for node in operands],
                [merge.inputs[k] for merge in group.merges],
            )
            for k in range(count)
        ]
        values = [self.mapping[x] for x in (group.selector, *(node.inputs[0] for node in operands))]
        outputs = [merge.outputs[0] for merge in group.merges]
        self._add(if_, values, {}, regions, group.merges[0], outputs)

    def _operands(self, group: SwitchGroup) -> list[DataflowNode]:
        """Return the switches of values; a way that is only waited for starts nodes without one."""
        return [node for node in group.switches if self._is_read(node)]

    def _is_read(self, switch: DataflowNode) -> bool:
        """Return whether what a switch gives is more than a token that starts nodes."""
        users = [
            user for x in switch.outputs for user in self.contexts.users(x) if x in user.inputs
        ]
        if switch.inputs[0].type == TOKEN and all(
            user.op is Primitive.NEXT_ITERATION for user in users
        ):
            head = switch.inputs[0].node
            return head is None or head.op is not Primitive.MERGE or not self._is_pivot(head)
        return bool(users)

    def _is_pivot(self, merge: DataflowNode) -> bool:
        """Return whether a merge begins a token that goes round unchanged, read by no node."""
        again = _origin_of(merge.inputs[1])
        switch = again.inputs[0].node
        return (
            merge.outputs[0].type == TOKEN
            and switch is not None
            and switch.op is Primitive.SWITCH
            and switch.inputs[0] is merge.outputs[0]
            and self._readers(merge.outputs[0]) == [switch]
            and self._readers(switch.outputs[0]) == []
            and self._readers(switch.outputs[1]) == [again]
        )

    def _readers(self, output: Output) -> list[DataflowNode]:
        """Return the nodes that take an output, and do not only wait for it."""
        return [user for user in self.contexts.users(output) if output in user.inputs]


_BORDERS = frozenset({Primitive.ENTER, Primitive.MERGE, Primitive.SWITCH, Primitive.NEXT_ITERATION})


def _awaited(node: DataflowNode) -> Iterator[Output]:
    """Yield what a node waits for, but for what only starts it with its loop or branch."""
    for x in node.controls:
        if x.node is not None and x.node.op is not Primitive.SWITCH and not x.node.is_loop_head:
            yield x


def _origin_of(output: Output) -> DataflowNode:
    assert output.node is not None
    return output.node
