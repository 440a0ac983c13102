"""Functional control flow outside a trace: it is traced as well, then run at once (D14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.backends.compiled_graph import CompiledGraph
from wend.base import trees
from wend.base.config import settings
from wend.trace.aliasing.outer_arrays import unchanged
from wend.trace.recording.arguments import is_array_leaf, leaf_type
from wend.trace.trace_function import trace_function


def run_now(fun: Callable[..., Any], *args: Any) -> Any:
    """Trace `fun(*args)` and run the graph; leaves that are not arrays are passed unchanged."""
    leaves, treedef = trees.flatten_deep(args)
    positions = [k for k, leaf in enumerate(leaves) if is_array_leaf(leaf)]
    arrays = [leaves[k] for k in positions]

    def call(fun: Callable[..., Any], traced: Sequence[Any]) -> Any:
        filled = list(leaves)
        for k, leaf in zip(positions, traced, strict=True):
            filled[k] = leaf
        return fun(*trees.unflatten(treedef, filled))

    with unchanged(fun):
        traced = trace_function(fun, [leaf_type(x) for x in arrays], call, "immediate")
    execute, boundary, _ = CompiledGraph(traced.graph).entry(settings().backend)
    return traced.run(execute, arrays, boundary)
