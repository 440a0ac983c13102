"""The user's rule is what is used: wherever the call stands, at every order.

The rules here are wrong on purpose (the derivative of a rounding is 1, a gradient is clipped), so
that a plain derivative would be seen at once; or right, and checked by finite differences.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.autodiff.test_fuzz import ARGS, check_gradient, check_second_order, examples
from tests.helpers.graphs import gradient, loops, names, pushes, traced
from tests.helpers.random_programs import programs, staged
from wend.passes.pipeline import OPTIMIZE, run_passes


def make_tripled(kind):
    """A sine whose derivative is 3·cos, by rule."""
    if kind == "vjp":
        fun = wend.custom_vjp(lambda x: wnp.sin(x))
        fun.defvjp(lambda x: (wnp.sin(x), x), lambda x, ct: (3.0 * ct * wnp.cos(x),))
    elif kind == "vjp that calls itself":
        fun = wend.custom_vjp(lambda x: wnp.sin(x))
        fun.defvjp(lambda x: (fun(x), x), lambda x, ct: (3.0 * ct * wnp.cos(x),))
    elif kind == "jvp":
        fun = wend.custom_jvp(lambda x: wnp.sin(x))
        fun.defjvp(lambda p, t: (wnp.sin(p[0]), 3.0 * t[0] * wnp.cos(p[0])))
    else:
        fun = wend.custom_jvp(lambda x: wnp.sin(x))
        fun.defjvps(lambda t, out, x: 3.0 * t * wnp.cos(x))
    return fun


KINDS = ["vjp", "vjp that calls itself", "jvp", "jvps"]


@pytest.fixture(params=KINDS)
def tripled(request):
    return make_tripled(request.param)


def slope(fun, *args):
    return float(wend.grad(fun)(*args))


def test_at_once(tripled):
    assert tripled(0.4) == np.sin(0.4)
    assert isinstance(tripled(np.float64(0.4)), np.floating)


def test_every_way_to_ask(tripled):
    expected = 3 * np.cos(0.4)
    assert wend.function(tripled)(0.4) == pytest.approx(np.sin(0.4), rel=1e-15)
    assert slope(tripled, 0.4) == pytest.approx(expected)
    value, found = wend.value_and_grad(tripled)(0.4)
    assert (value, found) == pytest.approx((np.sin(0.4), expected))
    value, pullback = wend.vjp(tripled, 0.4)
    assert value == pytest.approx(np.sin(0.4), rel=1e-15)
    assert pullback(2.0)[0] == pytest.approx(2 * expected)
    assert slope(wend.function(tripled), 0.4) == pytest.approx(expected)
    assert slope(lambda x: wend.function(lambda y: tripled(y) * 2.0)(x), 0.4) == pytest.approx(
        2 * expected
    )


def test_higher_orders(tripled):
    """The rule's own derivative: of 3·cos by plain rules."""
    second = wend.grad(wend.grad(tripled))
    third = wend.grad(second)
    assert second(0.4) == pytest.approx(-3 * np.sin(0.4))
    assert third(0.4) == pytest.approx(-3 * np.cos(0.4))


def test_the_value_keeps_its_rule_beside_a_gradient(tripled):
    """d/dx of the value of value_and_grad is the rule's, though fwd has run in its place."""
    both = wend.value_and_grad(tripled)
    assert slope(lambda x: both(x)[0], 0.4) == pytest.approx(3 * np.cos(0.4))
    assert slope(lambda x: both(x)[0] * both(x)[1], 0.4) == pytest.approx(
        9 * np.cos(0.4) ** 2 - 3 * np.sin(0.4) ** 2
    )
    deep = wend.grad(lambda x: wend.value_and_grad(lambda y: both(y)[0])(x)[0])
    assert deep(0.4) == pytest.approx(3 * np.cos(0.4))


