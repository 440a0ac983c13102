"""The verifier: scopes, types and regions of a graph, with the user's line in errors."""

from __future__ import annotations

from wend.base.errors import GraphError, WendError, listed
from wend.base.source import at
from wend.ir.builder import as_tuple
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import Dim, Symbol, TensorType, Type, accepts


def verify(graph: Graph, verified: set[Graph] | None = None) -> Graph:
    """Return the graph if it is valid.

    Args:
        graph: the graph to verify.
        verified: graphs and regions known to be valid, which are skipped; what is verified is
            added. A pass returns most of them as they are.

    Raises:
        GraphError: a value is used before or outside its definition, a type is not what the shape
            rule gives, or a region does not fit its node.
    """
    _verify_scope(graph, set() if verified is None else verified)
    return graph


def _verify_scope(graph: Graph, verified: set[Graph]) -> None:
    if graph in verified:  # it is immutable, and a region refers to nothing outside it
        return
    defined: set[Value] = set()
    for param in graph.params:
        if param in defined or param.node is not None:
            raise GraphError(f"graph {graph.name}: a param is listed twice or made by a node")
        defined.add(param)
    if graph.captures != graph.params[len(graph.params) - len(graph.captures) :]:
        raise GraphError(f"graph {graph.name}: the captures are not the last of the params")
    for node in graph.nodes:
        _verify_node(node, defined, verified)
        defined.update(node.results)
    for result in graph.results:
        if result not in defined:
            raise GraphError(f"graph {graph.name}: returns {result!r}, which it does not define")
    verified.add(graph)


def _verify_node(node: Node, defined: set[Value], verified: set[Graph]) -> None:
    where = f"{node.op.name}{at(node.source)}"
    for operand in node.operands:
        if operand not in defined:
            raise GraphError(f"{where}: uses {operand!r}, which is not defined before it here")
    for region in node.regions:
        _verify_scope(region, verified)
    infer_attrs = {"regions": node.regions, **node.attrs} if node.op.regions else node.attrs
    try:
        inferred = as_tuple(
            node.op.infer(*(operand.type for operand in node.operands), **infer_attrs)
        )
    except WendError as error:
        raise GraphError(f"{where}: {error}") from error
    recorded = tuple(result.type for result in node.results)
    if inferred == recorded:
        return
    bound: dict[Symbol, Dim] = {}
    same = len(inferred) == len(recorded) and all(
        accepts(expected, _with_known_sizes(actual, expected), bound)
        for expected, actual in zip(inferred, recorded, strict=True)
    )
    # Only the unknowns that the rule calls new may have another name in the graph.
    if not same or any(
        expected != dim and not expected.is_fresh for expected, dim in bound.items()
    ):
        raise GraphError(
            f"{where}: has results {listed(recorded)}, its shape rule gives {listed(inferred)}"
        )


def _with_known_sizes(type: Type, inferred: Type) -> Type:
    """Return a type with its symbols replaced by the sizes that the shape rule infers.

    A graph for symbolic sizes may be inlined where they are known; its symbols remain symbols.
    """
    if not (isinstance(type, TensorType) and isinstance(inferred, TensorType)):
        return type
    if type.shape is None or inferred.shape is None or len(type.shape) != len(inferred.shape):
        return type
    pairs = zip(type.shape, inferred.shape, strict=True)
    return type.with_shape(
        tuple(b if isinstance(a, Symbol) and isinstance(b, int) else a for a, b in pairs)
    )
