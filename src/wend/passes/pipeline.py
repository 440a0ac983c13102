"""The passes in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from wend.base.config import settings
from wend.ir.graph import Graph
from wend.ir.verify import verify
from wend.passes.algebra import algebra
from wend.passes.blocks import without_blocks
from wend.passes.branches import join_branches
from wend.passes.cse import cse
from wend.passes.dce import dce
from wend.passes.fold import fold
from wend.passes.hoist import hoist
from wend.passes.inline import inline_calls
from wend.passes.loops import canonical_loops
from wend.passes.sharing import share_callees

Transform: TypeAlias = Callable[[Graph], Graph]

# Before a graph is differentiated or shown: meaning in few nodes.
TIDY: Sequence[Transform] = (canonical_loops, dce, share_callees)
# Before a graph is run.
OPTIMIZE: Sequence[Transform] = (
    without_blocks,
    inline_calls,
    fold,
    algebra,
    join_branches,
    hoist,
    cse,
    canonical_loops,
    dce,
)


def run_passes(graph: Graph, passes: Sequence[Transform]) -> Graph:
    """Apply passes in order; with `config(verify=True)` each result is verified."""
    check = settings().verify
    for transform in passes:
        graph = transform(graph)
        if check:
            verify(graph)
    return graph
