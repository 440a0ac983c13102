"""Code can ask whether it is being recorded."""

from __future__ import annotations

import pytest

import wend


def doubled_if_traced(x):
    if wend.is_tracing():
        return 2.0 * x
    return x


def test_while_a_function_is_recorded():
    assert not wend.is_tracing()
    assert doubled_if_traced(1.5) == 1.5
    assert wend.function(doubled_if_traced)(1.5) == 3.0
    assert wend.grad(doubled_if_traced)(1.5) == 2.0
    assert wend.while_loop(lambda v: v < 8.0, doubled_if_traced, 1.0) == 8.0
    assert not wend.is_tracing()


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_not_in_host_calls_nor_eagerly_nor_under_a_tape(backend):
    seen = []

    def note(x):
        seen.append(wend.is_tracing())

    with wend.config(backend=backend):
        wend.function(lambda x: wend.py_function(note, None, x))(1.0)
    with wend.config(eager=True):
        wend.function(note)(1.0)
    with wend.GradientTape():
        note(1.0)
    assert seen == [False] * 3
