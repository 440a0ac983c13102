"""Whole programs in forward mode, and every order of forward and reverse."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import check_graph, traced
from tests.helpers.programs import PROGRAMS, Program, decisions, unrolled

BACKENDS = ["numpy", "native", "boxed"]
EXACT = 1e-9
STEP = 1e-6


@pytest.fixture(params=PROGRAMS, ids=str)
def program(request: pytest.FixtureRequest) -> Program:
    return request.param


def every(program: Program) -> tuple[int, ...]:
    return tuple(range(len(program.args)))


def directions(program: Program, seed: int = 0) -> tuple:
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(np.shape(arg))[()] for arg in program.args)


def along(grads, tangents) -> float:
    return sum(float(np.sum(g * t)) for g, t in zip(grads, tangents, strict=True))


def complex_step(program: Program, tangents) -> float:
    """The derivative along a direction by plain Python, exact to rounding."""
    moved = [np.asarray(x) + 1e-30j * t for x, t in zip(program.args, tangents, strict=True)]
    return float(np.imag(unrolled(program)(*(x[()] for x in moved))) / 1e-30)


@pytest.mark.sampled
@pytest.mark.parametrize("backend", BACKENDS)
def test_tangent(program, backend):
    tangents = directions(program)
    with wend.config(backend=backend):
        value, tangent = wend.jvp(program.fun, program.args, tangents)
    expected, _path = decisions(program)
    np.testing.assert_allclose(value, expected, rtol=EXACT, atol=EXACT)
    np.testing.assert_allclose(tangent, complex_step(program, tangents), rtol=EXACT, atol=EXACT)


@pytest.mark.sampled
def test_tangent_by_finite_differences(program):
    tangents = directions(program, 3)
    _, tangent = wend.jvp(program.fun, program.args, tangents)
    fun = unrolled(program)  # the path stays the same where a difference would cross a branch
    ends = [
        fun(*(x + step * t for x, t in zip(program.args, tangents, strict=True)))
        for step in (STEP, -STEP)
    ]
    measured = (ends[0] - ends[1]) / (2 * STEP)
    np.testing.assert_allclose(tangent, measured, rtol=2e-4, atol=2e-4)


@pytest.mark.sampled(30)
def test_in_a_trace(program):
    tangents = directions(program)
    expected = wend.jvp(program.fun, program.args, tangents)
    fun = wend.function(lambda args, ts: wend.jvp(program.fun, args, ts))
    np.testing.assert_allclose(fun(program.args, tangents), expected, rtol=EXACT, atol=EXACT)
    check_graph(traced(fun, program.args, tangents))


@pytest.mark.sampled
def test_linear_part(program):
    tangents = directions(program)
    expected = wend.jvp(program.fun, program.args, tangents)
    value, f_lin = wend.linearize(program.fun, *program.args)
    np.testing.assert_allclose((value, f_lin(*tangents)), expected, rtol=EXACT, atol=EXACT)
    others = directions(program, 1)
    both = f_lin(*(2 * a - b for a, b in zip(tangents, others, strict=True)))
    np.testing.assert_allclose(both, 2 * f_lin(*tangents) - f_lin(*others), rtol=EXACT, atol=EXACT)


@pytest.mark.sampled
def test_jacobians_are_the_gradient(program):
    expected = wend.grad(program.fun, every(program))(*program.args)
    for transform in (wend.jacfwd, wend.jacrev):
        found = transform(program.fun, every(program))(*program.args)
        for a, b in zip(found, expected, strict=True):
            assert np.shape(a) == np.shape(b)
            np.testing.assert_allclose(a, b, rtol=EXACT, atol=EXACT)


@pytest.mark.sampled(30)
def test_every_way_to_second_order(program):
    """Along one direction and one weight for each part of the gradient: four numbers that agree."""
    tangents = directions(program)
    numbers = every(program)

    def forward(*args):
        return wend.jvp(program.fun, args, tangents)[1]

    def reverse(fun):
        return lambda *args: sum(
            wnp.sum(g * t) for g, t in zip(wend.grad(fun, numbers)(*args), tangents, strict=True)
        )

    expected = along(wend.grad(reverse(unrolled(program)), numbers)(*program.args), tangents)
    found = [
        wend.jvp(forward, program.args, tangents)[1],
        wend.jvp(reverse(program.fun), program.args, tangents)[1],
        along(wend.grad(forward, numbers)(*program.args), tangents),
        along(wend.grad(reverse(program.fun), numbers)(*program.args), tangents),
        wend.linearize(reverse(program.fun), *program.args)[1](*tangents),
    ]
    np.testing.assert_allclose(found, [expected] * 5, rtol=1e-8, atol=1e-8)


# The numbers of the issue
def test_two_trips_of_three_carries():
    def fun(x):
        return wend.fori_loop(0, 2, lambda i, c: (c[0], c[0] * c[0], c[1] * c[1]), (x, 0.5, 0.25))

    found = wend.jvp(fun, (3.0,), (1.0,))
    assert found == ((3.0, 9.0, 81.0), (1.0, 6.0, 108.0))


def test_doubling_and_factorial():
    def double(x):
        return wend.fori_loop(0, 3, lambda i, x: x * 2, x)

    assert wend.jvp(double, (2.0,), (1.0,)) == (16.0, 8.0)

    def factorial(x):
        return wend.fori_loop(0, 3, lambda i, x: x * (i + 1), x)

    assert wend.jvp(factorial, (2.0,), (1.0,)) == (12.0, 6.0)


def test_squares_until_eight():
    def fun(v):
        while v < 8.0:
            v = v * v
        return v

    assert wend.jvp(fun, (2.0,), (1.0,)) == (16.0, 32.0)
    modes = (slope, wend.grad, wend.jacfwd, wend.jacrev)
    for outer in modes:
        for inner in modes:
            assert outer(inner(fun))(2.0) == 48.0, (outer, inner)
    for third in (slope, wend.grad, wend.jacrev):
        for second in (slope, wend.grad, wend.hessian):
            if second is wend.hessian:
                assert third(second(fun))(2.0) == 48.0
            else:
                assert third(second(wend.grad(fun)))(2.0) == 48.0
    assert wend.hessian(fun)(2.0) == 48.0


def slope(fun):
    """The derivative by forward mode."""
    return lambda x: wend.jvp(fun, (x,), (1.0,))[1]


def derivatives(fun, at, modes):
    """fun(at) and its derivatives, each order by the next mode."""
    found = [fun(at)]
    for mode in modes:
        fun = wend.grad(fun) if mode == "r" else slope(fun)
        found.append(fun(at))
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("modes", ["ffff", "rrrr", "frfr", "rfrf", "ffrr", "rrff"])
def test_four_squarings(modes):
    def power(x):
        return wend.fori_loop(0, 4, lambda i, x: x * x, x)

    expected = [0.4401266687, 7.4126596826, 117.0419949877, 1724.8293998191, 23602.9286291040]
    np.testing.assert_allclose(derivatives(power, 0.95, modes), expected, rtol=1e-9)


@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr"])
def test_polynomial_by_scan(modes):
    coefficients = np.array([1.0, 2.0, -3.0, 4.0])

    def polynomial(x):
        def step(c, a):
            return ((c[0] + a * c[1], c[1] * x), None)

        return wend.scan(step, (0.0, 1.0), coefficients)[0][0]

    assert derivatives(polynomial, 2.0, modes) == [25.0, 38.0, 42.0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("modes", ["fff", "frf", "rfr", "rrf", "ffr", "rff"])
def test_cos_of_cos(modes):
    def fun(x):
        return wend.fori_loop(0, 2, lambda i, x: wnp.cos(x), x)

    expected = [0.8575532, 0.4328487, -0.3292817, -1.9089936]
    np.testing.assert_allclose(derivatives(fun, 1.0, modes), expected, rtol=1e-6)


@pytest.mark.parametrize("modes", ["ff", "fr", "rf"])
def test_no_trip(modes):
    def fun(x):
        return wend.while_loop(lambda v: v < 0.0, lambda v: v * v, x) * x

    assert derivatives(fun, 3.0, modes) == [9.0, 6.0, 2.0]

    def counted(x):
        return wend.fori_loop(0, 0, lambda i, c: (c[0] * x, c[0]), (1.0, x))[1]

    assert derivatives(counted, 3.0, modes) == [3.0, 1.0, 0.0]
