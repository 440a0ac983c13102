"""What a forward loop records."""

from __future__ import annotations

from typing import Any

import wend
import wend.numpy as wnp


def grown(x: Any) -> Any:
    while wnp.sin(x) < 10.0:
        x = x * wnp.sin(x) + 1.0
    return x


def test_what_both_loops_add_belongs_to_the_line_of_the_loop() -> None:
    # Not to that of the call, which is where it happens to be derived
    first = grown.__code__.co_firstlineno
    graph = wend.grad(grown).get_concrete_function(2.0).graph
    loops = [node for node in graph.walk() if node.op.name == "while"]
    assert len(loops) == 2
    for loop in loops:
        for region in loop.regions:
            lines = {node.source.line for node in region.walk() if node.source is not None}
            assert lines <= {first + 1, first + 2}
