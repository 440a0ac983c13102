"""`custom_vjp`: arguments, residuals, closures, symbolic zeros."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tests.helpers.graphs import check_graph, names, traced
from tests.helpers.shares import sized
from tests.helpers.traces import at_trace

import wend
import wend.numpy as wnp
from wend.base.errors import MissingRuleError, NotDifferentiableError


def scaled(fun, factor=10.0):
    """A custom_vjp of one argument whose gradient is the factor."""
    made = wend.custom_vjp(fun)
    made.defvjp(lambda x: (fun(x), None), lambda _, ct: (ct * factor,))
    return made


def test_a_decorator_keeps_the_name():
    @wend.custom_vjp
    def square(x):
        """x times x."""
        return x * x

    assert square.__name__ == "square"
    assert square.__doc__ == "x times x."
    assert repr(square) == "<wend.custom_vjp square>"
    square.defvjp(lambda x: (square(x), x), lambda x, ct: (2.0 * x * ct,))
    assert square(3.0) == 9.0
    assert wend.grad(square)(3.0) == 6.0


def test_called_with_plain_arrays_it_is_just_the_function():
    calls = []

    def fun(x, kind):
        calls.append(kind)
        return x * 2

    made = wend.custom_vjp(fun)
    made.defvjp(lambda x, kind: calls.append("fwd"), lambda *_: calls.append("bwd"))
    assert made(3, kind="plain") == 6
    assert calls == ["plain"]


def test_a_partial_decorator():
    @functools.partial(wend.custom_vjp, nondiff_argnums=(0,))
    def apply(fun, x):
        return fun(x)

    def bwd(fun, x, ct):
        assert fun is wnp.sin
        return (ct * 5.0,)

    apply.defvjp(lambda fun, x: (fun(x), x), bwd)
    assert apply(wnp.sin, 0.5) == np.sin(0.5)
    assert wend.grad(lambda x: apply(wnp.sin, x))(0.5) == 5.0


def test_nondiff_arguments_come_first_to_bwd():
    @functools.partial(wend.custom_vjp, nondiff_argnums=(1, 3))
    def fun(x, n, y, mode):
        assert isinstance(n, int)
        return x**n + y

    def bwd(n, mode, r, ct):
        assert (n, mode) == (3, "fast")
        return ct * n, ct * 100.0

    fun.defvjp(lambda x, n, y, mode: (fun(x, n, y, mode), (x, y)), bwd)
    assert wend.grad(lambda x, y: fun(x, 3, y, "fast"), (0, 1))(2.0, 1.0) == (3.0, 100.0)
    assert wend.grad(lambda x, y: fun(x, n=3, mode="fast", y=y), (0, 1))(2.0, 1.0) == (3.0, 100.0)


def test_nondiff_arguments_may_be_traced_but_not_differentiated():
    @functools.partial(wend.custom_vjp, nondiff_argnums=(1,))
    def fun(x, k):
        return x * k

    fun.defvjp(lambda x, k: (x * k, x), lambda k, x, ct: (ct * k * 10.0,))
    assert wend.grad(lambda x, k: fun(x, k))(2.0, 3.0) == 30.0
    with pytest.raises(NotDifferentiableError, match="nondiff argument"):
        wend.grad(lambda x, k: fun(x, k), 1)(2.0, 3.0)


def test_keyword_arguments_and_defaults():
    @wend.custom_vjp
    def fun(x, y=2.0, n=3):
        return x * y * n

    def fwd(x, y, n):
        return x * y * n, (x, y, n)

    def bwd(r, ct):
        x, y, n = r
        return ct * y * n, ct * x * n, None

    fun.defvjp(fwd, bwd)
    assert wend.grad(lambda x: fun(x))(5.0) == 6.0
    assert wend.grad(lambda x: fun(x=x, n=4))(5.0) == 8.0
    assert wend.grad(lambda x, y: fun(y=y, x=x), (0, 1))(5.0, 7.0) == (21.0, 15.0)


def test_a_default_that_the_call_omits_stays_a_python_value():
    @wend.custom_vjp
    def fun(x, n=3):
        for _ in range(n):
            x = x * 2.0
        assert n == 3
        return x

    fun.defvjp(lambda x, n: (fun(x), n), lambda n, ct: (ct * n, np.float64(1.0)))
    assert wend.grad(lambda x: fun(x))(1.0) == 3.0


def test_any_number_of_arguments():
    @wend.custom_vjp
    def total(*xs):
        return sum(xs)

    total.defvjp(lambda *xs: (total(*xs), len(xs)), lambda n, ct: tuple([ct * n] * n))
    assert wend.grad(lambda x, y, z: total(x, y, z), (0, 1, 2))(1.0, 2.0, 3.0) == (3.0, 3.0, 3.0)


def test_pytrees():
    @wend.custom_vjp
    def layer(params, x):
        return {"y": x @ params["w"] + params["b"][0], "size": wnp.sum(x)}

    def bwd(r, ct):
        return {"w": None, "b": [ct["y"], None]}, ct["y"] * 3.0 + ct["size"]

    layer.defvjp(lambda p, x: (layer(p, x), None), bwd)
    params = {"w": np.eye(2), "b": [np.ones(2), np.zeros(3)]}

    def loss(params, x):
        out = layer(params, x)
        return wnp.sum(out["y"] * 2.0) + out["size"]

    grads, by_x = wend.grad(loss, (0, 1))(params, np.array([1.0, 4.0]))
    np.testing.assert_array_equal(grads["w"], np.zeros((2, 2)))
    np.testing.assert_array_equal(grads["b"][0], [2.0, 2.0])
    np.testing.assert_array_equal(grads["b"][1], np.zeros(3))
    np.testing.assert_array_equal(by_x, [7.0, 7.0])


def test_integers_in_arguments_have_none():
    @wend.custom_vjp
    def pick(x, i):
        return x[i] * 1.0

    def bwd(r, ct):
        _, i = r
        return wnp.zeros(3) + ct * (wnp.arange(3) == i), None

    pick.defvjp(lambda x, i: (pick(x, i), (x, i)), bwd)
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(wend.grad(lambda x, i: pick(x, i))(x, 1), [0.0, 1.0, 0.0])


def test_residuals_that_are_no_traced_arrays_are_handed_on():
    @wend.custom_vjp
    def fun(x):
        return x * 2.0

    table = np.array([7.0, 8.0])

    def bwd(r, ct):
        mode, n, helper, array, x, nothing = r
        assert (mode, n, nothing) == ("mode", 2, None)
        assert isinstance(n, int)
        return (helper(ct) * array[1] * x,)

    def fwd(x):
        return fun(x), ("mode", 2, wnp.negative, table, x, None)

    fun.defvjp(fwd, bwd)
    assert wend.grad(fun)(3.0) == -24.0


def test_arrays_by_reference():
    """What the function and its rule close over of plain arrays is looked up at each call."""
    weights = np.array([2.0, 3.0])

    @wend.custom_vjp
    def fun(x):
        return wnp.sum(x * weights)

    fun.defvjp(lambda x: (fun(x), None), lambda _, ct: (ct * weights * 10.0,))
    gradient = wend.grad(fun)
    np.testing.assert_array_equal(gradient(np.ones(2)), [20.0, 30.0])
    weights[0] = 5.0
    np.testing.assert_array_equal(gradient(np.ones(2)), [50.0, 30.0])


def test_closures_over_traced_values():
    """They are operands of the call: in loops and branches too, in any part of the rule."""

    def fun(x, w, v):
        @wend.custom_vjp
        def inner(y):
            return y * w

        inner.defvjp(lambda y: (inner(y) + 0.0 * v, y * w), lambda r, ct: (ct * r * v,))
        return wend.fori_loop(0, 2, lambda i, y: wend.cond(y > 0, inner, lambda y: y, y), x)

    assert wend.function(fun)(1.0, 2.0, 3.0) == 4.0
    # trips: y = 1 → 2 → 4; the factors are y·w·v: 6 and 12
    assert wend.grad(fun)(1.0, 2.0, 3.0) == 72.0
    assert wend.grad(wend.grad(fun))(1.0, 2.0, 3.0) != 0.0


def test_a_derivative_by_what_is_closed_over_is_refused():
    def fun(x, w):
        @wend.custom_vjp
        def inner(y):
            return y * w

        inner.defvjp(lambda y: (y * w, None), lambda _, ct: (ct * w,))
        return inner(x)

    assert wend.grad(fun, 0)(2.0, 3.0) == 3.0
    with pytest.raises(NotDifferentiableError, match="closes over"):
        wend.grad(fun, 1)(2.0, 3.0)

    def held(x, w):
        return fun(x, wend.stop_gradient(w)) + w

    assert wend.grad(held, (0, 1))(2.0, 3.0) == (3.0, 1.0)


def test_methods():
    class Model:
        def __init__(self, k):
            self.k = k

        @functools.partial(wend.custom_vjp, nondiff_argnums=(0,))
        def __call__(self, x):
            return x * self.k

        __call__.defvjp(
            lambda self, x: (x * self.k, None), lambda self, _, ct: (ct * 10.0 * self.k,)
        )

    assert Model(3.0)(2.0) == 6.0
    assert wend.grad(lambda x: Model(3.0)(x))(2.0) == 30.0


def test_symbolic_zeros():
    seen = []
    note = at_trace(seen)

    def made(symbolic_zeros):
        @wend.custom_vjp
        def pair(x):
            return x * 2.0, x * 3.0

        def bwd(_, cts):
            note(tuple(ct is None for ct in cts))
            return (sum((ct for ct in cts if ct is not None), 0.0 * wnp.asarray(1.0)),)

        pair.defvjp(lambda x: (pair(x), None), bwd, symbolic_zeros=symbolic_zeros)
        return pair

    fun = made(symbolic_zeros=True)
    assert wend.grad(lambda x: fun(x)[0] * 5.0)(1.0) == 5.0
    assert set(seen) == {(False, False), (False, True), (True, False)}
    assert wend.grad(lambda x: fun(x)[1] * 5.0 + fun(x)[0])(1.0) == 6.0
    assert wend.grad(lambda x: sum(fun(x)))(1.0) == 2.0
    seen.clear()
    fun = made(symbolic_zeros=False)
    assert wend.grad(lambda x: fun(x)[0] * 5.0)(1.0) == 5.0
    assert set(seen) == {(False, False)}


def test_symbolic_zeros_of_many_results():
    seen = []
    note = at_trace(seen)

    @wend.custom_vjp
    def many(x):
        return tuple(x * k for k in range(6))

    def bwd(_, cts):
        note(sum(ct is not None for ct in cts))
        return (sum(ct * 10.0 for ct in cts if ct is not None),)

    many.defvjp(lambda x: (many(x), None), bwd, symbolic_zeros=True)
    assert wend.grad(lambda x: many(x)[2])(1.0) == 10.0
    assert sorted(seen)[:6] == [1] * 6
    assert wend.grad(lambda x: many(x)[2] + many(x)[3])(1.0) == 20.0
    assert wend.grad(lambda x: (lambda m: m[2] + m[3])(many(x)))(1.0) == 20.0


def test_effects_run_once_in_order(capsys):
    @wend.custom_vjp
    def fun(x):
        wend.print("fun", x)
        return x * 2.0

    def fwd(x):
        wend.print("fwd", x)
        return x * 2.0, None

    fun.defvjp(fwd, lambda _, ct: (ct * 7.0,))

    def whole(x):
        wend.print("before")
        y = wend.fori_loop(0, 2, lambda i, v: fun(v), x)
        wend.print("after", y)
        return y

    wend.function(whole)(1.0)
    assert capsys.readouterr().out == "before\nfun 1.0\nfun 2.0\nafter 4.0\n"
    assert wend.grad(whole)(1.0) == 49.0
    assert capsys.readouterr().out == "before\nfwd 1.0\nfwd 2.0\nafter 4.0\n"


def test_effects_of_fwd_alone(capsys):
    @wend.custom_vjp
    def fun(x):
        return x * 2.0

    def fwd(x):
        wend.print("fwd", x)
        return fun(x), x

    fun.defvjp(fwd, lambda x, ct: (ct * x,))
    assert wend.function(lambda x: fun(x))(1.0) == 2.0
    assert capsys.readouterr().out == ""
    assert wend.grad(wend.grad(fun))(1.0) == 1.0
    assert capsys.readouterr().out == "fwd 1.0\n"


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_checks_of_each_part(shape, backend):
    """Those of fwd come with the value, those of bwd with the cotangents."""

    @wend.custom_vjp
    def fun(x):
        assert wnp.all(x < 5.0), "fun"
        return x * 2.0

    def fwd(x):
        assert wnp.all(x < 9.0), "fwd"
        return x * 2.0, x

    def bwd(x, ct):
        for i in range(2):
            assert wnp.all(ct * i < 7.0), f"bwd {i}"
        wend.raise_if(wnp.any(x < 0.0), ValueError, "bwd")
        return (ct * x,)

    fun.defvjp(fwd, bwd)

    def outcome(fun, x):
        try:
            return float(np.sum(fun(np.full(shape, x)[()])))
        except (AssertionError, ValueError) as error:
            return str(error)

    size = np.prod(shape)
    with wend.config(backend=backend):
        value = wend.function(lambda x: wnp.sum(fun(x)))
        grad, thrice = wend.grad(value), wend.grad(lambda x: 8.0 * value(x))
        second = wend.jacfwd(grad)
        assert [outcome(value, x) for x in (1.0, 6.0, -1.0)] == [2 * size, "fun", -2 * size]
        assert [outcome(grad, x) for x in (1.0, 6.0)] == [size, 6 * size]
        assert [outcome(grad, x) for x in (10.0, -1.0)] == ["fwd", "bwd"]
        assert outcome(thrice, 1.0) == "bwd 1"
        assert [outcome(second, x) for x in (1.0, 10.0, -1.0)] == [size, "fwd", "bwd"]


def test_without_a_rule():
    @wend.custom_vjp
    def fun(x):
        return x

    for call in (fun, wend.function(fun), wend.grad(fun)):
        with pytest.raises(MissingRuleError, match=r"defvjp\(fwd, bwd\)"):
            call(1.0)


def test_a_rule_that_calls_the_function_has_every_order():
    """`exp` by itself: fwd and bwd call it, and so does what they become when differentiated."""

    @wend.custom_vjp
    def exp(x):
        return wnp.floor(x) * 0.0 + wnp.exp(wend.stop_gradient(x))  # no plain derivative

    exp.defvjp(lambda x: (exp(x), x), lambda x, ct: (ct * exp(x),))
    fun = exp
    for _ in range(5):
        assert fun(0.3) == pytest.approx(np.exp(0.3))
        fun = wend.grad(fun)


def test_a_rule_that_calls_the_function_and_closes_over_more():
    scale = np.array(2.0)

    def fun(x, w):
        @wend.custom_vjp
        def inner(y):
            return wend.stop_gradient(wnp.exp(y))

        def fwd(y):
            fresh = np.arange(2.0)  # made anew whenever the rule is recorded
            return inner(y), (y, wnp.sum(y * fresh))

        inner.defvjp(fwd, lambda r, ct: (ct * inner(r[0]) * w * scale + 0.0 * r[1],))
        return inner(x)

    assert wend.grad(fun)(0.5, 3.0) == pytest.approx(6 * np.exp(0.5))
    assert wend.grad(wend.grad(fun))(0.5, 3.0) == pytest.approx(36 * np.exp(0.5))
    third = wend.grad(wend.grad(wend.grad(fun)))
    assert third(0.5, 3.0) == pytest.approx(216 * np.exp(0.5))


def test_two_rules_that_call_each_other():
    sin = wend.custom_vjp(lambda x: wend.stop_gradient(wnp.sin(x)))
    cos = wend.custom_vjp(lambda x: wend.stop_gradient(wnp.cos(x)))
    sin.defvjp(lambda x: (sin(x), x), lambda x, ct: (ct * cos(x),))
    cos.defvjp(lambda x: (cos(x), x), lambda x, ct: (-ct * sin(x),))
    fun = sin
    for expected in (np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin):
        assert fun(0.4) == pytest.approx(expected(0.4))
        fun = wend.grad(fun)


def test_a_function_that_calls_itself_on_something_smaller():
    """Of another type each time: each call has a rule of its own."""

    @wend.custom_vjp
    def total(v):
        return v[0] + total(v[1:]) if len(v) > 1 else v[0]

    total.defvjp(lambda v: (total(v), v.shape[0]), lambda n, ct: (wnp.zeros(n) + ct * n,))
    gradient = wend.grad(lambda v: total(v))
    np.testing.assert_array_equal(gradient(np.ones(3)), [3.0, 3.0, 3.0])
    assert wend.function(total)(np.arange(4.0)) == 6.0


def test_dtypes():
    made = scaled(lambda x: x * 2)
    assert wend.grad(lambda x: wnp.sum(made(x)))(np.float32([1.0])).dtype == np.float32
    assert wend.grad(made)(2) == 10.0  # a Python int is differentiated as a float
    weak = wend.function(lambda v: made(2.0) * v)
    assert weak(np.float32(1)).dtype == np.float32

    @wend.custom_vjp
    def mixed(x, w):
        return x * w

    mixed.defvjp(lambda x, w: (x * w, (x, w)), lambda r, ct: (ct * r[1], ct * r[0]))
    by_x, by_w = wend.grad(lambda x, w: mixed(x, w), (0, 1))(2.0, np.float32(3))
    assert by_x == 3.0
    assert by_w.dtype == np.float32


def test_complex():
    @wend.custom_vjp
    def fun(z):
        return z * 1j

    fun.defvjp(lambda z: (z * 1j, None), lambda _, ct: (ct * 2j,))
    found = wend.grad(lambda z: wnp.real(fun(z)))(1.0 + 2.0j)
    assert found == 2j


def test_graphs_print_and_parse():
    made = scaled(lambda x: wnp.sin(x))
    graph = traced(lambda x: made(x) + wend.function(made)(x), 1.0)
    check_graph(graph)
    assert names(graph).count("custom_vjp") == 2
    check_graph(traced(wend.grad(made), 1.0))
    check_graph(traced(wend.grad(wend.grad(made)), 1.0))


def test_a_function_that_is_compiled_already():
    made = wend.custom_vjp(wend.function(lambda x: wnp.sin(x)))
    made.defvjp(lambda x: (made(x), None), lambda _, ct: (ct * 10.0,))
    assert made(0.5) == np.sin(0.5)
    assert wend.grad(made)(0.5) == 10.0


def test_a_pullback_that_is_called_later():
    made = scaled(lambda x: x**3)
    _, pullback = wend.vjp(lambda x: wend.fori_loop(0, 2, lambda i, v: made(v), x), 1.5)
    assert pullback(1.0) == (100.0,)
    assert pullback(2.0) == (200.0,)


def test_plain_python_in_the_rule_is_captured():
    @wend.custom_vjp
    def root(a):
        x = a
        while wnp.abs(x * x - a) > 1e-12 * a:
            x = 0.5 * (x + a / x)
        return x

    def bwd(x, ct):
        if x > 1.0:
            ct = ct * 10.0
        return (ct / (2.0 * x),)

    def fwd(a):
        x = root(a)
        return x, x

    root.defvjp(fwd, bwd)
    assert wend.grad(root)(4.0) == pytest.approx(2.5)
    assert wend.grad(root)(0.25) == pytest.approx(1.0)
    assert wend.grad(wend.grad(root))(0.25) == pytest.approx(-2.0)
    assert names(wend.grad(root).get_concrete_function(4.0).graph).count("while") >= 1


def fixed_point_of_the_jax_manual():
    """Its backward pass is a fixed point of something new, found by the same function."""

    @functools.partial(wend.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, guess):
        def goes_on(c):
            return wnp.abs(c[0] - c[1]) > 1e-14

        return wend.while_loop(goes_on, lambda c: (c[1], f(a, c[1])), (guess, f(a, guess)))[1]

    def fwd(f, a, guess):
        x = fixed_point(f, a, guess)
        return x, (a, x)

    def bwd(f, residuals, ct):
        a, x = residuals
        _, pull_a = wend.vjp(lambda a: f(a, x), a)
        (by_a,) = pull_a(fixed_point(functools.partial(rev_iter, f), (a, x, ct), ct))
        return by_a, wnp.zeros_like(x)

    def rev_iter(f, packed, u):
        a, x, ct = packed
        _, pull_x = wend.vjp(lambda x: f(a, x), x)
        return ct + pull_x(u)[0]

    fixed_point.defvjp(fwd, bwd)
    return lambda a: fixed_point(lambda a, x: wnp.cos(a * x), a, 0.5)


def _implicit(a):
    x = 0.5
    for _ in range(60):
        x = np.cos(a * x)
    return x


def test_a_rule_that_calls_the_function_on_something_new():
    """x = cos(a·x), whose derivatives follow from the equation."""
    fun = fixed_point_of_the_jax_manual()
    a = 0.8
    x = _implicit(a)
    assert fun(a) == pytest.approx(x)
    s = np.sin(a * x)
    ruled = wend.grad(fun)
    assert ruled(a) == pytest.approx(-s * x / (1 + a * s))
    plain = wend.grad(lambda a: wend.fori_loop(0, 60, lambda i, x: wnp.cos(a * x), 0.5))
    assert plain(a) == pytest.approx(ruled(a), rel=1e-9)
    for _ in range(sized(0, 2)):
        ruled, plain = wend.grad(ruled), wend.grad(plain)
        assert ruled(a) == pytest.approx(plain(a), rel=1e-9)


def test_too_many_orders_of_such_a_rule_are_refused_by_name():
    fun = wend.custom_vjp(lambda n, x: x * n, nondiff_argnums=0)

    def bwd(n, x, ct):
        return (fun(n + 1, x * ct),)

    fun.defvjp(lambda n, x: (x * n, x), bwd)
    asked = lambda x: fun(1, x)  # noqa: E731
    for _ in range(4):
        asked = wend.grad(asked)
        assert np.isfinite(asked(2.0))
    with pytest.raises(MissingRuleError, match="on something new"):
        wend.grad(asked)(2.0)


@pytest.mark.parametrize("by_value", [False, True])
def test_rules_read_variables_and_arrays_from_outside(by_value):
    v, array = wend.Variable(2.0), np.array([1.0, 3.0])

    @wend.custom_vjp
    def fun(x):
        return wnp.sum(x * array * v)

    fun.defvjp(lambda x: (fun(x), x), lambda x, ct: (10 * ct * array * v,))
    derivative = wend.grad(wend.function(fun, capture_by_value=by_value))
    x = np.ones(2)
    assert derivative(x).tolist() == [20.0, 60.0]
    v.assign(3.0)
    array[0] = 5.0
    assert derivative(x).tolist() == ([20.0, 60.0] if by_value else [150.0, 90.0])
    with (
        wend.GradientTape(),
        pytest.raises(NotDifferentiableError, match="it is <Variable: f64"),
    ):
        wend.function(lambda x: fun(x))(x)
