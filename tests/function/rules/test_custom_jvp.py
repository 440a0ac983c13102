"""`custom_jvp`: arguments, tangents, linearity."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tests.helpers.graphs import check_graph, gradient, loops, names, pushes, traced

import wend
import wend.numpy as wnp
from wend.base.errors import MissingRuleError, NotDifferentiableError


def test_a_decorator_keeps_the_name():
    @wend.custom_jvp
    def square(x):
        """x times x."""
        return x * x

    assert (square.__name__, square.__doc__) == ("square", "x times x.")
    assert repr(square) == "<wend.custom_jvp square>"
    with pytest.raises(MissingRuleError, match=r"defjvp\(jvp\)"):
        wend.grad(square)(1.0)
    with pytest.raises(MissingRuleError):
        square(1.0)
    square.defjvp(lambda p, t: (square(*p), 5.0 * t[0]))
    assert square(3.0) == 9.0
    assert wend.grad(square)(3.0) == 5.0


def test_nondiff_arguments():
    @functools.partial(wend.custom_jvp, nondiff_argnums=(0,))
    def apply(fun, x):
        return fun(x)

    @apply.defjvp
    def _jvp(fun, primals, tangents):
        assert fun is wnp.sin
        return apply(fun, *primals), 7.0 * tangents[0]

    assert wend.grad(lambda x: apply(wnp.sin, x))(0.5) == 7.0
    with pytest.raises(TypeError, match="nondiff_argnums"):
        apply.defjvps(lambda t, y, x: t)

    def by_what_it_closes_over(x, w):
        return apply(lambda y: y * w, x)

    apply.defjvp(lambda fun, p, t: (fun(*p), t[0]))
    assert wend.grad(by_what_it_closes_over)(2.0, 3.0) == 1.0
    with pytest.raises(NotDifferentiableError, match="closes over"):
        wend.grad(by_what_it_closes_over, 1)(2.0, 3.0)


def test_defjvps():
    @wend.custom_jvp
    def fun(x, y, n):
        return x * y

    fun.defjvps(lambda t, out, x, y, n: t * out, None, lambda t, out, x, y, n: 1 / 0)
    assert wend.grad(lambda x, y: fun(x, y, 3), (0, 1))(2.0, 5.0) == (10.0, 0.0)
    second = wend.grad(wend.grad(lambda x, y: fun(x, y, 3)))
    assert second(2.0, 5.0) == 10.0  # the rule again: d(out) = out
    fun.defjvps(None, None, None)
    assert wend.grad(lambda x, y: fun(x, y, 3), (0, 1))(2.0, 5.0) == (0.0, 0.0)
    fun.defjvps(None)
    with pytest.raises(TypeError, match="rules for 1 of 3 arguments"):
        wend.grad(lambda x, y: fun(x, y, 3))(2.0, 5.0)


def test_pytrees_and_integers():
    @wend.custom_jvp
    def fun(state, n):
        return {"y": state["x"] * n, "n": n + 1, "k": state["k"]}

    @fun.defjvp
    def _jvp(primals, tangents):
        state, n = primals
        moved, by_n = tangents
        assert by_n is None
        out = fun(state, n)
        return out, {"y": 10.0 * moved["x"], "n": None, "k": None}

    def loss(state, n):
        out = fun(state, n)
        return wnp.sum(out["y"]) + out["k"] * 3.0

    found = wend.grad(loss)({"x": np.ones(2), "k": 2.0}, 4)
    np.testing.assert_array_equal(found["x"], [10.0, 10.0])
    assert found["k"] == 0.0


def test_a_tangent_that_is_none():
    @wend.custom_jvp
    def fun(x):
        return wnp.sin(x)

    fun.defjvp(lambda p, t: (wnp.sin(p[0]), None))
    assert wend.grad(lambda x: fun(x) + x)(1.0) == 1.0
    assert wend.grad(fun)(1.0) == 0.0


def test_loops_in_the_rule():
    """The rule's loop carries value and tangent; transposed, only the tangent goes back."""

    @wend.custom_jvp
    def power(x, a):
        return wend.fori_loop(0, 3, lambda i, v: v * a + 1.0, x)

    @power.defjvp
    def _jvp(primals, tangents):
        x, a = primals
        t, s = tangents

        def body(i, c):
            v, dv = c
            return v * a + 1.0, dv * a + v * s

        return wend.fori_loop(0, 3, body, (x, t))

    plain = lambda x, a: wend.fori_loop(0, 3, lambda i, v: v * a + 1.0, x)  # noqa: E731
    args = (1.5, 0.7)
    np.testing.assert_allclose(
        wend.grad(lambda x, a: power(x, a), (0, 1))(*args), wend.grad(plain, (0, 1))(*args)
    )
    twice = lambda f: wend.grad(lambda x, a: sum(wend.grad(f, (0, 1))(x, a)), (0, 1))  # noqa: E731
    np.testing.assert_allclose(twice(lambda x, a: power(x, a))(*args), twice(plain)(*args))
    graph = gradient(lambda x, a: power(x, a), *args, argnums=(0, 1))
    assert [str(push.operands[1].type) for push in pushes(graph)] == ["f64[]"]
    assert len(loops(graph)) == 2


