"""Which backend runs graphs that hand records of a loop on to others."""

from __future__ import annotations

from wend.ir.graph import Graph
from wend.ir.types import ListType, TensorType, without_maybe


def for_records(backend: str, *graphs: Graph) -> str:
    """The backend; numpy where a graph takes or gives lists of other things than numbers.

    Native code is given numbers, and gives them, a whole list at a time. What else is in lists is
    carried one by one, which takes longer than the native loop saves.
    """
    types = (type for graph in graphs for type in (*graph.param_types, *graph.result_types))
    lists = (found for type in types if isinstance(found := without_maybe(type), ListType))
    is_slow = any(not isinstance(x.element, TensorType) or x.element.shape != () for x in lists)
    return "numpy" if is_slow else backend
