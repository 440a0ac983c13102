"""Integers that decide on structure join the key of a trace (D37)."""

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


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint64, np.intc])
def test_integers_of_numpy_join_it(kind: Any, backend: str) -> None:
    f = wend.function(repeated, backend=backend)
    for n in (3, 2, 3):
        np.testing.assert_array_equal(f(1.5, kind(n), 1), repeated(1.5, n, 1))
    assert f.trace_count == 2
    assert "specialized on n: Python needs the value" in f.explain()
    slope = wend.grad(lambda x, n: repeated(x, n, 1).sum())
    assert slope(1.5, kind(3)) == 3.0


FORMS = [
    lambda x, n: [x] * n,
    lambda x, n: np.pad(x, n),
    lambda x, n: x.reshape(n, -1).sum(axis=n - 3),
    lambda x, n: np.split(x, n),
    lambda x, n: np.array_split(x, n + 1),
    lambda x, n: np.linalg.matrix_power(np.outer(x, x), n),
    lambda x, n: np.moveaxis(x[None], n - 2, 1),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("kind", [int, np.int32, np.array])
@pytest.mark.parametrize("fun", FORMS)
def test_numbers_that_structure_depends_on(fun: Any, kind: Any, backend: str) -> None:
    x = np.arange(6.0)
    if fun is FORMS[0] and kind is np.array:
        return  # a product of arrays
    for n in (2, 3):
        actual, expected = wend.function(fun, backend=backend)(x, kind(n)), fun(x, kind(n))
        assert type(actual) is type(expected)
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


def test_a_float_does_not_join_it() -> None:
    with pytest.raises(TypeError):
        wend.function(repeated)(1.5, 3.0, 1)


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

    with pytest.raises(TypeError, match="non-int"):
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
