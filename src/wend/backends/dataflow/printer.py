"""Dataflow graphs as text, and their equality, which ignores names, lines and the order of nodes.

A node is written on one line. `^%3` among its inputs is a control edge: it waits for that output.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from wend.backends.dataflow.node import DataflowNode, Output, Primitive, post_order
from wend.ir.printer import Printer
from wend.ir.types import TOKEN

if TYPE_CHECKING:
    from wend.backends.dataflow.graph import DataflowGraph


def to_text(graph: DataflowGraph) -> str:
    """Return the text of a graph, its nodes in their order."""
    return _write(graph, graph.nodes, graph.name, [])


def equal(a: DataflowGraph, b: DataflowGraph) -> bool:
    """Return whether two graphs are equal up to the names of outputs and frames.

    The order of their nodes does not matter, nor do nodes that no result depends on.
    """
    a_table: list[Any] = []
    b_table: list[Any] = []
    a_text = _write(a, reachable(a), "_", a_table, renames_frames=True)
    b_text = _write(b, reachable(b), "_", b_table, renames_frames=True)
    return (
        a_text == b_text and len(a_table) == len(b_table) and all(map(_is_same, a_table, b_table))
    )


def reachable(graph: DataflowGraph) -> list[DataflowNode]:
    """Return the nodes that results depend on, inputs first but where a cycle closes."""
    roots = (result.node for result in graph.results if result.node is not None)
    return post_order(roots, _origins)


def _origins(node: DataflowNode) -> Iterator[DataflowNode]:
    return (x.node for x in (*node.inputs, *node.controls) if x.node is not None)


def _write(
    graph: DataflowGraph,
    nodes: Iterable[DataflowNode],
    name: str,
    table: list[Any],
    *,
    renames_frames: bool = False,
) -> str:
    nodes = list(nodes)
    numbers: dict[Output, int] = {}
    counter = itertools.count()
    for output in (*graph.params, *(output for node in nodes for output in node.outputs)):
        numbers[output] = next(counter)
    values = Printer(table, False, {})
    frames: dict[str, str] = {}

    def typed(output: Output) -> str:
        return f"%{numbers[output]}: {values.type(output.type)}"

    def name_of(output: Output) -> str:
        prefix = "^" if output.type == TOKEN else ""
        return f"{prefix}%{numbers.get(output, '?')}"

    captures = f" captures {len(graph.captures)}" if graph.captures else ""
    lines = [f"dataflow {name}({', '.join(map(typed, graph.params))}){captures} {{"]
    for node in nodes:
        inputs = [*map(name_of, node.inputs)]
        inputs += [f"^%{numbers.get(x, '?')}" for x in node.controls]
        attrs = dict(node.attrs)
        if node.op is Primitive.ENTER and renames_frames:
            attrs["frame"] = frames.setdefault(attrs["frame"], f"frame {len(frames)}")
        shown = ", ".join(f"{key}={values.attr(x)}" for key, x in sorted(attrs.items()))
        text = f"{node.name}({', '.join(inputs)})" + (f" {{{shown}}}" if shown else "")
        results = ", ".join(map(typed, node.outputs))
        lines.append(f"  {results} = {text}" if results else f"  {text}")
    lines.append(f"  return {', '.join(map(name_of, graph.results))}".rstrip())
    return "\n".join([*lines, "}"])


def _is_same(a: Any, b: Any) -> bool:
    return a is b or (
        getattr(a, "dtype", None) == getattr(b, "dtype", 0)
        and a.shape == b.shape
        and bool(a.tobytes() == b.tobytes())
    )
