"""An error leaves changed arguments as the statements before it left them in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import wend
from wend.ir import parse
from wend.ops.frame_states import contents_of, current_states

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


def test_a_frame_state_holds_up_to_the_next() -> None:
    graph = parse(
        """
graph fun(%0: f64[2], %1: i64[], %2: token) {
  %3: f64[] = gather(%0, %1)
  %4: token = frame_state(%2, %0) {written=(0,)}
  %5: f64[] = gather(%0, %1)
  %6: f64[] = add(%5, %5)
  %7: token = frame_state(%4, %5, %6, %5) {shapes=((2,), None), written=(1, 4)}
  %8: f64[] = gather(%0, %1)
  return %8, %7
}
""".strip()
    )
    first, second = (node for node in graph.nodes if node.op.name == "frame_state")
    assert current_states(graph) == {2: first, 5: second}
    contents = contents_of(second, [None, 1.0, 2.0, 3.0])
    assert contents[1].tolist() == [1.0, 2.0]
    assert contents[4] == 3.0