def test_a_rule_with_another_rule_inside():
    """Of tangents too: what only they need of it does not count as read."""
    twice = wend.custom_vjp(lambda x, t: (x * 2.0, t * 2.0))
    twice.defvjp(lambda x, t: (twice(x, t), None), lambda _, ct: (ct[0] * 2.0, ct[1] * 2.0))

    @wend.custom_jvp
    def fun(x):
        return x * 2.0 + wnp.exp(x)

    @fun.defjvp
    def _jvp(primals, tangents):
        y, moved = twice(primals[0], tangents[0])
        e = wnp.exp(primals[0])
        return y + e, moved + e * tangents[0]

    assert wend.grad(fun)(0.5) == pytest.approx(2 + np.exp(0.5))
    assert wend.grad(wend.grad(fun))(0.5) == pytest.approx(np.exp(0.5))


@pytest.mark.parametrize(
    "crooked",
    [
        wnp.sin,
        wnp.abs,
        lambda t: t * t,
        lambda t: wend.cond(t > 0.0, lambda: t, lambda: 2.0 * t),
        lambda t: wend.while_loop(lambda v: v < 3.0, lambda v: v * 2.0, t),
        lambda t: wnp.maximum(t, 0.0),
    ],
)
def test_what_is_not_linear_is_refused(crooked):
    fun = wend.custom_jvp(lambda x: x)
    fun.defjvp(lambda p, t: (p[0], crooked(t[0])))
    assert wend.function(fun)(1.0) == 1.0
    with pytest.raises(NotDifferentiableError, match="not linear in the tangents"):
        wend.grad(fun)(1.0)


def test_effects(capsys):
    @wend.custom_jvp
    def fun(x):
        wend.print("fun", x)
        return x * 2.0

    fun.defjvp(lambda p, t: (fun(*p), 3.0 * t[0]))
    assert wend.grad(lambda x: fun(fun(x)))(1.0) == 9.0
    assert capsys.readouterr().out == "fun 1.0\nfun 2.0\n"


def test_unknown_sizes():
    @wend.custom_jvp
    def doubled(v):
        return v * 2.0

    doubled.defjvp(lambda p, t: (p[0] * 2.0, t[0] * wnp.sum(p[0])))
    spec = wend.TensorSpec([None])
    fun = wend.function(lambda v: wnp.sum(doubled(v) * v), input_signature=[spec])
    v = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(wend.grad(fun)(v), v * 6.0 + 2.0 * v)
    np.testing.assert_allclose(wend.grad(fun)(v[:1]), [3.0])


def test_symbolic_zeros_are_not_built():
    fun = wend.custom_jvp(lambda x: x)
    with pytest.raises(NotImplementedError, match="symbolic_zeros"):
        fun.defjvp(lambda p, t: (p, t), symbolic_zeros=True)


def test_graphs_print_and_parse():
    fun = wend.custom_jvp(lambda x: wnp.sin(x))
    fun.defjvp(lambda p, t: (wnp.sin(p[0]), wnp.cos(p[0]) * t[0]))
    for ask in (fun, wend.grad(fun), wend.grad(wend.grad(fun))):
        check_graph(traced(ask, 1.0))
    assert names(traced(fun, 1.0, optimize=True)) == ["sin"]


def test_rows_of_tangents():
    """A scan over the rows of tangents: the lists they are in are read for their length only."""

    @wend.custom_jvp
    def fun(x, v):
        return wnp.sum(v * x)

    @fun.defjvp
    def _jvp(primals, tangents):
        rows = wend.function(lambda *rows: wend.scan(_step, (0.0, 0.0), rows)[0])
        x, v = primals
        t, s = tangents
        return rows(v, s, v * 0.0 + x, v * 0.0 + t)

    def _step(c, row):
        v, s, x, t = row
        return (c[0] + v * x, c[1] + s * x + v * t), None

    v = np.array([1.0, 2.0, 4.0])
    by_x, by_v = wend.grad(lambda x, v: fun(x, v), (0, 1))(3.0, v)
    assert by_x == 7.0
    np.testing.assert_array_equal(by_v, [3.0, 3.0, 3.0])
    mixed = wend.grad(lambda x, v: wnp.sum(wend.grad(fun, 1)(x, v)))(3.0, v)
    assert mixed == 3.0
