"""Operations without native code: their kernels run, and what they raise arrives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.threads import in_threads

import wend
import wend.numpy as wnp


def native(fun: Callable[..., Any]) -> Any:
    return wend.function(fun, backend="native")


def test_printing_in_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    @native
    def fun(x: Any) -> Any:
        i = 0
        while i < 3:
            wend.print(i, x)
            x, i = x * 2.0, i + 1
        return x

    np.testing.assert_array_equal(fun(np.ones(2)), [8.0, 8.0])
    assert capsys.readouterr().out == "0 [1. 1.]\n1 [2. 2.]\n2 [4. 4.]\n"


def metadata(error: BaseException) -> str:
    return "\n".join(error.__notes__)


def test_a_failing_assertion_names_the_line() -> None:
    @native
    def fun(x: Any) -> Any:
        while wnp.sum(x) < 100.0:
            x = x * 2.0
            wend.assert_(wnp.sum(x) < 20.0, "too much: {}", wnp.sum(x))
        return x

    with pytest.raises(AssertionError, match=r"too much: 24\.0") as caught:
        fun(np.ones(3))
    assert "in assert at test_host.py:" in metadata(caught.value)
    with pytest.raises(AssertionError, match=r"too much: 20\.0"):
        fun(np.full(2, 5.0))


def test_a_kernel_that_fails() -> None:
    @native
    def fun(a: Any, n: Any) -> Any:
        return wend.fori_loop(0, n, lambda i, a: wnp.linalg.inv(a) - 0.5 * wnp.eye(2), a)

    with pytest.raises(np.linalg.LinAlgError) as caught:
        fun(np.eye(2) * 2.0, 9)
    assert " at test_host.py:" in metadata(caught.value)
    np.testing.assert_array_equal(fun(np.eye(2) * 2.0, 0), np.eye(2) * 2.0)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_positions_out_of_range(backend: str) -> None:
    @wend.function(backend=backend)
    def fun(x: Any, n: Any) -> Any:
        return wend.fori_loop(0, n, lambda i, total: total + x[i], 0.0)

    assert fun(np.arange(4.0), 4) == 6.0
    message = "index 4 is out of bounds for axis 0 with size 4"
    with pytest.raises(IndexError, match=message) as caught:
        fun(np.arange(4.0), 9)
    assert "in gather at test_host.py:" in metadata(caught.value)


def test_what_runs_in_python_can_be_listed() -> None:
    run = native(lambda x: wnp.special.polygamma(1, x) * 2.0).get_concrete_function(np.eye(2))
    found = run.compiled.executable("native").host_nodes  # type: ignore[attr-defined]
    assert [node.op.name for node in found] == ["polygamma"]


def test_explain_tells_what_runs_in_python() -> None:
    fun = native(lambda x: wnp.special.polygamma(1, x) * 2.0)
    fun(np.eye(2))
    assert "runs in Python: polygamma at test_host.py:" in fun.explain()


def test_two_threads() -> None:
    @native
    def fun(x: Any) -> Any:
        return wend.fori_loop(0, 5, lambda i, x: wnp.sort(x * 1.5)[::-1], x)

    points = [np.arange(4.0) + k for k in range(20)]
    expected = [fun(x) for x in points]
    for runs in in_threads(4, lambda _: [[fun(x) for x in points] for _ in range(5)]):
        for run in runs:
            np.testing.assert_array_equal(run, expected)
