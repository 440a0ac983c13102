"""Translates a graph to a Python program that calls NumPy kernels, one line per node.

A `While` becomes a Python `while`, a region a Python function. Values are deleted after their last
use. The line of each node is known, so that the error of a kernel can name the user's line.

An observed program calls an `Observer` after each line and at each trip of a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Protocol

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType
from wend.ops import creating, elementwise
from wend.ops.control import IfParts, WhileParts, if_, while_
from wend.ops.frame_states import (
    TripState,
    contents_in,
    frame_state,
    last_needs,
    trip_state,
)

# NumPy's operators run the ufuncs, but are faster on scalars. Complex ones that are NaN they
# compare otherwise.
_INFIX = {
    elementwise.add: "+",
    elementwise.sub: "-",
    elementwise.mul: "*",
    elementwise.div: "/",
    elementwise.lt: "<",
    elementwise.le: "<=",
    elementwise.gt: ">",
    elementwise.ge: ">=",
    elementwise.eq: "==",
    elementwise.ne: "!=",
}


class Observer(Protocol):
    """Follows the run of a graph."""

    def saw(self, node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Called after a node without regions has run."""

    def enter(self, loop: Node) -> None:
        """Called when a loop starts."""

    def next_trip(self) -> None:
        """Called when the innermost loop starts another trip."""

    def leave(self) -> None:
        """Called when the innermost loop has ended."""


@dataclass(slots=True)
class PythonProgram:
    """The text of a program, its global names, and the node of each line.

    Attributes:
        states: the frame state that holds from a line on, with the names of its contents there.
        contents: the names of the contents of each frame state, where it stands.
    """

    is_observed: bool = False
    lines: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    states: dict[int, tuple[Node, Sequence[str]]] = field(default_factory=dict)
    contents: dict[Node, Sequence[str]] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)  # by id(graph)

    def add(self, line: str, node: Node | None = None) -> None:
        self.lines.append(line)
        if node is not None:
            self.nodes[len(self.lines)] = node

    def name_for(self, kind: str, value: Any) -> str:
        """Return a new global name of the program for an object."""
        name = f"{kind}{len(self.names)}"
        self.names[name] = value
        return name


def write(graph: Graph, observer: Observer | None = None) -> tuple[PythonProgram, str]:
    """Return the program of a graph, and the name of its function."""
    program = PythonProgram(is_observed=observer is not None)
    program.names["watch"] = observer
    return program, _function(program, graph)


def _function(program: PythonProgram, graph: Graph) -> str:
    if id(graph) in program.functions:
        return program.functions[id(graph)]
    body = _FunctionText(program, graph)
    name = (
        f"f{len(program.functions)}_{graph.name}"
        if graph.name.isidentifier()
        else (f"f{len(program.functions)}")
    )
    program.functions[id(graph)] = name
    body.write(name)
    return name


