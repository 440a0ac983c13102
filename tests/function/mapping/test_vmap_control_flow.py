"""Loops, branches and scans under `vmap`: what JAX promises of them, and what it refuses.

Each behaviour is one that JAX tests (`lax_control_flow_test.py`, `batching_test.py`,
`api_test.py`). Plain calls, one element after the other, are the oracle.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp

RNG = np.random.default_rng(7)


def assert_as_elements(fun: Any, in_axes: Any, *args: Any, rtol: float = 1e-13) -> None:
    """Compare `vmap` with plain calls; results may be tuples, axes are those of arrays."""
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    pairs = list(zip(args, axes, strict=True))
    size = next(np.shape(x)[axis] for x, axis in pairs if axis is not None)
    rows = [
        fun(*(x if axis is None else np.take(x, k, axis) for x, axis in pairs)) for k in range(size)
    ]
    expected = wend.tree.map(lambda *xs: np.stack(xs), *rows)
    for mapped in (wend.vmap(fun, in_axes), wend.vmap(wend.function(fun), in_axes)):
        found = mapped(*args)
        wend.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol), found, expected)


# Loops
def test_the_start_the_test_or_the_body_differs_from_element_to_element() -> None:
    def by_start(x: Any) -> Any:
        return wend.while_loop(lambda c: c < 3, lambda c: c + 2, x)

    def by_test(x: Any, y: Any) -> Any:
        return wend.while_loop(lambda c: c < y, lambda c: c + 2, x)

    def by_body(x: Any, y: Any) -> Any:
        return wend.while_loop(lambda c: c < 3, lambda c: c + y, x)

    np.testing.assert_array_equal(wend.vmap(by_start)(np.arange(4)), [4, 3, 4, 3])
    assert_as_elements(by_test, (None, 0), 0, np.array([2, 3, 0, -1]))
    assert_as_elements(by_body, (None, 0), 0, np.array([2, 3, 1, 7]))


def test_a_part_of_the_carry_stays() -> None:
    def fun(x: Any, y: Any) -> Any:
        return wend.while_loop(lambda c: c[0] + c[1] < 5, lambda c: (c[0] + 1, c[1]), (x, y))

    first, second = wend.vmap(fun)(np.array([0, 0]), np.array([1, 2]))
    np.testing.assert_array_equal(first, [4, 3])
    np.testing.assert_array_equal(second, [1, 2])


def test_a_loop_that_no_element_enters() -> None:
    def fun(x: Any) -> Any:
        return wend.while_loop(lambda _: np.logical_not(False) == False, lambda _: 0.0, x)  # noqa: E712

    np.testing.assert_array_equal(wend.vmap(fun)(np.arange(5.0)), np.arange(5.0))


def test_nested_loops_with_bounds_of_each_element() -> None:
    def fun(a: Any, b: Any) -> Any:
        def outer(c: Any) -> Any:
            total, i = c

            def inner(d: Any) -> Any:
                return d[0] + i + d[1], d[1] + 1

            total, _ = wend.while_loop(lambda d: d[1] < b + 1, inner, (total, 0))
            return total, i + 1

        return wend.while_loop(lambda c: c[1] < a + 1, outer, (0, 0))[0]

    assert_as_elements(fun, 0, np.arange(5), np.arange(5)[::-1].copy())


def test_a_loop_of_a_known_number_of_trips() -> None:
    def fun(x: Any) -> Any:
        return wend.fori_loop(0, 10, lambda i, c: (c[0] + 1, c[1] + 2), (x, 0))

    first, second = wend.vmap(fun)(np.array([0, 1]))
    np.testing.assert_array_equal(first, [10, 11])
    np.testing.assert_array_equal(second, [20, 20])


def test_a_test_that_the_elements_share_is_computed_once() -> None:
    def fun(x: Any) -> Any:
        return wend.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] + 1), (0, x))

    mapped = wend.vmap(fun, out_axes=(None, 0))
    trips, results = mapped(np.arange(3))
    assert np.shape(trips) == ()
    assert trips == 4
    np.testing.assert_array_equal(results, np.arange(4, 7))
    assert "one by one" not in mapped.explain()


def test_bounds_that_only_the_run_knows_in_nested_maps() -> None:
    def fun(x: Any, n: Any) -> Any:
        return wend.fori_loop(0, n, lambda _, c: c + 1, x)

    xs, ns = np.arange(3), np.arange(4)
    found = wend.vmap(wend.vmap(fun, (None, 0)), (0, None))(xs, ns)
    np.testing.assert_array_equal(found, xs[:, None] + ns)


def test_an_array_in_the_carry_and_a_test_of_each_element() -> None:
    def fun(i: Any, x: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, c[1] + x

        return wend.while_loop(lambda c: c[0] < 5, body, (i, np.ones(3)))[1]

    assert_as_elements(fun, (0, 1), np.arange(4), RNG.normal(size=(3, 4)))


def test_what_a_loop_only_reads_is_one_result_for_all() -> None:
    def fun(w: Any, x: Any, most: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, c[1] @ c[2], c[2]

        _, x, w = wend.while_loop(lambda c: c[0] < most, body, (0, x, w))
        return w, x

    w = RNG.normal(size=(2, 2))
    mapped = wend.vmap(fun, in_axes=(None, 0, 0), out_axes=(None, 0))
    same, _ = mapped(w, np.ones((4, 2)), np.arange(4))
    np.testing.assert_array_equal(same, w)


def test_gradients_through_loops_that_end_at_different_trips() -> None:
    """JAX has no reverse mode for `while_loop`."""

    def fun(x: Any, rate: Any) -> Any:
        return wend.while_loop(lambda c: c < 100.0, lambda c: c * rate, x)

    xs = np.array([1.5, 60.0, 3.0, 200.0])
    slopes = wend.vmap(wend.grad(fun, (0, 1)), (0, None))(xs, 2.0)
    trips = np.array([7, 1, 6, 0])
    np.testing.assert_allclose(slopes[0], 2.0**trips)
    np.testing.assert_allclose(slopes[1], xs * trips * 2.0 ** (trips - 1))
    total = wend.grad(lambda r: np.sum(wend.vmap(fun, (0, None))(xs, r)))(2.0)
    np.testing.assert_allclose(total, np.sum(slopes[1]))


# Branches
@pytest.mark.parametrize(
    ("x", "in_axes"), [(2, (None, 0, 0)), (4, (None, 0, 0)), (np.array([2, 4]), (0, 0, 0))]
)
def test_a_test_of_all_or_of_each_element(x: Any, in_axes: Any) -> None:
    def fun(x: Any, y: Any, z: Any) -> Any:
        return wend.cond(x < 3, lambda y, _: y, lambda _, z: -z, y, z)

    assert_as_elements(fun, in_axes, x, np.array([1, 2]), np.array([3, 4]))
    assert_as_elements(fun, (in_axes[0], 0, None), x, np.array([1, 2]), 5)


@pytest.mark.parametrize(
    ("index", "axis"), [(0, None), (1, None), (np.array([0, 1]), 0), (np.array([-3, 9]), 0)]
)
def test_one_of_several_branches(index: Any, axis: Any) -> None:
    """A position out of range is that of the nearest branch."""

    def fun(index: Any, x: Any, y: Any, z: Any) -> Any:
        branches = [lambda a: a[0], lambda a: -a[1], lambda a: np.sign(a[2])]
        return wend.switch(index, branches, (x, y, z))

    x, y, z = np.array([1, 2]), np.array([3, 4]), np.array([9, -9])
    assert_as_elements(fun, (axis, 0, 0, 0), index, x, y, z)
    assert_as_elements(fun, (axis, 0, None, None), index, x, 5, 9)


def test_a_branch_runs_for_the_elements_that_take_it(capfd: pytest.CaptureFixture) -> None:
    """In JAX both branches run where elements take different ones."""

    def fun(x: Any) -> Any:
        return wend.cond(x > 0, lambda x: wend.print("positive", x) or x, lambda x: -x, x)

    np.testing.assert_array_equal(wend.vmap(fun)(np.array([-1.0, 2.0, -3.0])), [1.0, 2.0, 3.0])
    assert capfd.readouterr().out == "positive 2.0\n"


def test_gradients_of_a_branch_have_no_nan_of_the_other() -> None:
    def by_operand(x: Any) -> Any:
        return wend.cond(x < 1e-3, lambda _: 1e-3, lambda _: np.sqrt(x), ())

    def by_division(x: Any) -> Any:
        return wend.cond(x == 0.0, lambda x: x, lambda x: np.sin(x) / x, x)

    for fun in (by_operand, by_division):
        slopes = wend.grad(lambda x, fun=fun: np.sum(wend.vmap(fun)(x)))(np.zeros(10))
        assert not np.isnan(slopes).any()


def test_gradients_of_branches_by_element() -> None:
    def fun(x: Any) -> Any:
        return wend.cond(x > 0, lambda x: x**2, lambda x: x**3, x)

    x = np.linspace(-1, 1, 20)
    found = wend.vmap(wend.grad(fun))(x)
    np.testing.assert_allclose(found, np.where(x > 0, 2 * x, 3 * x**2))


def test_jacobians_of_a_branch_in_a_branch() -> None:
    def same(x: Any) -> Any:
        return wend.cond(x < 0.0, lambda x: x, lambda x: x, x)

    np.testing.assert_array_equal(wend.vmap(wend.jacrev(lambda x: same(same(x))))(np.ones(1)), [1])


def test_what_both_branches_pass_on_is_one_result_for_all() -> None:
    def fun(x: Any, y: Any) -> Any:
        return wend.cond(x < 3, lambda x, y: (x * 2, y), lambda x, y: (x * 3, y), x, y)

    first, second = wend.vmap(fun, (0, None), (0, None))(np.arange(5), 3.0)
    np.testing.assert_array_equal(first, [0, 2, 4, 9, 12])
    assert np.shape(second) == ()
    assert second == 3.0


def test_a_scan_in_both_branches_that_passes_its_carry_on() -> None:
    def fun(x: Any, y: Any) -> Any:
        def branch(_: Any, y: Any) -> Any:
            return wend.scan(lambda c, _: (c, None), y, None, length=1)[0]

        return wend.cond(x < 0, branch, branch, x, y)

    assert wend.vmap(fun, (0, None), None)(np.arange(3.0), 3.0) == 3.0


def test_a_derivative_in_a_branch() -> None:
    def fun(x: Any) -> Any:
        _, pull_back = wend.vjp(lambda y: np.sin(y) @ y, x)
        return wend.cond(x[0, 0] > 0.0, lambda x: pull_back(x)[0], lambda x: x, x)

    assert_as_elements(fun, 0, RNG.normal(size=(5, 3, 3)))


def test_draws_and_branches_in_a_loop() -> None:
    def fun(key: Any, x: Any) -> Any:
        def body(_: Any, c: Any) -> Any:
            key, draw = wend.random.split(c[0])
            is_kept = wend.random.bernoulli(draw)
            return key, wend.cond(is_kept, lambda x, _: x, lambda _, y: y, c[1], wnp.abs(c[1]) - 1)

        return wend.fori_loop(0, 10, body, (key, x))

    assert_as_elements(fun, 0, wend.random.split(wend.random.key(0), 3), np.ones((3, 4)))


def test_draws_until_one_is_small() -> None:
    def fun(key: Any) -> Any:
        def body(c: Any) -> Any:
            key, draw = wend.random.split(c[1])
            return wend.random.uniform(draw), key

        return wend.while_loop(lambda c: c[0] > 0.5, body, (1.0, key))[0]

    assert_as_elements(fun, 0, wend.random.split(wend.random.key(0), 20))


# Scans
@pytest.mark.sampled(3)
@pytest.mark.parametrize("in_axes", [*itertools.product((None, 0, 1), (None, 0, 1, 2))][1:])
def test_axes_of_the_carry_and_the_rows_of_a_scan(in_axes: Any) -> None:
    d = RNG.normal(size=2)

    def step(c: Any, a: Any) -> Any:
        assert np.shape(a) == (3,)
        assert np.shape(c) == (4,)
        b = np.cos(np.sum(np.sin(a)) + np.sum(np.cos(c)) + np.sum(d))
        return np.sin(c * b), b

    carry, rows = [4], [5, 3]
    for shape, axis in zip((carry, rows), in_axes, strict=True):
        if axis is not None:
            shape.insert(axis, 7)
    args = RNG.normal(size=carry), RNG.normal(size=rows)
    assert_as_elements(lambda c, xs: wend.scan(step, c, xs), in_axes, *args, rtol=1e-9)


def test_scans_of_tuples() -> None:
    def step(c: Any, a: Any) -> Any:
        b = np.sum(np.cos(a[0])) * np.sum(c[1] * a[1])
        return (c[0] * np.sin(np.sum(a[0] * a[1])), c[1] * np.cos(np.sum(a[0]))), b

    xs = RNG.normal(size=(3, 7)), RNG.normal(size=(3, 4, 7))
    carry = RNG.normal(size=(7, 2)), RNG.normal(size=7)
    found = wend.vmap(lambda c, xs: wend.scan(step, c, xs), in_axes=(0, (1, 2)))(carry, xs)
    rows = [
        wend.scan(step, (carry[0][k], carry[1][k]), (xs[0][:, k], xs[1][:, :, k])) for k in range(7)
    ]
    expected = wend.tree.map(lambda *x: np.stack(x), *rows)
    wend.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-9), found, expected)


def test_an_element_moves_through_the_carry() -> None:
    """Which carries differ from element to element is known after some trips only."""

    def fun(x: Any) -> Any:
        return wend.scan(
            lambda c, _: ((c[1], c[2], c[3], 0.0), None), (0.0, 1.0, 2.0, x), np.zeros(2)
        )

    carry, _ = wend.vmap(fun)(np.array([3.0, 4.0, 5.0]))
    np.testing.assert_array_equal(
        np.stack(carry), [[2.0] * 3, [3.0, 4.0, 5.0], [0.0] * 3, [0.0] * 3]
    )


@pytest.mark.parametrize("eager", [False, True])
def test_no_trace(eager: bool) -> None:
    """Eager mode runs the elements of loops and branches as well."""
    with wend.config(eager=eager):
        loop = wend.vmap(lambda y: wend.while_loop(lambda x: x < 10.0, lambda x: x + 1.0, y))
        np.testing.assert_array_equal(loop(np.array([3.0, 4.5])), [10.0, 10.5])
        branch = wend.vmap(lambda t: wend.cond(t > 0, lambda x, _: 0, lambda _, x: 1, 0, 0))
        np.testing.assert_array_equal(branch(np.array([1, -1])), [0, 1])


# Arguments and results
def test_containers_of_axes() -> None:
    point = namedtuple("point", ["x", "y"])
    x, y, z = np.ones((6, 2, 3)), np.ones((3, 6, 4)), np.ones((4, 5, 6))

    def product(tree: Any) -> Any:
        x, second = tree
        y, z = second.values() if isinstance(second, dict) else second
        return x @ (y @ z)

    for second, axes in [
        ((y, z), (1, 2)),
        (point(y, z), point(1, 2)),
        ({"a": y, "b": z}, {"a": 1, "b": 2}),
        (OrderedDict(a=y, b=z), OrderedDict(a=1, b=2)),
    ]:
        assert wend.vmap(product, in_axes=((0, axes),))((x, second)).shape == (6, 2, 5)


def test_empty_containers_functions_and_results_that_are_not_mapped() -> None:
    np.testing.assert_array_equal(wend.vmap(lambda x, _: x + 1)(np.array([0, 1]), ()), [1, 2])
    assert wend.vmap(lambda x: (x + 1, ()))(np.array([0, 1]))[1] == ()
    apply = wend.vmap(lambda f, x: f(x), (None, 0))
    np.testing.assert_array_equal(apply(lambda x: x + 1, np.arange(3)), [1, 2, 3])
    assert wend.vmap(lambda x: np.zeros(2), out_axes=-1)(np.zeros(5)).shape == (2, 5)
    assert wend.vmap(lambda x: x, in_axes=None, axis_size=1)(1.0).shape == (1,)


@pytest.mark.parametrize(
    ("fun", "more", "args", "kwargs", "error", "words"),
    [
        (lambda x, y: x + y, {}, (np.ones(2), np.ones(3)), {}, ValueError, "2.*3"),
        (lambda x, *y: x, {}, (np.ones(4), np.ones(2), np.ones(2)), {}, ValueError, "4.*2"),
        (lambda x, y: x + y, {}, (np.ones(1),), {"y": np.ones(2)}, ValueError, "1.*2"),
        (lambda x: x, {"axis_size": 2}, (np.ones(8),), {}, ValueError, "8"),
        (lambda x: x, {}, (1.0,), {}, TypeError, "axis 0"),
        (lambda x: x, {"in_axes": 1}, (np.ones(2),), {}, TypeError, "axis 1"),
        (lambda x: x, {"in_axes": None}, (np.ones(2),), {}, ValueError, "axis_size"),
        (lambda x: x, {"in_axes": (0, 0)}, (np.ones(2),), {}, ValueError, "in_axes"),
        (lambda x: x, {"in_axes": ([0],)}, (np.ones(3),), {}, ValueError, "in_axes"),
        (lambda x: x, {"in_axes": {"a": 0}}, (np.ones(3),), {}, TypeError, "in_axes"),
        (lambda x: x, {"in_axes": False}, (np.ones(3),), {}, TypeError, "in_axes"),
        (lambda x: x, {"in_axes": (np.ones(2),)}, (np.ones(3),), {}, TypeError, "in_axes"),
        (lambda x: x, {"out_axes": (np.ones(2),)}, (np.ones(3),), {}, TypeError, "out_axes"),
        (lambda x: x, {"out_axes": (2, 3)}, (np.ones(2),), {}, ValueError, "out_axes"),
        (lambda x: x, {"out_axes": None}, (np.ones(2),), {}, ValueError, "out_axes"),
        (lambda x: x, {}, ({},), {}, ValueError, "axis_size"),
    ],
)
def test_errors(fun: Any, more: Any, args: Any, kwargs: Any, error: Any, words: str) -> None:
    """Their types are those of JAX, but for an axis that an argument does not have."""
    with pytest.raises(error, match=f"(?s){words}"):
        wend.vmap(fun, **more)(*args, **kwargs)


def test_second_derivatives_are_compiled_once() -> None:
    fun = wend.function(lambda x: np.mean(np.square(x)))
    second = wend.hessian(fun)
    for _ in range(3):
        second(RNG.normal(size=(4, 2)))
    assert second.trace_count == 1
