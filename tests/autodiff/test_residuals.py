"""What is kept for a backward pass, and that choosing it takes no longer than it should."""

from __future__ import annotations

import math
import re
import time

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import gradient, loops, pushes, traced
from wend.autodiff import residuals, split_residuals


def chain(n, free):
    """A body of n products in a row, of the carry or of an invariant."""

    def fun(x, a):
        def body(i, v):
            c = a if free else v
            for _ in range(n):
                c = c * c * 0.5 + 0.4
            return v * c * 0.9

        return wend.fori_loop(0, 2, body, x)

    return fun


@pytest.mark.parametrize("free", [True, False])
def test_long_chains(free):
    """Neither a stack of Python frames for each link, nor twice the work for each (x·x)."""
    start = time.process_time()
    slopes = wend.grad(chain(300, free), (0, 1))(0.3, 0.5)
    assert time.process_time() - start < 10
    h = 1e-30j
    plain = [_plain(300, free, 0.3 + h, 0.5), _plain(300, free, 0.3, 0.5 + h)]
    np.testing.assert_allclose(slopes, np.imag(plain) / 1e-30, rtol=1e-9, atol=1e-12)


def _plain(n, free, x, a):
    for _ in range(2):
        c = a if free else x
        for _ in range(n):
            c = c * c * 0.5 + 0.4
        x = x * c * 0.9
    return x


def records(fun, *args):
    """How many records each list of a run holds."""
    residuals = wend.vjp(fun, *args)[1].residuals
    return sorted(len(r.items()) for r in residuals if hasattr(r, "items"))


def test_one_record_a_trip():
    """A carry that only the body reads is not recorded at the exit."""
    assert records(lambda x: wend.fori_loop(0, 5, lambda i, v: wnp.sin(v), x), 0.3) == [5]
    assert records(lambda x: wend.fori_loop(0, 0, lambda i, v: wnp.sin(v), x), 0.3) == [0]


def test_the_exit_is_recorded_where_it_is_read():
    """tanh(v·c): the derivative reads tanh's result, which is the next carry."""

    def fun(x, c):
        return wnp.sum(wend.fori_loop(0, 5, lambda i, v: wnp.tanh(v * c), x))

    assert len(pushes(gradient(fun, 0.3, 0.7, argnums=(0, 1)))) == 1


def test_counting_down_is_counting():
    """A counter that goes down is not recorded either."""

    def fun(x):
        def body(s):
            return s[0] - 2, wnp.sin(s[1]) * s[0]

        return wend.while_loop(lambda s: s[0] > 0, body, (9, x))[1]

    graph = gradient(fun, 0.3)
    assert [str(push.operands[1].type) for push in pushes(graph)] == ["f64[]"]
    k, x = 9, 0.3 + 1e-30j
    while k > 0:
        k, x = k - 2, np.sin(x) * k
    np.testing.assert_allclose(wend.grad(fun)(0.3), np.imag(x) / 1e-30, rtol=1e-12)


def test_a_list_that_is_there_is_not_recorded_again():
    """T61: what a body reads from a list by position, its gradient reads there too."""
    xs = np.linspace(0.1, 0.9, 5)

    def fun(c, xs):
        return wend.scan(lambda c, x: (wnp.sin(c) * x, None), c, xs)[0]

    graph = gradient(fun, 0.3, xs, argnums=(0, 1))
    assert len(pushes(graph)) == 1  # the carry; not the rows
    assert len(loops(graph)) == 2


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (lambda c, w, key: np.tanh(w @ np.tanh(w @ c)), "dot_general"),
        (lambda c, w, key: np.tanh(c * wend.random.normal(key, (4,))), "random_bits"),
        (lambda c, w, key: np.sin(wend.fori_loop(0, 3, lambda i, v: np.sin(v), c)), "while"),
    ],
)
def test_what_takes_long_is_never_computed_again(step, name):
    """Products, random numbers and inner loops run once in the loop, and are not run again."""
    key = wend.random.key(0)

    def value(c, w):
        for k in range(5):
            c = step(c, w, wend.random.fold_in(key, k))
        return np.sum(np.sin(c))

    c, w = np.linspace(0.1, 0.9, 4), np.eye(4) * 0.5 + 0.1
    forward, gradients = (
        [node.op.name for node in traced(fun, c, w, optimize=True).walk()].count(name)
        for fun in (value, wend.value_and_grad(value))
    )
    backward = {"dot_general": 2, "random_bits": 0, "while": 2}[name]
    assert forward > 0
    assert gradients == forward + backward


@pytest.mark.parametrize("is_called", [False, True])
def test_a_value_without_its_pullback_keeps_no_tape(is_called):
    """The accumulators of a forward function are dead where only its value is read."""

    def layers(c, xs):
        for x in xs:
            c = np.tanh(c * 0.9 + x)
        return c

    inner = wend.function(layers) if is_called else layers
    graph = traced(lambda c, xs: wend.vjp(inner, c, xs)[0] * 2.0, 0.3, np.ones(5), optimize=True)
    assert len(loops(graph)) == 1
    assert not pushes(graph)


def sizes_kept(fun, *args):
    return [np.shape(residual) for residual in wend.vjp(fun, *args)[1].residuals]


def test_straight_line_code_keeps_a_minimum_cut():
    """T24.5: sin(x)·x·2 reads x, its sine and a factor; the argument is enough."""
    x = np.linspace(0.1, 0.9, 50)
    assert sizes_kept(lambda x: np.sin(x) * x * 2, x) == [(50,)]
    assert sizes_kept(lambda x: np.exp(x), x) == [(50,)]

    def of_a_small_one(x, y):
        return np.sum(np.outer(x, y) * np.sin(np.outer(x, y)))

    kept = sizes_kept(of_a_small_one, x, np.ones(40))
    assert [math.prod(shape) for shape in kept] == [50, 40]  # a column of x, which is a view


