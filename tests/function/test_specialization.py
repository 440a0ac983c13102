"""Python ints that decide on structure join the key of a trace (D37)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import ConcreteValueError
from wend.function.signature import signature


def repeated(x: Any, n: Any, k: Any) -> Any:
    return np.stack([x * j for j in range(n)]) * k


def test_only_the_int_that_is_needed_joins_the_key() -> None:
    f = wend.function(repeated)
    for k in (1, 2, 3):
        np.testing.assert_array_equal(f(1.5, 3, k), repeated(1.5, 3, k))
    assert f.trace_count == 1
    np.testing.assert_array_equal(f(1.5, 4, 1), repeated(1.5, 4, 1))
    assert f.trace_count == 2
    assert "specialized on n: Python needs the value" in f.explain()


def test_a_failed_trace_is_undone() -> None:
    class Log:
        lines: tuple[Any, ...] = ()

    @wend.function
    def f(x: Any, n: Any) -> Any:
        log = Log()
        log.lines = (*log.lines, x)
        print("traced")
        return [x] * n, len(log.lines)

    assert f(1.0, 2) == ([1.0, 1.0], 1)


@pytest.mark.parametrize("kind", [np.int64, np.array, float])
def test_no_other_number_joins_it(kind: Any) -> None:
    with pytest.raises((ConcreteValueError, TypeError)):
        wend.function(repeated)(1.5, kind(3), 1)


def test_long_lists_of_ints_are_data() -> None:
    @wend.function
    def f(items: Any) -> Any:
        return dict.fromkeys(items, 1)

    assert f([1, 2, 3]) == {1: 1, 2: 1, 3: 1}
    with pytest.raises(ConcreteValueError, match="hash"):
        f(list(range(100)))


def test_a_refusal_that_no_int_cures_is_raised_as_it_was() -> None:
    @wend.function
    def f(x: Any, n: Any) -> Any:
        return [1.0] * x + n

    with pytest.raises(TypeError, match="repeat count"):
        f(2.0, 3)
    assert f.trace_count == 0


@pytest.mark.parametrize("order", [1, 2])
def test_in_derivatives(order: int) -> None:
    def loss(x: Any, n: Any) -> Any:
        return repeated(x, n, 1.0).sum() ** 3

    derived: Any = loss
    for _ in range(order):
        derived = wend.grad(derived)
    expected = {1: 3 * 6.0**3 * 1.5**2, 2: 6 * 6.0**3 * 1.5}[order]
    np.testing.assert_allclose(derived(1.5, 4), expected)
    np.testing.assert_allclose(wend.grad(wend.function(loss))(1.5, 4), 3 * 6.0**3 * 1.5**2)
    _, pull_back = wend.vjp(loss, 1.5, 4)
    np.testing.assert_allclose(pull_back(1.0)[0], 3 * 6.0**3 * 1.5**2)


def test_within_other_functions() -> None:
    inner = wend.function(repeated)

    @wend.function
    def outer(x: Any, n: Any) -> Any:
        return inner(x, n, 2), inner(x, 2, n)

    for n in (2, 3):
        for value, expected in zip(
            outer(1.5, n), (repeated(1.5, n, 2), repeated(1.5, 2, n)), strict=True
        ):
            np.testing.assert_array_equal(value, expected)


def test_an_int_beyond_64_bits_is_part_of_the_key() -> None:
    f = wend.function(lambda x, n: x * (n % 7))
    assert f(2.0, 2**80) == 2.0 * (2**80 % 7)
    assert f(2.0, 3) == 6.0


@pytest.mark.parametrize("wrap", [wend.function, wend.grad])
def test_repeated_calls_do_not_name_their_leaves(wrap: Any, monkeypatch: Any) -> None:
    """Paths of leaves cost as much as binding them: they are for refusals and reports."""
    f = wrap(lambda tree, n: sum(v * v for v in tree.values()) * n)
    tree = {str(k): float(k) for k in range(10)}
    f(tree, 2)
    named = []
    paths = signature.argument_paths
    monkeypatch.setattr(signature, "argument_paths", lambda *a: named.append(a) or paths(*a))
    for k in range(5):
        f(tree, 3 + k)
    assert not named
