"""Writes a graph as a Python program that calls NumPy kernels, one line a node.

A `While` becomes a Python `while`, a region a Python function. Values are dropped at their last
use. The line of each node is known, so a failing kernel can be told with the user's line.

A *watched* program calls a `Observer` after each line, and at each trip of a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from wend.ir.graph import Graph, Node, Value
from wend.ops import creating, elementwise
from wend.ops.control import IfParts, WhileParts, if_, while_

# NumPy's operators are the ufuncs, but faster on scalars.
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
    """Sees a graph run."""

    def saw(self, node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """A node without regions has been run."""

    def enter(self, loop: Node) -> None:
        """A loop starts."""

    def next_trip(self) -> None:
        """The innermost loop makes a trip more."""

    def leave(self) -> None:
        """The innermost loop has ended."""


@dataclass(slots=True)
class Program:
    """The text of a program, the objects it names, and which node each line runs."""

    is_watched: bool = False
    lines: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)  # id(graph) -> function

    def add(self, line: str, node: Node | None = None) -> None:
        self.lines.append(line)
        if node is not None:
            self.nodes[len(self.lines)] = node

    def name_for(self, kind: str, thing: Any) -> str:
        """A global name of the program that stands for an object."""
        name = f"{kind}{len(self.names)}"
        self.names[name] = thing
        return name


def write(graph: Graph, watch: Observer | None = None) -> tuple[Program, str]:
    """Write a graph; return the program and the name of its function."""
    program = Program(is_watched=watch is not None)
    program.names["watch"] = watch
    return program, _function(program, graph)


def _function(program: Program, graph: Graph) -> str:
    if id(graph) in program.functions:
        return program.functions[id(graph)]
    body = _Body(program, graph)
    name = (
        f"f{len(program.functions)}_{graph.name}"
        if graph.name.isidentifier()
        else (f"f{len(program.functions)}")
    )
    program.functions[id(graph)] = name
    body.write(name)
    return name


class _Body:
    """One function of the program."""

    def __init__(self, program: Program, graph: Graph) -> None:
        self.program, self.graph = program, graph
        self.names: dict[Value, str] = {}
        self.last_use = _last_uses(graph)
        # The functions called come first: Python writes them in order.
        self.callees = {
            node: [_function(program, region) for region in node.regions]
            for node in graph.nodes
            if node.regions
        }

    def write(self, name: str) -> None:
        params = ", ".join(self.define(param) for param in self.graph.params)
        self.program.add(f"def {name}({params}):")
        for position, node in enumerate(self.graph.nodes):
            self.node(node)
            dead = [self.names[v] for v in self.last_use.get(position, ()) if v in self.names]
            dead = [local for local in dead if not local.startswith("k")]
            if dead:
                self.program.add(f"  del {', '.join(dead)}")
        results = "".join(f"{self.names[value]}, " for value in self.graph.results)
        self.program.add(f"  return ({results})")

    def define(self, value: Value) -> str:
        self.names[value] = f"v{len(self.names)}"
        return self.names[value]

    def node(self, node: Node) -> None:
        if node.op is creating.constant:
            value = node.attrs["value"][()]
            self.names[node.results[0]] = self.program.name_for("k", value)
            return
        operands = [self.names[operand] for operand in node.operands]
        if node.op is while_:
            self.loop(node, operands)
            return
        text = self.expression(node, operands)
        targets = [self.define(result) for result in node.results]
        if len(targets) == 1 and not node.regions:
            self.program.add(f"  {targets[0]} = {text}", node)
        else:
            self.program.add(f"  {''.join(f'{t}, ' for t in targets) or '_'} = {text}", node)
        if self.program.is_watched and not node.regions:
            seen, given = self.program.name_for("n", node), ", ".join(operands)
            self.program.add(f"  watch.saw({seen}, [{given}], [{', '.join(targets)}])", node)

    def expression(self, node: Node, operands: Sequence[str]) -> str:
        if node.op in _INFIX:
            return f"{operands[0]} {_INFIX[node.op]} {operands[1]}"
        if node.op is if_:
            return self.branches(node, operands)
        if node.regions:
            return f"{self.callees[node][0]}({', '.join(operands)})"
        assert node.op.kernel is not None, f"{node.op.name} has no kernel"
        kernel = partial(node.op.kernel, **node.attrs) if node.attrs else node.op.kernel
        return f"{self.program.name_for('op', kernel)}({', '.join(operands)})"

    def branches(self, node: Node, operands: Sequence[str]) -> str:
        selector, *rest = operands
        given = ", ".join(rest)
        functions = self.callees[node]
        if len(functions) == 2 and IfParts.of(node).selector.tensor.dtype.kind == "b":
            return f"{functions[1]}({given}) if {selector} else {functions[0]}({given})"
        return f"({', '.join(functions)},)[{selector}]({given})"

    def loop(self, node: Node, operands: Sequence[str]) -> None:
        """`while True`: before; leave when its predicate fails; after."""
        w, (before, after) = WhileParts.of(node), self.callees[node]
        count = len(w.carry)
        carry = [f"c{len(self.names)}_{i}" for i in range(count)]
        results = [self.define(result) for result in node.results]
        goes_on = f"p{len(self.names)}"
        given = ", ".join([*carry, *operands[count:]])
        forwarded = ", ".join([*results, *operands[count:]])
        add = self.program.add
        for name, operand in zip(carry, operands, strict=False):
            add(f"  {name} = {operand}")
        is_watched = self.program.is_watched
        if is_watched:
            add(f"  watch.enter({self.program.name_for('n', node)})")
        add("  while True:")
        add(f"    {', '.join([goes_on, *results])}, = {before}({given})", node)
        add(f"    if not {goes_on}: break")
        add(f"    {''.join(f'{name}, ' for name in carry) or '_'} = {after}({forwarded})", node)
        if is_watched:
            add("    watch.next_trip()")
            add("  watch.leave()")
        if carry:
            add(f"  del {', '.join(carry)}")


def _last_uses(graph: Graph) -> dict[int, list[Value]]:
    """For each node's position the values that nobody reads after it."""
    last: dict[Value, int] = dict.fromkeys(graph.params, 0) if graph.nodes else {}
    for position, node in enumerate(graph.nodes):
        last.update(dict.fromkeys((*node.operands, *node.results), position))
    for result in graph.results:
        last.pop(result, None)
    found: dict[int, list[Value]] = {}
    for value, position in last.items():
        found.setdefault(position, []).append(value)
    return found
