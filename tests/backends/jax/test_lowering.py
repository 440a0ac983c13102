"""A lowering starts again until all lists of a class have one room, and not for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.jax_runs import close

import wend
from wend.backends.jax.lowering import Repeat, repeated
from wend.ir.graph import Node
from wend.ops import creating


class _Endless:
    """A lowering in which a node needs more room each time."""

    def __init__(self, node: Node | None) -> None:
        self.node = node


@pytest.mark.parametrize("is_in_node", [True, False])
def test_a_lowering_does_not_start_again_for_ever(is_in_node: bool) -> None:
    starts = []

    def lower(ctx: Any) -> None:
        starts.append(ctx)
        raise Repeat

    graph = wend.function(lambda x: x + 1.0).get_concrete_function(1.0).graph
    node = next(node for node in graph.nodes if node.op is not creating.constant)
    text = "the room for the lists of add at " if is_in_node else "the room for the lists is not"
    with pytest.raises(AssertionError, match=text):
        repeated(lambda: _Endless(node if is_in_node else None), lower)  # type: ignore[arg-type, return-value]
    assert len(starts) == 100


def of_two_lengths(x: Any) -> Any:
    """The list that the loop around has at first is shorter than those of its trips."""
    kept = [x]
    for _ in range(3):
        kept = [kept[-1]]
        for k in range(40):
            kept.append(np.sin(kept[-1]) + 0.01 * k)
    return kept[-1]


def of_a_branch(x: Any) -> Any:
    """The branches give lists of two lengths."""
    out = []
    if x > 0.0:
        for k in range(3):
            out.append(x * k)
    else:
        for k in range(50):
            out.append(np.sin(x) * k)
    total = 0.0
    for v in out:
        total = 0.9 * total + v * v
    return total


def lists_of_elements(x: Any) -> Any:
    """The elements of a map have lists, which get longer."""
    table = wend.vmap(lambda v: np.sin(v) * np.arange(3.0))(x * np.arange(1.0, 6.0))
    rows = [table[k] for k in range(5)]
    for k in range(20):
        rows.append(rows[-1] * 0.5 + k)
    return np.sum(rows[-1] * rows[3])


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("fun", [of_two_lengths, of_a_branch, lists_of_elements])
def test_lists_that_meet_have_one_room(fun: Callable[..., Any]) -> None:
    for x in 0.7, -0.7:
        with wend.config(backend="numpy"):
            expected = wend.value_and_grad(fun)(x)
        with wend.config(backend="jax"):
            close(wend.value_and_grad(fun)(x), expected)
