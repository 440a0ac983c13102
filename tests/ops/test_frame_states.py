"""An error leaves changed arguments as the statements before it left them in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import wend
from wend.ir import parse
from wend.ops.frame_states import chain_of, contents_of, frame_state, last_needs, values_of

BACKENDS = ("numpy", "native")
STOPS = (0, 2, 3, 4, 5, -5, 9)
Call = Callable[..., Any]


def straight(a, b, n, idx, m):
    a[0] = 1.0
    a[1] = b[n]
    a += 1.0
    a *= b[idx]
    a[:] = np.linalg.solve(m, a)
    a[idx] = 5.0
    a[n] += 2.0
    a[1:3] = b[idx[:2]]
    row = m[1]
    row += a
    row[n] = 7.0
    np.add.at(a, idx, b)
    if n == 3:
        raise ValueError(n)


def loops(a, b, n, idx, m):
    out = []
    for k in range(n):
        a[k - 1] += b[k]
        out.append(b[idx[k % 4]])
        if k % 2:
            m[k] = a
            a[0], a[1] = a[1], a[0]
        else:
            m[0, k] = b[k]
            m[1] += a[0]
        assert k < 4, "too many"
    for k in range(5):
        a[k] = out[k]


def replaced(a, b, n, idx, m):
    a[:] = b
    b[:] = a * 2
    y = a.copy()
    y[0] = 3.0
    a[:] = np.sqrt(b)
    y[1] = b[n]
    a[:] = y + np.linalg.inv(m)[0]
    b[idx[1]] = 1.0
    np.put_along_axis(a, idx, b, 0)


def searched(a, b, n, idx, m):
    k = 0
    while b[k] < 9.0 - n:
        a -= b
        b += 1.0
        k += 1
        m[idx[k]] *= 2.0
    a[0] = a[n]


@wend.function
def inner(x, k, value):
    x[0] = value
    x[k] = value


def called(a, b, n, idx, m):
    a[:] = 1.0
    for k in range(n):
        b[0] += 1.0
        inner(a, k, b[k])
        inner(m, idx[k], 2.0)


def outcome(call: Call, arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    arguments = [np.array(x) if isinstance(x, np.ndarray) else x for x in arguments]
    try:
        call(*arguments)
    except Exception as error:  # of any class: it is compared
        return type(error).__name__, arguments
    return "", arguments


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [4, 60])  # of a small array, which is scalarized, and of another
@pytest.mark.parametrize("program", [straight, loops, replaced, searched, called])
def test_an_error_leaves_arguments_as_python_does(program: Call, size: int, backend: str) -> None:
    compiled = wend.function(backend=backend)(program)
    identity, singular = np.eye(size), np.ones((size, size))
    good = np.arange(size) % 4
    errors = set()
    for n in (*STOPS, size, size + 1):
        for m in identity, singular:
            for bad in (0, 9 * size, -size - 1):
                idx = good.copy()
                idx[size // 2] += bad
                arguments = np.zeros(size), np.arange(size) + 1.0, n, idx, m
                error, contents = outcome(program, arguments)
                compiled_error, compiled_contents = outcome(compiled, arguments)
                assert compiled_error == error
                errors.add(error)
                for actual, expected in zip(compiled_contents, contents, strict=True):
                    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    assert "IndexError" in errors


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_of_python_leaves_arguments_as_the_statements_before(backend: str) -> None:
    def fail(x):
        raise KeyError(float(x))

    @wend.function(backend=backend)
    def fun(a):
        for k in range(3):
            a[k] = k + 1.0
            wend.py_function(fail, None, a[k]) if k == 1 else None

    a = np.zeros(3)
    with pytest.raises(KeyError):
        fun(a)
    np.testing.assert_array_equal(a, [1.0, 2.0, 0.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives_leave_arguments_as_the_statements_before(backend: str) -> None:
    def fun(w, a, n):
        for k in range(n):
            a[k] = w * k
        return (a * a).sum() * w

    for derivative in (wend.grad(fun), wend.value_and_grad(fun), wend.hessian(fun)):
        a = np.zeros(3)
        with wend.config(backend=backend), pytest.raises(IndexError):
            derivative(2.0, a, 4)
        np.testing.assert_array_equal(a, [0.0, 2.0, 4.0])


def test_an_error_under_a_tape_leaves_arguments_alone() -> None:
    @wend.function
    def fun(a, n):
        a[0] = 1.0
        a[n] = 2.0

    a = np.zeros(3)
    with wend.GradientTape(), pytest.raises(IndexError):
        fun(a, 3)
    np.testing.assert_array_equal(a, np.zeros(3))


GRAPH = """
graph fun(%0: f64[2], %1: i64[], %2: token) {
  %3: f64[] = gather(%0, %1)
  %4: token = frame_state(%2, %0, %3) {written=(0, 7)}
  %5: f64[] = gather(%0, %1)
  %6: f64[] = add(%5, %5)
  %7: token = frame_state(%4, %4, %5, %6, %5) {shapes=((2,), None), written=(1, 0)}
  %8: f64[] = gather(%0, %1)
  %9: token = frame_state(%7, %8) {written=(5,)}
  %10: f64[] = gather(%0, %1)
  %11: f64[] = add(%5, %5)
  %12: token = frame_state(%9, %7, %10) {written=(7,)}
  %13: f64[] = gather(%0, %1)
  %14: f64[] = add(%5, %5)
  return %8, %12
}
"""


def test_a_frame_state_continues_another() -> None:
    states = [node for node in parse(GRAPH.strip()).nodes if node.op is frame_state]
    values = [[0.0, 30.0], [1.0, 2.0, 3.0], [4.0], [5.0]]
    read: list[int] = []

    def contents(last: int) -> dict[int, object]:
        numbers = [states.index(state) for state in chain_of(states[last])]

        def reader(number: int) -> Callable[[int], float]:
            def read_value(k: int) -> float:
                read.append(number)
                return values[number][k]

            return read_value

        told = contents_of((states[n], reader(n)) for n in numbers)
        return {k: np.asarray(x).tolist() for k, x in told.items()}

    assert contents(0) == {0: 0.0, 7: 30.0}
    assert contents(1) == {7: 30.0, 1: [1.0, 2.0], 0: 3.0}
    assert contents(2) == {5: 4.0}
    read.clear()
    assert contents(3) == {1: [1.0, 2.0], 0: 3.0, 7: 5.0}
    assert 0 not in read  # what is replaced may be gone
    assert [*contents(3)] == [1, 0, 7]  # later changes stand later
    assert values_of(states[0])[7] is states[0].operands[2]


def test_contents_are_needed_up_to_the_last_node_that_may_fail() -> None:
    graph = parse(GRAPH.strip())
    results = {x: k for k, node in enumerate(graph.nodes) for x in node.results}
    needs = {
        position: {results.get(x, "param") for x in values}
        for position, values in last_needs(graph).items()
    }
    # What %7 holds is needed after %12, which continues it, but not the part that %12 replaces.
    assert needs == {2: {"param"}, 5: {0}, 7: {5}, 10: {2, 3, 7}}


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_replaced_is_not_kept(backend: str) -> None:
    """States that continue others do not keep what these have told of the same arguments."""

    def fun(a, n):
        for value in range(6):
            a[:] = np.sqrt(a) + value
            a[n] = 1.0
        return a.sum()

    def unrolled(a, n):
        for value in (1.0, 2.0, 3.0, 4.0):
            a[n] = value
            a *= 2.0

    for program in fun, unrolled:
        compiled = wend.function(program, backend=backend)
        for n in 1, 3, -3, 7:
            arguments = np.arange(3.0), n
            assert str(outcome(compiled, arguments)) == str(outcome(program, arguments))