class _FunctionText:
    """One function of the program."""

    def __init__(self, program: PythonProgram, graph: Graph) -> None:
        self.program, self.graph = program, graph
        self.names: dict[Value, str] = {}
        self.last_use = _last_uses(graph)
        # Written first, each function before its callers
        self.callees = {
            node: [_function(program, region) for region in node.regions]
            for node in graph.nodes
            if node.regions
        }

    def write(self, name: str) -> None:
        params = ", ".join(self.define(param) for param in self.graph.params)
        self.program.add(f"def {name}({params}):")
        for position, node in enumerate(self.graph.nodes):
            dying = self.last_use.get(position, ())
            self.node(node, dying)
            dead_locals = [self.names[v] for v in dying if v in self.names]
            dead_locals = [local for local in dead_locals if not local.startswith("k")]
            if dead_locals:
                self.program.add(f"  del {', '.join(dead_locals)}")
        results = "".join(f"{self.names[value]}, " for value in self.graph.results)
        self.program.add(f"  return ({results})")

    def define(self, value: Value) -> str:
        self.names[value] = f"v{len(self.names)}"
        return self.names[value]

    def node(self, node: Node, dying: Sequence[Value]) -> None:
        if node.op is creating.constant:
            self.names[node.results[0]] = self.constant(node.results[0])
            return
        operands = [self.names[operand] for operand in node.operands]
        if node.op is while_:
            self.loop(node, operands, dying)
            return
        text = self.expression(node, operands)
        targets = [self.define(result) for result in node.results]
        if node.op is frame_state:
            self.program.add(f"  {targets[0]} = {operands[0]}", node)
            names = self.program.contents[node] = [self.names[x] for x in contents_in(node)]
            self.program.states[len(self.program.lines)] = node, names
            return
        if len(targets) == 1 and not node.regions:
            self.program.add(f"  {targets[0]} = {text}", node)
        else:
            self.program.add(f"  {''.join(f'{t}, ' for t in targets) or '_'} = {text}", node)
        if self.program.is_observed and not node.regions:
            node_name, operand_text = self.program.name_for("n", node), ", ".join(operands)
            self.program.add(
                f"  watch.saw({node_name}, [{operand_text}], [{', '.join(targets)}])", node
            )

    def constant(self, value: Value) -> str:
        """Return a global name for the value of a constant."""
        assert value.node is not None
        return self.program.name_for("k", value.node.attrs["value"][()])

    def expression(self, node: Node, operands: Sequence[str]) -> str:
        if node.op in _INFIX and node.operands[0].tensor.dtype.kind != "c":
            return f"{operands[0]} {_INFIX[node.op]} {operands[1]}"
        if node.op is if_:
            return self.branches(node, operands)
        if node.regions:
            return f"{self.callees[node][0]}({', '.join(operands)})"
        assert node.op.kernel is not None, f"{node.op.name} has no kernel"
        kernel = partial(node.op.kernel, **node.attrs) if node.attrs else node.op.kernel
        return f"{self.program.name_for('op', kernel)}({', '.join(operands)})"

    def branches(self, node: Node, operands: Sequence[str]) -> str:
        selector, *args = operands
        arg_text = ", ".join(args)
        functions = self.callees[node]
        if len(functions) == 2 and IfParts.of(node).selector.tensor.dtype.kind == "b":
            return f"{functions[1]}({arg_text}) if {selector} else {functions[0]}({arg_text})"
        return f"({', '.join(functions)},)[{selector}]({arg_text})"

    def loop(self, node: Node, operands: Sequence[str], dying: Sequence[Value]) -> None:
        """Add a `while True` that runs before, breaks where its predicate fails, and runs after.

        A list from which it starts is dropped: an older version holds what the newer ones replace.
        """
        w, (before, after) = WhileParts.of(node), self.callees[node]
        count = len(w.carry)
        carry = [f"c{len(self.names)}_{i}" for i in range(count)]
        results = [self.define(result) for result in node.results]
        predicate = f"p{len(self.names)}"
        before_args = ", ".join([*carry, *operands[count:]])
        after_args = ", ".join([*results, *operands[count:]])
        add = self.program.add
        for name, operand in zip(carry, operands, strict=False):
            add(f"  {name} = {operand}")
        spent = {self.names[v] for v in dying if isinstance(v.type, ListType)}
        for operand in sorted(spent.intersection(operands[:count]).difference(operands[count:])):
            add(f"  {operand} = None")
        is_observed = self.program.is_observed
        if is_observed:
            add(f"  watch.enter({self.program.name_for('n', node)})")
        add("  while True:")
        first_line = len(self.program.lines)
        add(f"    {', '.join([predicate, *results])}, = {before}({before_args})", node)
        add(f"    if not {predicate}: break")
        add(f"    {''.join(f'{name}, ' for name in carry) or '_'} = {after}({after_args})", node)
        if is_observed:
            add("    watch.next_trip()")
            add("  watch.leave()")
        trip = trip_state(w)
        if trip is not None:
            forwarded = dict(zip(w.forwarded, results, strict=True))
            last = [forwarded.get(param, "") for param in w.before_carry]
            for line, current in ((first_line, carry), (len(self.program.lines) + 1, last)):
                sources = {"carry": current, "invariant": operands[count:]}
                self.program.states[line] = trip.state, self.names_of_trip(trip, sources)
        if carry:
            add(f"  del {', '.join(carry)}")

    def names_of_trip(self, trip: TripState, sources: Mapping[str, Sequence[str]]) -> Sequence[str]:
        """Return the names of the contents between two trips; constants are globals."""
        return [
            sources[source[0]][source[1]] if source is not None else self.constant(value)
            for value, source in zip(contents_in(trip.state), trip.sources, strict=True)
        ]


def _last_uses(graph: Graph) -> dict[int, list[Value]]:
    """Return, for each node position, the values that are dead after it."""
    last: dict[Value, int] = dict.fromkeys(graph.params, 0) if graph.nodes else {}
    needs = last_needs(graph, lambda node: True)  # a signal handler may raise anywhere
    for position, node in enumerate(graph.nodes):
        contents = needs.get(position, ())
        last.update(dict.fromkeys((*node.operands, *contents, *node.results), position))
    for result in graph.results:
        last.pop(result, None)
    dying: dict[int, list[Value]] = {}
    for value, position in last.items():
        dying.setdefault(position, []).append(value)
    return dying
