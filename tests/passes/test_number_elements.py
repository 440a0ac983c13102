"""The graph of elements in order: what it raises, and what it leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.ir.graph import Graph
from wend.ir.op import Effect
from wend.ir.types import TOKEN
from wend.ir.verify import verify
from wend.ops.frame_states import frame_state
from wend.ops.parallel_map import parallel_map
from wend.passes.number_elements import asks_python, errors_in_maps, number_elements

TABLE = np.arange(5.0)
MATRICES = np.stack([np.eye(2)] * 3)


def graph_of(fun: Any, *args: Any) -> Graph:
    return wend.function(fun).get_concrete_function(*args).graph


def test_errors_are_those_of_operations_in_maps() -> None:
    def outside(a: Any) -> Any:
        return wend.vmap(lambda x: x @ x)(a).sum() + np.linalg.inv(a[0])[0, 0]

    assert errors_in_maps(graph_of(np.linalg.inv, MATRICES)) == ()
    assert errors_in_maps(graph_of(outside, MATRICES)) == ()
    assert errors_in_maps(graph_of(wend.vmap(np.linalg.inv), MATRICES)) == (np.linalg.LinAlgError,)
    at = np.zeros(3, int)
    assert errors_in_maps(graph_of(wend.vmap(lambda k: TABLE[k]), at)) == (IndexError,)
    assert errors_in_maps(graph_of(wend.vmap(lambda k: TABLE[1] * k), at)) == ()


FORMS = {
    "nested": lambda a: wend.vmap(wend.vmap(np.linalg.inv))(a[:, None]),
    "gradient": wend.grad(lambda a: wnp.sum(wend.vmap(np.linalg.inv)(a))),
    "in a loop": wend.vmap(
        lambda x: wend.fori_loop(0, 2, lambda k, y: wend.vmap(np.linalg.inv)(y), x[None])
    ),
}


@pytest.mark.parametrize("what", FORMS)
def test_it_has_states_in_place_of_maps(what: str) -> None:
    graph = graph_of(FORMS[what], MATRICES)
    numbered = number_elements(graph)
    verify(numbered)
    assert parallel_map not in numbered.ops
    depths = {len(x.attrs["written"]) for x in numbered.walk() if x.op is frame_state}
    assert max(depths) == (1 if what == "gradient" else 2)
    assert [x.type for x in numbered.results] == [x.type for x in graph.results]


def test_effects_are_left_out_but_for_what_python_gives() -> None:
    v = wend.Variable(1.0)

    def prints(a: Any) -> Any:
        print("before")
        v.assign_add(a.sum())
        return wend.vmap(np.linalg.inv)(a * v)

    numbered = number_elements(graph_of(prints, MATRICES))
    assert numbered.effects() == {Effect.CHECK}
    assert any(x.type == TOKEN for x in numbered.params)

    def calls(a: Any) -> Any:
        print("before")
        return wend.vmap(np.linalg.inv)(wend.numpy_function(abs, a))

    numbered = number_elements(graph_of(calls, MATRICES))
    assert asks_python(numbered)
    assert "print" not in {x.op.name for x in numbered.walk()}