def test_functional_loops(tripled):
    def plain(x, n):
        total = 1.0
        for _ in range(n):
            total *= 3 * np.cos(x)
            x = np.sin(x)
        return total

    for n in (0, 1, 4):
        by_fori = lambda x, n=n: wend.fori_loop(0, n, lambda i, v: tripled(v), x)  # noqa: E731
        assert slope(by_fori, 0.4) == pytest.approx(plain(0.4, n))
    by_scan = lambda x: wend.scan(lambda c, _: (tripled(c), None), x, length=3)[0]  # noqa: E731
    assert slope(by_scan, 0.4) == pytest.approx(plain(0.4, 3))
    by_while = lambda x: wend.while_loop(lambda v: v > 0.38, tripled, x)  # noqa: E731
    assert slope(by_while, 0.4) == pytest.approx(plain(0.4, 2))
    assert slope(by_while, 0.3) == 1.0


def test_captured_loops(tripled):
    def fun(x):
        n = 0
        while n < 3:
            x = tripled(x)
            n += 1
        return x

    step = 1e-6
    plain = wend.grad(fun)
    assert slope(fun, 0.4) == pytest.approx(27 * np.prod([np.cos(v) for v in _orbit(0.4, 3)]))
    measured = (plain(0.4 + step) - plain(0.4 - step)) / (2 * step)
    assert wend.grad(plain)(0.4) == pytest.approx(_second_of_three(0.4), rel=1e-9)
    assert measured != pytest.approx(0.0)


def _orbit(x, n):
    found = []
    for _ in range(n):
        found.append(x)
        x = np.sin(x)
    return found


def _second_of_three(x):
    """Of v ↦ sin(v) with the rule 3·cos, three times: both factors by the rule."""

    def first(v):
        # the gradient's own graph: 27 cos(a) cos(b) cos(c), with b, c by the rule
        a, da = v, 1.0
        b, db = np.sin(a), 3 * np.cos(a) * da
        c, dc = np.sin(b), 3 * np.cos(b) * db
        return 27 * (
            -np.sin(a) * da * np.cos(b) * np.cos(c)
            - np.cos(a) * np.sin(b) * db * np.cos(c)
            - np.cos(a) * np.cos(b) * np.sin(c) * dc
        )

    return first(x)


