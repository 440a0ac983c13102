"""Checks and questions about graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import wend
from wend.ir import Graph, Node, Op, parse, to_text, verify
from wend.ir.packing import Names, pack, unpack
from wend.ir.types import ListType, MaybeType
from wend.passes.pipeline import OPTIMIZE, run_passes


def check_graph(graph: Graph) -> Graph:
    """The graph is sound, and print → parse → print gives the same text; returns what was read.

    So do pack → unpack → pack, with the user's lines; and the same bytes, but for operations that
    strict runs make for themselves, and no other process has.
    """
    verify(graph)
    table: list[Any] = []
    text = to_text(graph, table=table)
    again = verify(parse(text, table=table))
    table_again: list[Any] = []
    assert to_text(again, table=table_again) == text
    assert all(a is b for a, b in zip(table, table_again, strict=True))
    names = Names()
    data = pack([graph], names)
    (copy,) = unpack(data, names)
    assert to_text(copy, sources=True) == to_text(graph, sources=True)
    if not any(isinstance(x, Op) for x in names.objects):
        assert pack([copy], Names()) == data
    return again


_checked: set[int] = set()


def check_compiled(graph: Graph) -> None:
    """Check a graph that is compiled; of those with one text, lines included, only the first."""
    verify(graph)
    text = hash(to_text(graph, sources=True))
    if text not in _checked:
        check_graph(graph)
        _checked.add(text)


def traced(fun: Any, *args: Any, optimize: bool = False) -> Graph:
    """The graph of a function for these arguments."""
    fun = fun if isinstance(fun, wend.Function) else wend.function(fun)
    graph = fun.get_concrete_function(*args).graph
    return run_passes(graph, OPTIMIZE) if optimize else graph


def gradient(fun: Any, *args: Any, argnums: Any = 0) -> Graph:
    """The optimized joint graph of a gradient."""
    return traced(wend.value_and_grad(fun, argnums), *args, optimize=True)


def loops(graph: Graph) -> list[Node]:
    """The While nodes of a graph at its top level, in order."""
    return [node for node in graph.nodes if node.op.name == "while"]


def pushes(graph: Graph) -> list[Node]:
    """Every `list_push`, at any depth: what is taped."""
    return [node for node in graph.walk() if node.op.name == "list_push"]


def names(graph: Graph) -> list[str]:
    """The operations at any depth, in program order."""
    return [node.op.name for node in graph.walk()]


def list_carries(loop: Node) -> list[Any]:
    """Types of the lists that a loop carries."""
    count = loop.attrs["carry"]
    return [v.type for v in loop.operands[:count] if _is_list(v.type)]


def _is_list(type: Any) -> bool:
    return isinstance(type, ListType) or (isinstance(type, MaybeType) and _is_list(type.of))


def all_graphs(graph: Graph) -> Iterator[Graph]:
    """The graph and all its regions."""
    yield graph
    for node in graph.walk():
        yield from node.regions


def float_carries(loop: Node) -> Sequence[Any]:
    """Types of the float arrays that a loop carries."""
    count = loop.attrs["carry"]
    types = [v.type for v in loop.operands[:count]]
    return [t for t in types if hasattr(t, "dtype") and t.dtype.kind in "fc"]
