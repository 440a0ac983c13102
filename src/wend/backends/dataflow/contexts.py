"""The region that each node of a dataflow graph belongs to, by the primitives before it.

A place is a path of parts: the loop and the half of its body, or the switches and the way that they
take. Outputs that lead into a place are those of `Enter` and `Switch`, those that lead out of it
of `Exit` and `Merge`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import NoReturn, TypeAlias

from wend.backends.dataflow.graph import DataflowGraph
from wend.backends.dataflow.node import DataflowNode, Output, Primitive
from wend.base.errors import GraphError, explain
from wend.base.lazy.dataclass import dataclass
from wend.base.source import at

BEFORE, AFTER, ENDED = "before", "after", "ended"


@dataclass(eq=False, slots=True)
class LoopNodes:
    """A frame: the nodes of one loop that are not in its body."""

    name: str
    enters: list[DataflowNode] = field(default_factory=list)
    constants: list[DataflowNode] = field(default_factory=list)
    merges: list[DataflowNode] = field(default_factory=list)
    cond: DataflowNode | None = None
    switches: list[DataflowNode] = field(default_factory=list)
    exits: list[DataflowNode] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class SwitchGroup:
    """The switches on one selector, and the merges of their ways."""

    selector: Output
    switches: list[DataflowNode] = field(default_factory=list)
    merges: list[DataflowNode] = field(default_factory=list)


Part: TypeAlias = LoopNodes | SwitchGroup | str | int
Path: TypeAlias = tuple[Part, ...]


def fail(node: DataflowNode, text: str, cure: str | None = None) -> NoReturn:
    """Raise the error of a malformed graph, which names the node at fault."""
    raise GraphError(explain(f"functionalize: {node.name}{at(node.source)} {text}.", cure=cure))


class Contexts:
    """The place of every node, and the loops and branches of a graph.

    Attributes:
        loops: by the name of the frame.
        branches: by the selector of their switches.
        inner: the place of each output: where a node that takes it runs.

    Raises:
        GraphError: the nodes are no nested loops and branches; the error names one at fault.
    """

    def __init__(self, graph: DataflowGraph) -> None:
        self.loops: dict[str, LoopNodes] = {}
        self.branches: dict[Output, SwitchGroup] = {}
        self.inner: dict[Output, Path] = dict.fromkeys(graph.params, ())
        self._uses: dict[Output, list[DataflowNode]] = {}
        for node in graph.nodes:
            for x in (*node.inputs, *node.controls):
                self._uses.setdefault(x, []).append(node)
        self._group(graph)
        self._resolve(graph)

    def place(self, node: DataflowNode) -> Path:
        """Return where a node runs: the deepest place of its inputs."""
        path: Path = ()
        for x in (*node.inputs, *node.controls):
            inner = self.inner[x]
            if inner[: len(path)] == path:
                path = inner
            elif path[: len(inner)] != inner:
                fail(
                    node,
                    "takes values of two places that no Merge, Exit or Switch joins",
                    "pass what it takes through a Switch, or merge the ways first.",
                )
        return path

    def users(self, output: Output) -> list[DataflowNode]:
        """Return the nodes that take an output, or wait for it."""
        return self._uses.get(output, [])

    # Grouping
    def _group(self, graph: DataflowGraph) -> None:
        for node in graph.nodes:
            _check_arity(node)
            if node.op is Primitive.ENTER:
                loop = self.loops.setdefault(node.attrs["frame"], LoopNodes(node.attrs["frame"]))
                (loop.constants if node.attrs["is_constant"] else loop.enters).append(node)
        for loop in self.loops.values():
            for enter in loop.enters:
                loop.merges.append(self._head_of(enter))
        for node in graph.nodes:
            if node.op is Primitive.SWITCH and not _is_of_loop(node):
                selector = node.inputs[1]
                group = self.branches.setdefault(selector, SwitchGroup(selector))
                group.switches.append(node)

    def _head_of(self, enter: DataflowNode) -> DataflowNode:
        users = self.users(enter.outputs[0])
        if len(users) != 1 or users[0].op is not Primitive.MERGE or len(users[0].inputs) != 2:
            fail(
                enter,
                f"of {enter.attrs['frame']} must lead to one Merge with two inputs",
                "make it constant if it does not change from trip to trip.",
            )
        head = users[0]
        first, again = (x.node for x in head.inputs)
        if first is not enter or again is None or again.op is not Primitive.NEXT_ITERATION:
            fail(head, f"of {enter.attrs['frame']} takes an Enter, then a NextIteration")
        return head

    # Places, inputs first; a loop is entered once all its entries are known
    def _resolve(self, graph: DataflowGraph) -> None:
        heads = {merge: loop for loop in self.loops.values() for merge in loop.merges}
        pending = graph.in_order()
        while pending:
            remaining = [node for node in pending if not self._resolve_node(node, heads)]
            if len(remaining) == len(pending):
                fail(
                    _first_of_cycle(remaining),
                    "is on a cycle that passes no NextIteration, so no loop can be made of it",
                )
            pending = remaining

    def _resolve_node(self, node: DataflowNode, heads: dict[DataflowNode, LoopNodes]) -> bool:
        waits = node.inputs[:1] if node in heads else (*node.inputs, *node.controls)
        if any(x not in self.inner for x in waits):
            return False
        match node.op:
            case Primitive.ENTER:
                return self._enter(self.loops[node.attrs["frame"]])
            case Primitive.MERGE if node in heads:
                loop = heads[node]
                self._set(node, (*self.inner[node.inputs[0]], BEFORE))
            case Primitive.MERGE:
                self._set(node, self._merged(node))
            case Primitive.SWITCH if _is_of_loop(node):
                loop, path = self._loop_of(node, BEFORE)
                loop.switches.append(node)
                self.inner[node.outputs[0]] = (*path, ENDED)
                self.inner[node.outputs[1]] = (*path, AFTER)
            case Primitive.SWITCH:
                return self._switch(self.branches[node.inputs[1]])
            case Primitive.LOOP_COND:
                loop, _ = self._loop_of(node, BEFORE)
                if loop.cond is not None:
                    fail(node, f"is the second one of {loop.name}")
                loop.cond = node
                self._set(node, self.place(node))
            case Primitive.NEXT_ITERATION:
                loop, _ = self._loop_of(node, AFTER)
                heads_after = self.users(node.outputs[0])
                if len(heads_after) != 1 or heads_after[0] not in loop.merges:
                    fail(node, f"must lead to one Merge of {loop.name}, where it starts the trip")
                self._set(node, self.place(node))
            case Primitive.EXIT:
                origin = node.inputs[0].node
                if origin is None or origin.op is not Primitive.SWITCH or node.inputs[0].index:
                    fail(node, "takes something else than what a Switch gives at the end of a loop")
                loop, path = self._loop_of(node, ENDED)
                loop.exits.append(node)
                self._set(node, path[:-1])
            case _:
                self._set(node, self.place(node))
        return True

    def _set(self, node: DataflowNode, path: Path) -> None:
        self.inner.update(dict.fromkeys(node.outputs, path))

    def _enter(self, loop: LoopNodes) -> bool:
        entries = [*loop.enters, *loop.constants]
        waits = [x for enter in entries for x in (*enter.inputs, *enter.controls)]
        if any(x not in self.inner for x in waits):
            return False
        path = max((self.place(enter) for enter in entries), key=len)
        for enter in entries:
            if path[: len(self.place(enter))] != self.place(enter):
                fail(enter, f"enters {loop.name} from another place than its other entries")
            self._set(enter, (*path, loop))
        return True

    def _switch(self, group: SwitchGroup) -> bool:
        waits = [x for node in group.switches for x in (*node.inputs, *node.controls)]
        if any(x not in self.inner for x in waits):
            return False
        path = max((self.place(node) for node in group.switches), key=len)
        ways = len(group.switches[0].outputs)
        for node in group.switches:
            place = self.place(node)
            if path[: len(place)] != place:
                fail(node, "switches on the selector of branches at another place")
            if len(node.outputs) != ways:
                fail(node, f"has {len(node.outputs)} ways, another one on its selector {ways}")
            for k, output in enumerate(node.outputs):
                self.inner[output] = (*path, group, k)
        return True

    def _merged(self, node: DataflowNode) -> Path:
        """Return the place after a merge of ways: all of those of one group, in order."""
        paths = [self.inner[x] for x in node.inputs]
        for k, path in enumerate(paths):
            match path:
                case (*outer, SwitchGroup() as group, int(way)) if way == k and outer == [
                    *paths[0][:-2]
                ]:
                    is_last = k == len(paths) - 1
                    if not is_last or len(group.switches[0].outputs) == len(paths):
                        continue
            fail(
                node,
                f"must join the ways of one Switch in order; input {k} is none of them",
                "a Merge that begins a loop takes an Enter, then a NextIteration.",
            )
        joined = paths[0][-2]
        assert isinstance(joined, SwitchGroup)
        if any(path[-2] is not joined for path in paths):
            fail(node, "joins ways of two selectors")
        joined.merges.append(node)
        return paths[0][:-2]

    def _loop_of(self, node: DataflowNode, half: str) -> tuple[LoopNodes, Path]:
        """Return the innermost loop around a node, which must be in this half of its body."""
        path = self.place(node)
        match path:
            case (*_, LoopNodes() as loop, str(part)) if part == half:
                return loop, path[:-1]
            case (*_, LoopNodes() as loop):  # it takes what does not change, at any trip
                return loop, path
        where = {BEFORE: "before the test", AFTER: "after the test", ENDED: "at the end"}[half]
        fail(node, f"is not {where} of a loop")


def _check_arity(node: DataflowNode) -> None:
    expected = {
        Primitive.ENTER: (1, 1),
        Primitive.EXIT: (1, 1),
        Primitive.NEXT_ITERATION: (1, 1),
        Primitive.LOOP_COND: (1, 1),
        Primitive.IDENTITY: (1, 1),
    }
    if isinstance(node.op, Primitive):
        counts = len(node.inputs), len(node.outputs)
        if node.op is Primitive.SWITCH and len(node.inputs) != 2:
            fail(node, f"takes a value and a selector, not {len(node.inputs)} inputs")
        if node.op in expected and counts != expected[node.op]:
            fail(node, f"takes one input and gives one output, not {counts[0]} and {counts[1]}")
    if node.op is Primitive.ENTER and not {"frame", "is_constant"} <= node.attrs.keys():
        fail(node, "has no frame, or does not say whether it is constant")


def _is_of_loop(node: DataflowNode) -> bool:
    origin = node.inputs[1].node
    return origin is not None and origin.op is Primitive.LOOP_COND


def _first_of_cycle(nodes: Sequence[DataflowNode]) -> DataflowNode:
    """Return a node on a cycle among nodes each of which waits for another."""
    waiting = {output: node for node in nodes for output in node.outputs}

    def origins(node: DataflowNode) -> Iterator[DataflowNode]:
        return (waiting[x] for x in (*node.inputs, *node.controls) if x in waiting)

    node, visited = nodes[0], set[DataflowNode]()
    while node not in visited:
        visited.add(node)
        node = next(origins(node), nodes[0])
    return node
