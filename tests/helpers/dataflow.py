"""Ways to run graphs as dataflow, and the laws of lowering."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from wend.backends.dataflow.backend import DataflowBackend
from wend.backends.dataflow.functionalize import functionalize
from wend.backends.dataflow.lower import lower
from wend.backends.dataflow.normal_form import normalise
from wend.backends.dataflow.printer import equal
from wend.ir import Graph
from wend.ir import equal as equal_graphs


def shuffled(seed: int) -> Any:
    """Take nodes off the queue in a random order."""
    rng = random.Random(seed)

    def take(ready: deque[Any]) -> Any:
        ready.rotate(rng.randrange(len(ready)))
        return ready.popleft()

    return take


def backends() -> list[DataflowBackend]:
    """Every node a token, in order and shuffled, with 1, 2 and 10 trips in flight."""
    in_order = [DataflowBackend(k, collapse=False) for k in (1, 2, 10)]
    return in_order + [
        DataflowBackend(k, collapse=False, take=shuffled(k), min_task=0.0 if k == 3 else 50e-6)
        for k in (1, 2, 3, 10)
    ]


def check_round_trip(graph: Graph) -> None:
    """Lowering loses nothing: the way back gives the normal form, and that lowers to the same."""
    lowered = lower(graph)
    back = functionalize(lowered)
    assert equal_graphs(back, normalise(graph)), f"{back}\n\n{normalise(graph)}"
    assert equal(lower(back), lowered)
