"""What loops keep of each trip."""

from __future__ import annotations

from typing import Any

import numpy as np

import wend
import wend.numpy as wnp
from wend.ops.records import records


def grown(x: Any) -> Any:
    while wnp.sum(x) < 100.0:
        x = x * x
    return wnp.sum(x)


def test_a_record_names_the_value_and_the_loop() -> None:
    graph = wend.grad(grown).get_concrete_function(np.ones(3) + 1.0).graph
    (found,) = records(graph)
    assert (str(found), found.size) == ("`x` f64[3]", "32 bytes")
    assert found.loop.op.name == "while"
    assert found.push.op.name == "list_push"
    assert found.value.name == "`x`"


def test_a_loop_that_keeps_nothing_has_none() -> None:
    assert not [*records(wend.function(grown).get_concrete_function(np.ones(3)).graph)]
