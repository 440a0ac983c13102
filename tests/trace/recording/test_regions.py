"""Recorded loops: which policy of `memory=` they get, and effects that it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend import TensorSpec
from wend.ir.graph import Graph
from wend.ops.control import while_


def policies(fun: Callable[..., Any], *args: Any) -> list[str]:
    """The policies of the loops of a function, the outer ones first."""

    def of(graph: Graph) -> list[str]:
        own = [n.attrs.get("memory", "keep") for n in graph.nodes if n.op is while_]
        return own + [text for n in graph.nodes for region in n.regions for text in of(region)]

    return of(wend.function(fun).get_concrete_function(*args).graph)


def for_(x: Any, n: Any, memory: Any = None) -> Any:
    for _ in range(n) if memory is None else wend.loop(range(n), memory=memory):
        x = np.sin(x)
    return x


def while_of(x: Any) -> Any:
    while x > 0.5:
        x = np.sin(x)
    return x


def test_the_setting_in_force_while_tracing_counts() -> None:
    with wend.config(memory=wend.Every(3)):
        assert policies(while_of, 2.0) == ["Every(3)"]
        assert policies(for_, 2.0, np.int64(4)) == ["Every(3)"]
        assert policies(lambda x: wend.fori_loop(0, 4, lambda i, x: np.sin(x), x), 1.0) == [
            "Every(3)"
        ]
    assert policies(while_of, 2.0) == ["keep"]


def test_a_block_of_the_traced_function_counts() -> None:
    def fun(x: Any) -> Any:
        with wend.config(memory="recompute"):
            x = while_of(x)
        return while_of(x + 2.0)

    assert policies(fun, 2.0) == ["recompute", "keep"]


def test_the_nearest_setting_wins() -> None:
    def fun(x: Any) -> Any:
        for _ in wend.loop(range(4), memory="keep"):
            x = np.sin(x)
        with wend.config(memory=wend.Every(2)):
            return wend.while_loop(lambda x: x > 0.5, np.sin, x, memory="recompute")

    with wend.config(memory=wend.Every(3)):
        assert policies(fun, 2.0) == ["keep", "recompute"]


def test_a_nested_loop_inherits_nothing() -> None:
    def plain(x: Any) -> Any:
        for _ in range(100):
            for _ in range(100):
                x = np.sin(x)
        return x

    def functional(x: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            return wend.scan(lambda c, _: (np.sin(c), None), x, None, 3)[0]

        return wend.fori_loop(0, 5, body, x)

    def again(x: Any) -> Any:
        for _ in range(100):
            with wend.config(memory="recompute"):
                for _ in range(100):
                    x = np.sin(x)
        return x

    with wend.config(memory=wend.Every(3)):
        assert policies(plain, 2.0) == policies(functional, 2.0) == ["Every(3)", "keep"]
        assert policies(again, 2.0) == ["Every(3)", "recompute"]


@pytest.mark.parametrize("signature", [None, [TensorSpec(())]], ids=["called", "declared"])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_the_setting_is_part_of_the_key_of_a_trace(backend: str, signature: Any) -> None:
    slope = wend.grad(while_of)
    if signature is not None:
        slope = wend.function(slope, input_signature=signature)
    results = []
    with wend.config(backend=backend):
        for memory in ("keep", wend.Every(3), "keep", wend.Every(3), wend.Every(4)):
            with wend.config(memory=memory):
                results += [slope(2.0) for _ in range(4)]
    np.testing.assert_allclose(results, results[0], rtol=1e-13)
    lines = str(slope.explain()).splitlines()
    assert lines[0].endswith("while_of: 3 traces")
    assert any('unlike trace 1: memory is wend.Every(3), not "keep"' in line for line in lines)


def printing(x: Any) -> Any:
    wend.print(x)
    return x


def assigning(x: Any) -> Any:
    variable.assign(x)
    return x


variable = wend.Variable(0.0)
EFFECTS = {
    "print": printing,
    "store": assigning,
    "py_function": lambda x: wend.py_function(np.sin, x),
}


@pytest.mark.parametrize("policy", ["recompute", wend.Every(4)], ids=str)
@pytest.mark.parametrize("effect", EFFECTS)
def test_effects_are_refused_with_the_reason_and_the_line(effect: str, policy: Any) -> None:
    def fun(x: Any) -> Any:
        for _ in wend.loop(range(5), memory=policy):
            x = EFFECTS[effect](np.sin(x))
        return x

    with pytest.raises(wend.WendError) as caught:
        wend.grad(fun)(1.0)
    line = fun.__code__.co_firstlineno + 1
    assert f"the loop at test_regions.py:{line} has memory=" in str(caught.value)
    assert f"and an effect: {effect} at test_regions.py:" in str(caught.value)
    assert "it would happen again when the backward pass runs the trip again" in str(caught.value)


def test_a_policy_without_a_loop_is_noted() -> None:
    @wend.function
    def fun(x: Any) -> Any:
        for name in wend.loop(["a", "b"], memory="recompute"):
            x = x * len(name)
        return x

    fun(2.0)
    note = 'memory="recompute" of the for at test_regions.py:'
    assert note in str(fun.explain())
    assert "has no effect: Python runs the loop" in str(fun.explain())


def test_a_loop_outside_of_a_trace_is_pythons() -> None:
    assert [*wend.loop([1, 2, 3], memory=wend.Every(2))] == [1, 2, 3]
