"""`checkpoint`: nothing of the inside is kept, the result is the same."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.autodiff.test_fuzz import ARGS, examples
from tests.helpers.graphs import check_graph, gradient, names, pushes
from tests.helpers.random_programs import programs, staged
from tests.helpers.shares import sized

import wend
import wend.numpy as wnp
from wend.base.errors import NotDifferentiableError, TypeMismatchError
from wend.passes.pipeline import OPTIMIZE, run_passes


def deep(x):
    """Five costly operations, each of which reverse mode would keep something of."""
    return wnp.sin(wnp.exp(wnp.cos(wnp.tanh(wnp.sin(x)))))


WEIGHTS = np.array([[0.3, -0.8], [0.5, 0.2]])


def layers(v):
    """Three layers; reverse mode would keep what each gives."""
    for _ in wend.unroll(range(3)):
        v = wnp.tanh(WEIGHTS @ v)
    return v


def again(graph):
    """The calls that are run again, at any depth."""
    return [node for node in graph.walk() if node.attrs.get("recompute")]


def test_called_with_plain_arrays_it_is_just_the_function():
    calls = []
    fun = wend.checkpoint(lambda x, name="a": (calls.append(name), x * 2)[1])
    assert fun(3, name="b") == 6
    assert calls == ["b"]
    assert fun.__name__ == "<lambda>"


@pytest.mark.parametrize("order", [1, 2, 3])
def test_every_order(order):
    kept, run_again = deep, wend.checkpoint(deep)
    nested = wend.checkpoint(lambda x: wend.checkpoint(deep)(x) * 1.0)
    for _ in range(order):
        kept, run_again, nested = wend.grad(kept), wend.grad(run_again), wend.grad(nested)
    assert run_again(0.3) == pytest.approx(kept(0.3), rel=1e-12)
    assert nested(0.3) == pytest.approx(kept(0.3), rel=1e-12)


def test_pytrees_keywords_statics_and_closures():
    def fun(params, x, power=2, *, name="n"):
        assert name == "m"
        return {"y": params["w"] * x**power, "n": 3}

    made = wend.checkpoint(fun, static_argnums=2)

    def loss(w, x, c):
        closed = wend.checkpoint(lambda y: y * c)
        return closed(made({"w": w}, x, 3, name="m")["y"])

    assert wend.grad(loss, (0, 1, 2))(2.0, 3.0, 5.0) == (135.0, 270.0, 54.0)


def test_a_scan_records_the_carry_alone():
    xs = np.linspace(0.1, 0.9, 10).reshape(5, 2)

    def fun(body):
        return lambda c, xs: wnp.sum(wend.scan(lambda c, x: (body(c * x), None), c, xs)[0])

    start = np.array([0.3, 0.4])
    kept = gradient(fun(layers), start, xs, argnums=(0, 1))
    thin = gradient(fun(wend.checkpoint(layers)), start, xs, argnums=(0, 1))
    assert len(pushes(kept)) == 3  # what each layer gives, of which the last is the carry
    assert len(pushes(thin)) == 1
    assert names(thin).count("tanh") == 6
    assert names(kept).count("tanh") == 3
    both = [wend.grad(fun(b), (0, 1))(start, xs) for b in (layers, wend.checkpoint(layers))]
    np.testing.assert_allclose(both[0][0], both[1][0])
    np.testing.assert_allclose(both[0][1], both[1][1])


def test_a_while_that_is_checkpointed_whole():
    """Its tape lives in the backward pass only: nothing of it crosses."""

    def root(a):
        x = a
        while wnp.abs(x * x - a) > 1e-12:
            x = 0.5 * (x + a / x)
        return x

    thin = wend.checkpoint(root)
    graph = gradient(lambda a: thin(a) * 2.0, 2.0)
    assert wend.grad(thin)(2.0) == pytest.approx(wend.grad(root)(2.0))
    assert wend.grad(wend.grad(thin))(2.0) == pytest.approx(wend.grad(wend.grad(root))(2.0))
    first, second = again(graph)
    assert [node.op.name for node in first.regions[0].walk() if "list" in node.op.name] == []
    assert "list_push" in [node.op.name for node in second.regions[0].walk()]


def test_no_pass_merges_the_two_runs():
    """Each costly operation is there twice: once for the value, once in the backward pass."""
    graph = gradient(lambda x: wend.checkpoint(deep)(x), 0.3)
    assert names(graph).count("tanh") == 2
    assert len(again(graph)) == 2
    assert names(gradient(deep, 0.3)).count("tanh") == 1
    assert len(again(run_passes(graph, OPTIMIZE))) == 2
    check_graph(graph)


def test_only_what_is_needed_runs_again():
    fun = wend.checkpoint(lambda x, w: wnp.exp(wnp.sin(x)) * w)
    by_w = gradient(lambda w, x: fun(x, w), 1.0, 2.0)
    assert names(by_w).count("cos") == 0
    by_none = gradient(lambda x: wend.stop_gradient(fun(x, x)) + x, 1.0)
    assert len(again(by_none)) == 1


def test_second_order_keeps_nothing_either():
    body = wend.checkpoint(layers)

    def order_two(body):
        fun = lambda v: wnp.sum(wend.fori_loop(0, 4, lambda i, v: body(v), v))  # noqa: E731
        return lambda v: wnp.sum(wend.grad(fun)(v) ** 2)

    v = np.array([0.3, 0.4])
    np.testing.assert_allclose(wend.grad(order_two(body))(v), wend.grad(order_two(layers))(v))
    graph, plain = gradient(order_two(body), v), gradient(order_two(layers), v)
    assert len(pushes(graph)) < len(pushes(plain)) / 2
    assert all(node.attrs.get("recompute") for node in graph.walk() if node.op.name == "call")


def test_memory_goes_down():
    x = np.full(50_000, 0.3)

    def layers(body):
        def fun(x):
            for _ in wend.unroll(range(6)):
                x = body(x)
            return wnp.sum(x)

        return wend.grad(wend.function(fun, backend="numpy"))  # whose memory Python traces

    def block(x):
        for _ in wend.unroll(range(5)):
            x = wnp.sin(x) + wnp.tanh(x)
        return x

    def peak(fun):
        fun(x)
        tracemalloc.start()
        found = fun(x)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size, found

    kept, expected = peak(layers(block))
    thin, found = peak(layers(wend.checkpoint(block)))
    np.testing.assert_allclose(found, expected)
    assert thin < kept / 2


def test_branches_and_rules_inside():
    @wend.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, ct: (wnp.clip(ct, -1.0, 1.0),))
    fun = wend.checkpoint(lambda x: wend.cond(x > 0, lambda: clipped(x) * 5.0, lambda: x * x))
    assert wend.grad(fun)(2.0) == 1.0
    assert wend.grad(fun)(-2.0) == -4.0
    assert wend.grad(wend.grad(fun))(-2.0) == 2.0

    def body(x):
        y = x
        if x > 0:
            y = fun(x)
        return y

    assert wend.grad(lambda x: wend.fori_loop(0, 3, lambda i, v: body(v), x))(2.0) == 1.0


def test_a_rule_may_be_checkpointed():
    fun = wend.custom_vjp(wend.checkpoint(deep))
    fun.defvjp(lambda x: (fun(x), x), lambda x, ct: (ct * wend.checkpoint(deep)(x),))
    assert wend.grad(fun)(0.3) == pytest.approx(deep(0.3))
    assert wend.grad(wend.grad(fun))(0.3) == pytest.approx(wend.grad(deep)(0.3))


def test_zero_trips():
    body = wend.checkpoint(deep)
    assert wend.grad(lambda x: wend.fori_loop(0, 0, lambda i, v: body(v), x))(0.3) == 1.0


def test_several_results_of_which_some_are_used():
    fun = wend.checkpoint(lambda x: (wnp.sin(x), x * x, 3))
    assert wend.grad(lambda x: fun(x)[1])(3.0) == 6.0
    assert wend.grad(lambda x: fun(x)[0] + fun(x)[1])(3.0) == pytest.approx(np.cos(3.0) + 6)


def test_unknown_sizes():
    spec = wend.TensorSpec([None])
    body = wend.checkpoint(lambda v: wnp.exp(wnp.sin(v)) * wnp.sum(v))
    fun = wend.function(lambda v: wnp.sum(body(v)[1:]), input_signature=[spec])
    plain = lambda v: wnp.sum((wnp.exp(wnp.sin(v)) * wnp.sum(v))[1:])  # noqa: E731
    v = np.array([0.1, 0.4, 0.7])
    np.testing.assert_allclose(wend.grad(fun)(v), wend.grad(plain)(v))
    summed = lambda f: wend.grad(  # noqa: E731
        wend.function(lambda v: wnp.sum(wend.grad(f)(v)), input_signature=[spec])
    )
    np.testing.assert_allclose(summed(fun)(v), summed(plain)(v))


def test_native():
    body = wend.checkpoint(deep)
    fun = lambda x: wend.fori_loop(0, 4, lambda i, v: body(v) + 0.1, x)  # noqa: E731
    asked = fun, wend.grad(fun), wend.grad(wend.grad(fun))
    expected = [wend.function(ask)(0.3) for ask in asked]
    found = [wend.function(ask, backend="native")(0.3) for ask in asked]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_effects_are_refused():
    @wend.checkpoint
    def fun(x):
        wend.fori_loop(0, 2, lambda i, v: (wend.print("x", x), v)[1], x)
        return x

    for ask in (wend.function(fun), wend.grad(fun)):
        with pytest.raises(NotDifferentiableError, match=r"checkpoint of fun .* print"):
            ask(1.0)


def checked(x):
    wend.raise_if(x < 0.0, ValueError, "math domain error")
    for i in range(3):
        assert x < 9.0, f"x is {x} in trip {i}"
        x = wnp.sin(x) + 8.0
    return x


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(
    "transform",
    [
        lambda fun: fun,
        wend.grad,
        lambda fun: wend.grad(wend.grad(fun)),
        wend.jacfwd,
        wend.jacrev,
        wend.hessian,
        lambda fun: lambda x: wend.jvp(fun, (x,), (1.0,))[1],
        lambda fun: lambda x: wend.vjp(fun, x)[1](1.0)[0],
        lambda fun: lambda x: wend.linearize(fun, x)[1](1.0),
    ],
)
def test_checks_are_made_in_the_forward_pass_alone(transform, backend):
    run_again, kept = (transform(f) for f in (wend.checkpoint(checked), checked))
    run_again, kept = (wend.function(f, backend=backend) for f in (run_again, kept))
    assert run_again(0.5) == pytest.approx(kept(0.5), rel=1e-12)
    for x, message in ((-1.0, "math domain error"), (9.5, "x is 9.5 in trip 0")):
        with pytest.raises(ValueError if x < 0 else AssertionError) as caught:
            run_again(x)
        assert str(caught.value) == message
    assert run_again(0.5) == pytest.approx(kept(0.5), rel=1e-12)
    assert names(run_again.get_concrete_function(0.5).graph).count("raise_if") == 2


def test_arguments_changed_in_place_are_refused():
    @wend.checkpoint
    def fun(v):
        v[0] = 3.0
        return v

    with pytest.raises(TypeMismatchError, match="argument v is changed in place"):
        wend.function(fun)(np.ones(2))


def test_options_that_are_not_built():
    with pytest.raises(NotImplementedError, match="policy"):
        wend.checkpoint(deep, policy="dots")
    with pytest.raises(TypeError, match="takes a function"):
        wend.checkpoint(3)


@examples(sized(5, 15))
@given(programs(depth=2), st.booleans())
def test_any_program(program, inside):
    """A checkpoint around a program, or around the gradient's function, changes no number."""
    fun = staged(program)
    thin = wend.checkpoint(fun)
    found = wend.grad(thin if not inside else lambda *xs: thin(*xs) * 1.0, (0, 1, 2))(*ARGS)
    expected = wend.grad(fun, (0, 1, 2))(*ARGS)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
