"""Lists that staged loops append to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp


def doubled(x):
    out = []
    while x < 10:
        x = x * 2
        out.append(x)
    return wnp.stack(out)


def test_while() -> None:
    captured = wend.function(doubled)
    np.testing.assert_array_equal(captured(1.5), [3.0, 6.0, 12.0])
    np.testing.assert_array_equal(captured(11.0), np.zeros(0))
    assert captured.trace_count == 1


def test_gradient() -> None:
    def squares(x):
        return wnp.sum(doubled(x) ** 2)

    gradient = wend.grad(squares)
    assert gradient(1.5) == 2 * 1.5 * (4 + 16 + 64)
    assert gradient(11.0) == 0
    assert wend.grad(gradient)(1.5) == 2 * (4 + 16 + 64)


def test_for_with_a_branch_and_items_before() -> None:
    def f(x):
        out = [x]
        for i in range(5):
            if x > 2:
                out.append(x * i)
            x = x + 1
        return np.array(out).sum() + len(out) + out[0] * out[-1]

    captured = wend.function(f)
    for x in (1.5, -9.0, 4.0):
        assert captured(x) == f(x)
    assert wend.grad(f)(1.5) == pytest.approx((f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6, rel=1e-6)


def test_nested_loops() -> None:
    def f(x):
        out = []
        i = 0
        while i < 3:
            j = 0
            while j < i:
                out.append(x * j)
                j += 1
            i += 1
            x = x * 1.5
        return np.stack(out), len(out), out[1]

    for mine, theirs in zip(wend.function(f)(2.0), f(2.0), strict=True):
        np.testing.assert_allclose(mine, theirs)


def test_arrays_trees_and_aliases() -> None:
    class Log:
        pass

    def f(x):
        log = Log()
        log.steps = []
        pairs = []

        def note(v):
            pairs.append({"v": v, "w": (v * 2, 1.0)})

        while x.sum() < 20:
            x = x * 2
            log.steps.append(x)
            note(x)
        return log.steps[-1] + pairs[0]["w"][0], sum(log.steps)

    x = np.array([1.0, 2.0])
    for mine, theirs in zip(wend.function(f)(x), f(x), strict=True):
        np.testing.assert_allclose(mine, theirs)


def test_pop() -> None:
    def f(x):
        stack = [x, x * 2]
        total = 0.0
        while x < 10:
            x = x * 2
            stack.append(x)
            total = total + stack.pop() * 3
            stack.append(total)
        return total + stack.pop() + len(stack)

    assert wend.function(f)(1.5) == f(1.5)


def test_refusals() -> None:
    def iterates(x):
        out = []
        while x < 10:
            x = x * 2
            out.append(x)
        for k, v in enumerate(out):
            out[k] = x + v
        return sum(out)

    def mixes(x):
        out = [np.int64(1)]
        while x < 10:
            x = x * 2
            out.append(x)
        return sum(out)

    with pytest.raises(TypeError, match=r"for x in wnp.stack"):
        wend.function(iterates).get_concrete_function(1.5)
    assert wend.function(iterates)(1.5) == iterates(1.5)
    with pytest.raises(TypeError, match=r"i64\[\] is appended to a list of f64\[\]"):
        wend.function(mixes)(1.5)


def forwards(x: Any, n: Any) -> Any:
    rows = []
    for k in range(n):
        rows.append(x * (k + 1.0))
    for row in rows:
        x = np.sin(x) + row
    return x


def backwards(x: Any, n: Any) -> Any:
    """As programs run through what they have recorded."""
    rows, gains = [], []
    for k in range(n):
        x = np.sin(x) + 0.1 * k
        rows.append(x)
        gains.append((x[0], k))
    for row, (gain, k) in zip(rows[::-1], gains[::-1], strict=False):
        x = 0.5 * x * gain + row * k
    for k, row in enumerate(rows[1:-1:2]):
        x = x + k * row
    return x


def while_it_grows(x: Any, n: Any) -> Any:
    rows = []
    for k in range(n):
        rows.append(x * (k + 1.0))
        total = 0.0 * x
        for row in rows[-3:]:
            total = total + row
        x = x + 0.01 * total
    return x


def popped_from_the_front(x: Any, n: Any) -> Any:
    rows = []
    for k in range(n):
        rows.append(x * (k + 1.0))
    rows.reverse()
    while len(rows) > 1:
        x = np.sin(x) + rows.pop()
    return x + sum(rows[:1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("program", [forwards, backwards, while_it_grows, popped_from_the_front])
def test_loops_go_through_lists_of_arrays(program: Any, backend: str) -> None:
    x, towards = np.array([0.4, 0.7]), np.array([0.3, -1.1])
    fun = wend.function(program, backend=backend)
    slope = wend.function(wend.grad(lambda x, n: (program(x, n) * towards).sum()), backend=backend)
    for n in (1, 2, 5, 90):
        count = np.int64(n)
        np.testing.assert_allclose(fun(x, count), program(x, n), rtol=1e-12)
        for axis, part in enumerate(slope(x, count)):
            moved = program(x + 1e-30j * np.eye(2)[axis], n).imag * 1e30
            np.testing.assert_allclose(part, moved @ towards, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_positions_are_those_of_python(backend: str) -> None:
    def read(x: Any, n: int, k: int) -> Any:
        out = []
        for i in range(n):
            out.append(2 * x[i])
        return out[k]

    def write(x: Any, n: int, k: int) -> Any:
        out = []
        for i in range(n):
            out.append(2 * x[i])
        out[k] = x[0] * x[1]
        return np.stack(out)

    x = np.arange(1.0, 5.0)
    for fun in (read, write):
        compiled, slope = wend.function(fun, backend=backend), wend.grad(_summed(fun))
        for k in range(-6, 6):
            if -3 <= k < 3:
                np.testing.assert_array_equal(compiled(x, 3, k), fun(x, 3, k))
                expected = wend.grad(_summed(fun))(x, 3, k % 3)
                np.testing.assert_array_equal(slope(x, 3, k), expected)
                continue
            for call in (fun, compiled, slope):
                with pytest.raises(IndexError):
                    call(x, 3, k)


def _summed(fun: Any) -> Any:
    return lambda x, n, k: np.sum(fun(x, n, k))


@pytest.mark.parametrize("name", ["==", "!=", "<", "<=", ">", ">="])
def test_lists_that_loops_fill_are_not_compared(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def compared(a, b): return a {name} b", scope)

    @wend.function
    def fun(x):
        out = []
        while x > 1.0:
            out.append(x)
            x = x / 2.0
        return scope["compared"](out, [1.0])

    with pytest.raises(wend.WendError, match=r"cannot be compared\.\n.*wnp\.stack"):
        fun(5.0)


def test_only_numbers_with_an_order_are_sorted() -> None:
    @wend.function
    def ordered(xs):
        out = []
        for x in xs:
            if x != 0:
                out.append(x)
        out.sort()
        return out

    @wend.function
    def rows(xs):
        out = []
        for x in xs:
            if x != 0:
                out.append(xs * x)
        out.sort()
        return out

    @wend.function
    def searched(xs):
        out = []
        for x in xs:
            if x != 0:
                out.append(x)
        return out.count(xs)

    assert ordered(np.array([3.0, 0.0, -1.0])) == [-1.0, 3.0]
    with pytest.raises(ValueError, match="of NaN has no order"):
        ordered(np.array([3.0, np.nan, -1.0]))
    with pytest.raises(TypeError, match="sort a list of numbers"):
        rows(np.array([3.0, 0.0, -1.0]))
    with pytest.raises(TypeError, match="compare the items one by one"):
        searched(np.array([3.0, 0.0, -1.0]))
