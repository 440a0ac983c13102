"""Generator functions that are decorated: Python runs their generators."""

from __future__ import annotations

import numpy as np

import wend


def test_a_generator_goes_on_when_it_is_asked():
    events = []

    @wend.function
    def doubled(x):
        try:
            while True:
                x = x * 2
                events.append(float(x[0]))
                yield x
        finally:
            events.append("closed")

    values = doubled(np.ones(2))
    assert events == []
    assert next(values).tolist() == [2.0, 2.0]
    assert next(values).tolist() == [4.0, 4.0]
    values.close()
    assert events == [2.0, 4.0, "closed"]


def test_what_it_calls_is_compiled():
    @wend.function
    def square(x):
        return x * x

    @wend.function
    def squares(x, count):
        for k in range(count):
            yield square(x + k)

    assert list(squares(1.0, 3)) == [1.0, 4.0, 9.0]
    assert square.trace_count == 1


def test_in_a_trace_it_is_what_the_plain_function_makes():
    @wend.function
    def powers(x):
        for _ in range(3):
            x = x * 2
            yield x

    @wend.function
    def total(x):
        s = 0.0
        for y in powers(x):
            s = s + y.sum()
        return s

    assert total(np.ones(2)) == 28.0
    assert wend.grad(total)(np.ones(2)).tolist() == [14.0, 14.0]


def test_methods_make_generators():
    class Numbers:
        @wend.function
        def below(self, n):
            yield from range(n)

    assert list(Numbers().below(3)) == [0, 1, 2]