@pytest.mark.parametrize("function", [wnp.special.gammaln, wnp.special.erf])
def test_what_takes_longer_than_its_bytes_is_kept(function):
    x = np.linspace(1.1, 1.9, 50)

    def looped(x):
        for _ in range(3):
            x = x * function(x) + 1.5
        return wnp.sum(x)

    assert len(pushes(gradient(looped, x))) == 2
    assert sizes_kept(lambda x: x * function(x), x) == [(50,), (50,)]
    cheap = gradient(lambda x: wend.fori_loop(0, 3, lambda i, x: x * np.exp(x) + 0.5, x)[0], x)
    assert len(pushes(cheap)) == 1


def test_rows_that_are_recorded_and_returned_are_stored_once():
    """The arrays of the list that the program keeps are those of the tape."""

    def rows(x):
        out = []
        for _ in range(100):
            x = np.sin(x)
            out.append(x)
        return np.sum(np.array(out) ** 2)

    slope = wend.function(wend.grad(rows), backend="native")
    slope(np.ones(1000))
    (concrete,) = slope.concrete_functions()
    (peak,) = re.findall(r"needed up to ([\d,]+) bytes", concrete.explain())
    # once for the tape and the list, for the array of the list, and for its cotangent
    assert int(peak.replace(",", "")) < 3.5 * 100 * 8000


def test_branches_share_records_of_equal_types():
    """Each of three branches reads a product; a trip keeps one, the carry, and which branch."""

    def bent(a, x):
        for _ in range(5):
            if x[0] > 0.5:
                x = np.cos(a @ x)
            elif x[1] > 0.2:
                x = np.sin(a @ x) + x
            else:
                x = np.exp(a @ (x * x)) * 0.1
        return np.sum(x)

    found = pushes(gradient(bent, np.eye(4), np.ones(4), argnums=(0, 1)))
    types = sorted(str(push.operands[1].type) for push in found)
    assert types == ["bool[]", "f64[4]", "f64[4]"]


STEPS = [
    lambda x, y: np.sin(x) * y,
    lambda x, y: np.tanh(x + y),
    lambda x, y: np.exp(-x) / (1.0 + y * y),
    lambda x, y: np.where(x > y, x * y, np.cos(x)),
    lambda x, y: x @ y.T @ x,
    lambda x, y: x / np.sum(np.abs(y) + 1.0, axis=0),
    lambda x, y: np.maximum(x, 0.3 * y),
    lambda x, y: x[::-1] * np.sqrt(np.abs(y) + 0.5),
    lambda x, y: wnp.special.gammaln(np.abs(x) + 1.5) + y,
    lambda x, y: wend.fori_loop(0, 3, lambda i, v: np.sin(v) * x + v * 0.5, y),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("seed", range(8))
def test_pullbacks_are_gradients(seed, backend):
    """The pair that runs apart, against one graph: to order 2, and for either result."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(STEPS))[:5]

    def fun(x, y):
        for k in chosen:
            x, y = y, STEPS[k](x, y)
        return x, y

    def total(x, y):
        return sum(np.sum(part * part) for part in fun(x, y))

    x, y = rng.normal(size=(2, 6, 6)) * 0.5
    with wend.config(backend=backend):
        values, pullback = wend.vjp(fun, x, y)
        slopes = wend.grad(total, (0, 1))
        for found, expected in zip(
            pullback(tuple(2 * v for v in values)), slopes(x, y), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
        first, second = np.zeros_like(values[0]), np.ones_like(values[1])
        expected = wend.grad(lambda x, y: np.sum(fun(x, y)[1]))(x, y)
        np.testing.assert_allclose(pullback((first, second))[0], expected, rtol=1e-11, atol=1e-12)
        if backend == "numpy":
            moved = wend.vjp(slopes, x, y)[1]((x, y))
            expected = wend.grad(
                lambda a, b: sum(map(np.sum, map(np.multiply, slopes(a, b), (x, y))))
            )(x, y)
            np.testing.assert_allclose(moved[0], expected, rtol=1e-9, atol=1e-10)


def test_recomputed_values_are_those_of_the_call():
    """Writes to the argument after the call do not reach what is computed again."""
    x = np.linspace(0.1, 0.9, 5)
    _, pullback = wend.vjp(lambda x: np.sin(x) * x, x)
    expected = np.cos(x) * x + np.sin(x)
    x[:] = 7.0
    np.testing.assert_allclose(pullback(np.ones(5))[0], expected, rtol=1e-14)


def straight(x, count):
    for _ in range(count):
        x = x * np.sin(x) + 0.1
    return x


def pullback_of(count):
    x = np.linspace(0.1, 0.9, 5)
    return wend.vjp(wend.do_not_capture(lambda x: straight(x, count)), x)[1]


def test_very_long_straight_code_is_not_cut(monkeypatch):
    monkeypatch.setattr(split_residuals, "_MAX_NODES", 300)
    assert len(pullback_of(100).residuals) > 100


def test_rounds_of_the_cut_do_not_grow_with_the_code(monkeypatch):
    rounds = []
    levels = residuals._MinimumCut._levels
    monkeypatch.setattr(
        residuals._MinimumCut, "_levels", lambda self: rounds.append(1) or levels(self)
    )
    counts = []
    for count in (50, 200, 400):
        rounds.clear()
        pullback_of(count)
        counts.append(len(rounds))
    assert max(counts) <= 8, counts
