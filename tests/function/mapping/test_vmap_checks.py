"""Elements that raise run side by side: the error is that of a Python loop over the elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.helpers.raising_elements import (
    PROGRAMS,
    columns,
    in_a_branch,
    in_a_loop,
    in_an_inner_map,
    in_nested_loops,
    loop,
    of_a_table,
    of_arrays,
)

import wend
import wend.numpy as wnp


def check(mapped: Callable[..., Any], fun: Callable[..., Any], args: Sequence[Any]) -> None:
    expected, error = loop(fun, args)
    if error is None:
        np.testing.assert_allclose(mapped(*args), np.array(expected), rtol=1e-12)
        return
    with pytest.raises(error[0]) as caught:
        mapped(*args)
    assert str(caught.value) == error[1].partition("\n")[0]
    assert caught.value.__notes__[-1] == f"in element {error[2]} of vmap"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fun", PROGRAMS)
def test_elements_that_raise_run_in_lanes(fun: Any) -> None:
    plain = getattr(fun, "python_function", fun)
    mapped = wend.vmap(fun)
    for count, fails in itertools.product([0, 1, 7, 8, 9, 1000], [False, True]):
        check(mapped, plain, columns(count, fails=fails, seed=count))
    assert " lanes" in mapped.explain()


@pytest.mark.parametrize("fun", [in_an_inner_map, of_a_table, of_arrays])
def test_elements_that_raise_run_together(fun: Any) -> None:
    mapped = wend.vmap(fun)
    for count, fails in itertools.product([0, 1, 9, 300], [False, True]):
        x, n = columns(count, fails=fails, seed=count)
        expected, error = loop(wend.function(fun), (x, n))
        if error is None:
            np.testing.assert_allclose(mapped(x, n), np.array(expected), rtol=1e-12)
            continue
        with pytest.raises(error[0]) as caught:
            mapped(x, n)
        assert str(caught.value) == error[1].partition("\n")[0]
    assert "100 times" not in mapped.explain()
    assert "300 times" not in mapped.explain()


def test_a_position_out_of_range_is_an_error_like_others() -> None:
    mapped = wend.vmap(of_a_table)
    x, n = columns(300, fails=False)
    n[20], n[30], x[25] = 11, 12, -1.9
    with pytest.raises(IndexError, match="index 11 is out of bounds") as caught:
        mapped(x, n)
    assert caught.value.__notes__[-1] == "in element 20 of vmap"
    x[3] = -1.8
    with pytest.raises(ValueError, match="low") as caught:
        mapped(x, n)
    assert caught.value.__notes__[-1] == "in element 3 of vmap"


@pytest.mark.parametrize("fun", [in_a_loop, in_nested_loops, in_a_branch])
def test_derivatives_of_elements_that_raise(fun: Any) -> None:
    slope = wend.grad(fun)
    mapped = wend.vmap(slope)
    total = wend.grad(lambda c, x, n: wnp.sum(wend.vmap(lambda x, n: fun(c * x, n))(x, n)))
    for count in (1, 9, 200):
        x, n = columns(count, fails=False, seed=count)
        slopes, _ = loop(slope, (x, n))
        np.testing.assert_allclose(mapped(x, n), np.array(slopes), rtol=1e-12)
        np.testing.assert_allclose(total(1.0, x, n), x @ np.array(slopes), rtol=1e-12)
    assert " lanes" in mapped.explain()
    x, n = columns(200, fails=True)
    _, (error, text, k) = loop(fun, (x, n))
    for call in (lambda: mapped(x, n), lambda: total(1.0, x, n)):
        with pytest.raises(error) as caught:
            call()
        assert str(caught.value) == text.partition("\n")[0]
        assert caught.value.__notes__[-1] == f"in element {k} of vmap"


@pytest.mark.parametrize("fun", [in_a_loop, in_nested_loops])
def test_lanes_and_threads_change_no_bit_and_no_error(fun: Any) -> None:
    x, n = columns(4000, fails=False)
    x[5], x[1203] = np.nan, np.inf
    bad = np.where(np.isin(np.arange(4000), [731, 2222, 3999]), -2.0, x)
    bits, errors = set(), set()
    for threads, lanes in itertools.product([1, 2, 5], [1, 4, 8]):
        mapped = wend.vmap(wend.value_and_grad(fun), lanes=lanes, threads=threads)
        with wend.config(threads=threads):
            bits.add(b"".join(np.asarray(part).tobytes() for part in mapped(x, n)))
            with pytest.raises((RuntimeError, AssertionError)) as caught:
                mapped(bad, np.maximum(n, 3))
            errors.add((str(caught.value), *caught.value.__notes__[-1:]))
    assert len(bits) == 1
    assert [note for _, note in errors] == ["in element 731 of vmap"]


def test_nan_of_an_element_that_raises_stays_there() -> None:
    x, n = columns(300, fails=False)
    mapped, good = wend.vmap(in_a_loop), wend.vmap(in_a_loop)(x, n)
    x[17] = np.nan
    found = mapped(x, n)
    assert np.isnan(found[17]) == (n[17] > 0 or np.isnan(x[17]))
    np.testing.assert_array_equal(np.delete(found, 17), np.delete(good, 17))


def test_elements_in_chunks_tell_their_number() -> None:
    x, n = columns(100, fails=False)
    x[77], n[77] = -1.9, 5
    with pytest.raises(RuntimeError) as caught:
        wend.vmap(in_a_loop, chunk_size=30)(x, n)
    assert caught.value.__notes__[-1] == "in element 77 of vmap"


def printing(x: Any, n: Any) -> Any:
    print(end="")
    return in_a_loop(x, n)


def in_nested_maps(fun: Any, depth: int) -> Any:
    for _ in range(depth):
        fun = wend.vmap(fun)
    return fun


MAPS = {
    "two": lambda: in_nested_maps(in_a_loop, 2),
    "three": lambda: in_nested_maps(in_a_loop, 3),
    "in order": lambda: in_nested_maps(printing, 2),
    "in chunks": lambda: wend.vmap(wend.vmap(in_a_loop, chunk_size=2), chunk_size=2),
    "gradients": lambda: in_nested_maps(wend.grad(in_a_loop), 2),
    "a map in the element": lambda: wend.vmap(lambda x, n: wnp.sum(wend.vmap(in_a_loop)(x, n))),
    "a map in a function": lambda: wend.vmap(
        wend.function(lambda x, n: wend.vmap(in_a_loop)(x, n))
    ),
    "in the gradient of a sum": lambda: wend.grad(
        lambda x, n: wnp.sum(in_nested_maps(in_a_loop, 2)(x, n))
    ),
    "a map around an array": lambda: lambda x, n: wend.vmap(in_a_loop)(x[3], n[3]),
}


@pytest.fixture(params=["native", "numpy", "dataflow"])  # and JAX with its backend
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", MAPS)
def test_elements_of_nested_maps_tell_all_numbers(what: str, backend: str) -> None:
    """The outer one first; the error is that of the first element in this order."""
    shape = (5, 2, 2) if what == "three" else (5, 4)
    x, n = np.full(shape, 1.5), np.full(shape, 4)
    x.reshape(-1)[[13, 14, 18]] = -2.0
    at = {"three": (3, 0, 1), "a map around an array": 1}.get(what, (3, 1))
    call = wend.function(MAPS[what](), backend=backend)
    with pytest.raises(RuntimeError, match="below zero after 1") as caught:
        call(x, n)
    assert caught.value.__notes__[-1] == f"in element {at} of vmap"


def test_a_check_of_a_result_that_nobody_reads() -> None:
    @wend.function
    def fun(x: Any, n: Any) -> Any:
        wend.vmap(in_a_loop)(x, n)
        return x[0]

    with pytest.raises(RuntimeError, match="below zero"):
        fun(np.array([1.0, -2.0]), np.array([3, 3]))


class NotFound(Exception):
    def __init__(self, where: Any, trips: int) -> None:
        super().__init__(f"not found from {where}")
        self.trips = trips


def test_an_exception_of_the_user_has_its_attributes() -> None:
    def fun(x: Any, n: Any) -> Any:
        y, k = x, 0
        while k < n:
            y, k = y * 0.5, k + 1
        if y < 0:
            raise NotFound(x, 3)
        return y

    with pytest.raises(NotFound, match=r"not found from -2\.0") as caught:
        wend.vmap(fun)(np.where(np.arange(40) == 17, -2.0, 1.0), np.arange(40))
    assert caught.value.trips == 3
    assert caught.value.__notes__[-1] == "in element 17 of vmap"


def test_an_element_that_fails_by_rounding_in_lanes_only() -> None:
    """Its error has the class of the check, and says what has happened."""
    xs, ones = np.random.default_rng(0).uniform(0.01, 0.99, 300), np.ones(300, int)

    def value(x: Any, n: Any) -> Any:
        y, k = x, 0
        while k < n:
            y, k = np.tan(np.exp(y)), k + 1
        return y

    alone = wend.function(value)
    limits = np.array([alone(x, 1) for x in xs])
    above = np.flatnonzero(wend.vmap(value)(xs, ones) > limits)
    assert len(above) > 0

    def fun(x: Any, n: Any, limit: Any) -> Any:
        y = value(x, n)
        if y > limit:
            raise ValueError(f"{y} is above {limit}")
        return y

    with pytest.raises(ValueError, match="rounded in another way") as caught:
        wend.vmap(fun)(xs, ones, limits)
    assert caught.value.__notes__[-1] == f"in element {above[0]} of vmap"