def test_branches(tripled):
    fun = lambda x: wend.cond(x > 0.0, lambda v: tripled(v), lambda v: v * 5.0, x)  # noqa: E731
    assert slope(fun, 0.4) == pytest.approx(3 * np.cos(0.4))
    assert slope(fun, -0.4) == 5.0
    assert wend.grad(wend.grad(fun))(0.4) == pytest.approx(-3 * np.sin(0.4))

    def captured(x):
        if x > 0:
            y = tripled(x)
        else:
            y = x * 5.0
        return y

    assert slope(captured, 0.4) == pytest.approx(3 * np.cos(0.4))

    def in_loop(x):
        for i in range(4):
            if i % 2 == 0:
                x = tripled(x)
        return x

    assert slope(in_loop, 0.4) == pytest.approx(9 * np.cos(0.4) * np.cos(np.sin(0.4)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("inner", KINDS)
def test_one_under_the_other(tripled, inner):
    """A rule whose function calls another with a rule; the outer rule is what counts."""
    below = make_tripled(inner)

    @wend.custom_vjp
    def outer(x):
        return below(x) * 2.0

    outer.defvjp(lambda x: (tripled(x) * 2.0, x), lambda x, ct: (ct * below(x),))
    assert slope(outer, 0.4) == pytest.approx(np.sin(0.4))
    assert wend.grad(wend.grad(outer))(0.4) == pytest.approx(3 * np.cos(0.4))
    assert wend.grad(wend.grad(wend.grad(outer)))(0.4) == pytest.approx(-3 * np.sin(0.4))


def test_bwd_may_hold_loops_and_rules(tripled):
    @wend.custom_vjp
    def fun(x):
        return x * 1.0

    def bwd(x, ct):
        n = 0
        while n < 3:
            ct = ct * tripled(x)
            n += 1
        return (ct,)

    fun.defvjp(lambda x: (x, x), bwd)
    assert slope(fun, 0.4) == pytest.approx(np.sin(0.4) ** 3)
    assert wend.grad(wend.grad(fun))(0.4) == pytest.approx(9 * np.sin(0.4) ** 2 * np.cos(0.4))


# Rules that are wrong on purpose
@wend.custom_vjp
def straight_through(x):
    return wnp.floor(x)


straight_through.defvjp(lambda x: (wnp.floor(x), None), lambda _, ct: (ct,))


@wend.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, ct: (wnp.clip(ct, -1.0, 1.0),))


@wend.custom_vjp
def reversed_gradient(x):
    return x


reversed_gradient.defvjp(lambda x: (x, ()), lambda _, ct: (-ct,))


def test_straight_through():
    xs = np.array([0.3, 1.7, -2.2])
    np.testing.assert_array_equal(
        wend.grad(lambda x: wnp.sum(straight_through(x) ** 2))(xs), 2 * np.floor(xs)
    )
    second = wend.grad(lambda x: wnp.sum(wend.grad(lambda y: wnp.sum(straight_through(y) ** 2))(x)))
    np.testing.assert_array_equal(second(xs), [2.0, 2.0, 2.0])


def test_clipping_is_used_between_trips():
    """Inside a loop each trip clips what comes back to it."""

    def fun(x):
        return wend.fori_loop(0, 5, lambda i, v: clipped(v) * 3.0, x)

    assert slope(fun, 1.0) == 1.0
    assert slope(lambda x: wend.fori_loop(0, 5, lambda i, v: v * 3.0, x), 1.0) == 243.0


def test_reversal():
    assert slope(lambda x: reversed_gradient(x) ** 2 + x, 3.0) == -5.0
    twice = lambda x: reversed_gradient(reversed_gradient(x)) ** 2  # noqa: E731
    assert slope(twice, 3.0) == 6.0


# Right rules
@wend.custom_vjp
def norm(v):
    return wnp.sqrt(wnp.sum(v * v))


def _norm_fwd(v):
    size = wnp.sqrt(wnp.sum(v * v))
    return size, (v, size)


norm.defvjp(_norm_fwd, lambda r, ct: (ct * r[0] / r[1],))


@wend.custom_jvp
def soft(x, k):
    return wnp.log(1.0 + wnp.exp(k * x)) / k


@soft.defjvp
def _soft_jvp(primals, tangents):
    x, k = primals
    t, s = tangents
    sigma = 1.0 / (1.0 + wnp.exp(-k * x))
    out = soft(x, k)
    return out, sigma * t + (sigma * x - out) / k * s


@given(st.lists(st.floats(0.1, 3.0), min_size=1, max_size=4))
def test_right_rules_agree_with_plain_ones(numbers):
    v = np.array(numbers)
    plain = lambda v: wnp.sqrt(wnp.sum(v * v))  # noqa: E731
    for order in (lambda f: wend.grad(f), lambda f: wend.grad(lambda v: wnp.sum(wend.grad(f)(v)))):
        np.testing.assert_allclose(order(norm)(v), order(plain)(v), rtol=1e-12, atol=1e-13)


@given(st.floats(-3.0, 3.0), st.floats(0.5, 2.0))
def test_a_right_jvp_agrees_with_plain_derivatives(x, k):
    plain = lambda x, k: wnp.log(1.0 + wnp.exp(k * x)) / k  # noqa: E731
    one = lambda f: wend.grad(f, (0, 1))  # noqa: E731
    two = lambda f: wend.grad(lambda x, k: sum(one(f)(x, k)), (0, 1))  # noqa: E731
    three = lambda f: wend.grad(lambda x, k: sum(two(f)(x, k)), (0, 1))  # noqa: E731
    for order in (one, two, three):
        np.testing.assert_allclose(order(soft)(x, k), order(plain)(x, k), rtol=1e-9, atol=1e-9)


# What runs, and what is kept
def test_only_the_function_runs_where_nothing_is_differentiated():
    @wend.custom_vjp
    def fun(x, w):
        return wnp.sin(x) * w

    fun.defvjp(lambda x, w: (wnp.tan(x), wnp.exp(w)), lambda r, ct: (ct * r, ct * wnp.cosh(r)))
    value = traced(lambda x, w: fun(x, w), 1.0, 2.0, optimize=True)
    assert names(value) == ["sin", "mul"]
    graph = gradient(lambda x, w: fun(x, 2.0) + x, 1.0, 2.0, argnums=1)
    assert {"tan", "exp", "cosh"}.isdisjoint(names(graph))
    backwards = gradient(lambda x, w: fun(x, w), 1.0, 2.0)
    assert "tan" in names(backwards)
    assert "cosh" not in names(backwards)  # the gradient by w is not asked for


def test_a_call_that_nothing_depends_on_is_not_differentiated():
    fun = make_tripled("vjp")
    graph = gradient(lambda x: x * 2.0 + wend.stop_gradient(fun(x)), 1.0)
    assert names(graph).count("cos") == 0


def test_a_loop_records_the_residuals_of_fwd_alone():
    """Three products in the body, one residual: one list, of what `fwd` says."""

    @wend.custom_vjp
    def fun(x):
        return wnp.sin(wnp.cos(wnp.exp(x)))

    fun.defvjp(
        lambda x: (fun(x), wnp.cosh(x)),
        lambda r, ct: (ct * r,),
    )
    graph = gradient(lambda x: wend.fori_loop(0, 3, lambda i, v: fun(v), x), 0.1)
    assert len(pushes(graph)) == 1
    assert len(loops(graph)) == 2
    _, backward = loops(graph)
    inner = [node.op.name for node in backward.regions[1].walk()]
    assert {"exp", "cos", "sin", "cosh"}.isdisjoint(inner)


def test_residuals_that_are_there_are_not_kept_twice():
    """An argument, a result or a constant as a residual is what it is."""

    @wend.custom_vjp
    def fun(x):
        return wnp.exp(x)

    def fwd(x):
        y = wnp.exp(x)
        return y, (x, y, wnp.asarray(2.0) + x * 0.0, 3.0)

    fun.defvjp(fwd, lambda r, ct: (ct * r[1] * r[3],))
    graph = gradient(lambda x: wend.fori_loop(0, 3, lambda i, v: fun(v), x), 0.1)
    assert len(pushes(graph)) == 1
    assert slope(fun, 0.1) == pytest.approx(3 * np.exp(0.1))


def test_no_rule_is_left_in_what_runs():
    for kind in KINDS:
        fun = make_tripled(kind)
        for ask in (fun, wend.grad(fun), wend.grad(wend.grad(fun))):
            graph = run_passes(traced(ask, 0.3), OPTIMIZE)
            assert [name for name in names(graph) if name.startswith("custom")] == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_native(kind):
    fun = make_tripled(kind)

    def loop(x):
        return wend.fori_loop(0, 4, lambda i, v: fun(v) + 0.1, x)

    asked = loop, wend.grad(loop), wend.grad(wend.grad(loop))
    expected = [wend.function(ask)(0.3) for ask in asked]
    found = [wend.function(ask, backend="native")(0.3) for ask in asked]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# Activity, results that are not used, integers
def test_several_results():
    @wend.custom_vjp
    def pair(x, y):
        return {"sum": x + y, "n": wnp.asarray(3), "product": x * y}

    def bwd(r, ct):
        assert ct["n"] is None
        return ct["sum"] * 10.0 + ct["product"] * r[1], ct["product"] * 7.0

    pair.defvjp(lambda x, y: (pair(x, y), (x, y)), bwd)
    assert wend.grad(lambda x, y: pair(x, y)["sum"], (0, 1))(2.0, 5.0) == (10.0, 0.0)
    assert wend.grad(lambda x, y: pair(x, y)["product"], (0, 1))(2.0, 5.0) == (5.0, 7.0)
    both = lambda x, y: pair(x, y)["sum"] + pair(x, y)["product"]  # noqa: E731
    assert wend.grad(both, (0, 1))(2.0, 5.0) == (15.0, 7.0)


def test_an_argument_that_the_function_does_not_read_may_have_a_cotangent():
    @wend.custom_vjp
    def fun(x, y):
        return x * 2.0

    fun.defvjp(lambda x, y: (x * 2.0, x), lambda x, ct: (ct, ct * x))
    assert wend.grad(lambda x, y: fun(x, y), (0, 1))(3.0, 5.0) == (1.0, 3.0)
    assert wend.grad(lambda x, y: wend.grad(fun, 1)(x, y))(3.0, 5.0) == 1.0


def test_nothing_moves_where_bwd_says_none():
    @wend.custom_vjp
    def fun(x, y):
        return x * y

    fun.defvjp(lambda x, y: (x * y, None), lambda _, ct: (None, ct))
    assert wend.grad(lambda x, y: fun(x, y), (0, 1))(3.0, 5.0) == (0.0, 1.0)
    graph = gradient(lambda x: fun(wnp.sin(x), 2.0), 1.0)
    assert "cos" not in names(graph)


def test_unknown_sizes():
    spec = wend.TensorSpec
    fun = wend.function(lambda v: norm(v) + norm(v[1:]), input_signature=[spec([None])])
    v = np.array([3.0, 4.0, 12.0])
    expected = v / 13.0 + np.array([0.0, *v[1:]]) / np.hypot(4.0, 12.0)
    np.testing.assert_allclose(wend.grad(fun)(v), expected)
    np.testing.assert_allclose(wend.grad(fun)(v[:2]), v[:2] / 5.0 + [0.0, 1.0])


def test_results_of_a_size_that_only_the_run_knows():
    @wend.custom_vjp
    def doubled(v):
        return v * 2.0

    doubled.defvjp(lambda v: (v * 2.0, v), lambda v, ct: (ct * v,))

    def fun(v):
        return wend.scan(lambda c, x: (c + wnp.sum(doubled(v) * x), None), 0.0, v)[0]

    spec = wend.TensorSpec
    asked = wend.function(fun, input_signature=[spec([None])])
    v = np.array([1.0, 2.0, 3.0])
    expected = v * np.sum(v) + np.sum(2 * v)
    np.testing.assert_allclose(wend.grad(asked)(v), expected)


# Any program under a rule that is right: bwd is the program's own pullback
def with_pullback(fun):
    made = wend.custom_vjp(lambda *xs: fun(*xs))
    made.defvjp(lambda *xs: (made(*xs), xs), lambda xs, ct: wend.vjp(fun, *xs)[1](ct))
    return made


@examples(2 * hypothesis_settings().max_examples)
@given(programs(depth=2))
def test_any_program(program):
    check_gradient(program, with_pullback(staged(program)))


@examples(hypothesis_settings().max_examples)
@given(programs(depth=2))
def test_any_program_at_second_order(program):
    check_second_order(program, with_pullback(staged(program)))


@examples(hypothesis_settings().max_examples)
@given(programs(depth=2, length=2))
def test_any_program_in_a_loop(program):
    """Twice in a loop, with and without a rule that is right."""

    def looped(fun):
        def whole(x, y, v):
            def body(i, c):
                return wnp.tanh(fun(c, y, v)) + 0.1 * c

            return wend.fori_loop(0, 2, body, x)

        return whole

    fun = staged(program)
    plain, ruled = (wend.grad(looped(f), (0, 1, 2)) for f in (fun, with_pullback(fun)))
    for a, b in zip(ruled(*ARGS), plain(*ARGS), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
