"""Emission of one graph of wend's: its nodes in order, control flow as subgraphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from wend.base.lazy.dataclass import dataclass
from wend.interop.onnx.builder import ModelBuilder, unsupported
from wend.interop.onnx.elementwise import ELEMENTWISE
from wend.interop.onnx.indexing import INDEXING
from wend.interop.onnx.lists import LISTS, NO_NAME
from wend.interop.onnx.shaping import SHAPING
from wend.ir.dtypes import BOOL, INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, TensorType, TokenType, Type
from wend.ops.control import WhileParts

# A node, the names of its operands -> the names of its results
Emitter = Callable[[ModelBuilder, Node, Sequence[str]], "str | Sequence[str]"]
_PREDICATE = TensorType(BOOL, ())
_COUNT = TensorType(INT64, ())


def emit_graph(m: ModelBuilder, graph: Graph, arguments: Sequence[str]) -> list[str]:
    """Emit the nodes of a graph; return the names of its results.

    Raises:
        UnsupportedError: an operation has no counterpart in ONNX.
    """
    names = dict(zip(graph.params, arguments, strict=True))
    for node in graph.nodes:
        operands = [names[operand] for operand in node.operands]
        emitter = EMITTERS.get(node.op.name)
        if emitter is None:
            cure = "compute it from operations of the table in docs/onnx.md, or outside."
            raise unsupported(node, "it has no counterpart", cure)
        for result in node.results:
            m.check_type(result.type, node)
        results = emitter(m, node, operands)
        results = [results] if isinstance(results, str) else results
        names.update(zip(node.results, results, strict=True))
    return [names[result] for result in graph.results]


# Loops
def _emit_while(m: ModelBuilder, node: Node, operands: Sequence[str]) -> list[str]:
    """Emit a loop: ONNX tests after the body, so `before` runs once ahead of it.

    Lists that every trip appends one item to are scan outputs of the loop; others are carried.
    """
    parts = WhileParts.of(node)
    count = len(parts.carry)
    invariants = operands[count:]
    scanned = {
        k: scan for k, scan in appended_lists(parts).items() if not m.is_sequence(scan.list_type)
    }
    ahead = emit_graph(m, parts.before, operands)
    predicate, forwarded = ahead[0], ahead[1:]
    carried = [k for k in range(len(forwarded)) if k not in scanned and _is_array(node, k)]
    types = [parts.forwarded[k].type for k in carried]
    with m.subgraph():
        trip, goes_on = m.name(), m.name()
        inputs = {k: m.name() for k in carried}
        after = emit_graph(
            m, parts.after, [*(inputs.get(k, NO_NAME) for k in range(len(forwarded))), *invariants]
        )
        pushed = [after[scan.carry] for scan in scanned.values()]
        again = emit_graph(m, parts.before, [*after, *invariants])
        body = m.finish_subgraph(
            [(trip, _COUNT), (goes_on, _PREDICATE), *zip(inputs.values(), types, strict=True)],
            [
                (again[0], _PREDICATE),
                *[(again[1 + k], type) for k, type in zip(carried, types, strict=True)],
                *[(x, scan.element) for x, scan in zip(pushed, scanned.values(), strict=True)],
            ],
        )
    results = m.emit_many(
        "Loop",
        [NO_NAME, predicate, *(forwarded[k] for k in carried)],
        len(carried) + len(scanned),
        body=body,
    )
    by_position = dict(zip([*carried, *scanned], results, strict=True))
    for k, scan in scanned.items():
        if not scan.is_empty:
            by_position[k] = m.emit("Concat", forwarded[k], by_position[k], axis=0)
    return [by_position.get(k, NO_NAME) for k in range(len(forwarded))]


def _is_array(node: Node, k: int) -> bool:
    return not isinstance(node.results[k].type, TokenType)


@dataclass(frozen=True, slots=True)
class AppendedList:
    """A list of a loop that every trip appends one item to, and that nothing in the loop reads.

    Attributes:
        carry: its position in the carry.
        list_type: its type.
        element: the type of an item.
        is_empty: whether it is empty before the loop.
    """

    carry: int
    list_type: Type
    element: Type
    is_empty: bool


def appended_lists(parts: WhileParts) -> dict[int, AppendedList]:
    """Return those lists of a loop, by their positions among the forwarded values."""
    lists = {}
    for k, param in enumerate(parts.before_carry):
        if not isinstance(param.type, ListType):
            continue
        positions = [j for j, value in enumerate(parts.forwarded) if value is param]
        if len(positions) != 1 or _count_reads(parts.before, param):
            continue
        inner = parts.after_forwarded[positions[0]]
        push = parts.next_carry[k].node
        is_push = push is not None and push.op.name == "list_push" and push.operands[0] is inner
        if not is_push or push is None or push not in parts.after.nodes:
            continue
        if _count_reads(parts.after, inner) != 1 or inner in parts.next_carry:
            continue
        is_result_only = [*parts.next_carry].count(push.results[0]) == 1
        if is_result_only and not _count_reads(parts.after, push.results[0]):
            origin = parts.carry[k].node
            is_empty = origin is not None and origin.op.name == "list_new"
            lists[positions[0]] = AppendedList(k, param.type, param.type.element, is_empty)
    return lists


def _count_reads(graph: Graph, value: Value) -> int:
    return sum([*node.operands].count(value) for node in graph.nodes)


# Branches
def _emit_if(m: ModelBuilder, node: Node, operands: Sequence[str]) -> list[str]:
    selector, inputs = operands[0], operands[1:]
    branches = node.regions
    kept_results = [k for k in range(len(node.results)) if _is_array(node, k)]
    types = [node.results[k].type for k in kept_results]

    def branch(number: int) -> list[str]:
        results = emit_graph(m, branches[number], inputs)
        return [results[k] for k in kept_results]

    def choose(number: int) -> list[str]:
        """Emit the choice among the branches from a number on."""
        if number == len(branches) - 1:
            return branch(number)
        is_this = m.emit("Equal", selector, m.constant(number, np.int64))
        return _emit_choice(m, is_this, lambda: branch(number), lambda: choose(number + 1), types)

    if node.operands[0].type == _PREDICATE:
        results = _emit_choice(m, selector, lambda: branch(1), lambda: branch(0), types)
    else:
        results = choose(0)
    by_position = dict(zip(kept_results, results, strict=True))
    return [by_position.get(k, NO_NAME) for k in range(len(node.results))]


def _emit_choice(
    m: ModelBuilder,
    predicate: str,
    then: Callable[[], list[str]],
    otherwise: Callable[[], list[str]],
    types: Sequence[Type],
) -> list[str]:
    if not types:
        return []
    graphs = []
    for make in (then, otherwise):
        with m.subgraph():
            graphs.append(m.finish_subgraph((), [*zip(make(), types, strict=True)]))
    then_branch, else_branch = graphs
    return m.emit_many(
        "If", [predicate], len(types), then_branch=then_branch, else_branch=else_branch
    )


def _emit_same(m: ModelBuilder, node: Node, operands: Sequence[str]) -> str:
    return operands[0]


# Effects
def _drop_check(m: ModelBuilder, node: Node, operands: Sequence[str]) -> str:
    m.dropped_checks.append("" if node.source is None else node.source.short)
    return NO_NAME


def _drop(m: ModelBuilder, node: Node, operands: Sequence[str]) -> str:
    return NO_NAME


EMITTERS: Mapping[str, Emitter] = {
    **ELEMENTWISE,
    **SHAPING,
    **INDEXING,
    "while": _emit_while,
    "if": _emit_if,
    "call": lambda m, node, x: emit_graph(m, node.regions[0], x),
    **LISTS,
    "any_nonzero": lambda m, node, x: m.constant(True, np.bool_),
    "is_zero": lambda m, node, x: m.constant(False, np.bool_),
    "store": lambda m, node, x: x[1],
    "raise_if": _drop_check,
    "check_number": lambda m, node, x: (_drop_check(m, node, x), x[0])[1],
    "frame_state": _drop,
    "token": _drop,
    "after": _emit_same,
}
