"""Functions of wend inside JAX: values, derivatives of any order, batches, compiled programs."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import wend
from wend.interop.jax import as_jax


def root(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def decay(rate: Any, start: Any) -> Any:
    """Adaptive steps of an ODE, until its solution is small."""
    y, t, h = start, 0.0, 0.1
    while np.sum(y * y) > 0.1:
        k = -rate * y
        half = y + 0.5 * h * k
        error = np.max(np.abs(h * (-rate * half) - h * k))
        if error < 0.01:
            y, t, h = y - h * rate * half, t + h, 1.5 * h
        else:
            h = 0.5 * h
    return y, t


def cell(params: Any, xs: Any) -> Any:
    h = np.zeros(3)
    for x in xs:
        h = np.tanh(params["w"] @ h + params["u"] * x + params["b"])
    return h


POINTS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "newton": (root, (3.0,)),
    "ode": (decay, (np.array([0.5, 1.5]), np.array([1.0, -2.0]))),
    "recurrent": (
        cell,
        (
            {"w": np.eye(3) * 0.4 + 0.1, "u": np.arange(3.0), "b": np.full(3, 0.1)},
            np.array([0.3, -0.2, 0.5, 0.1]),
        ),
    ),
}


@pytest.mark.parametrize("name", POINTS)
def test_values_are_those_of_the_function(name: str) -> None:
    fun, args = POINTS[name]
    expected = jax.tree.leaves(wend.function(fun)(*args))
    for call in (as_jax(fun), jax.jit(as_jax(fun)), as_jax(wend.function(fun))):
        results = jax.tree.leaves(call(*args))
        assert all(isinstance(x, jax.Array) for x in results)
        assert [np.asarray(x).tobytes() for x in results] == [
            np.asarray(x).tobytes() for x in expected
        ]


@pytest.mark.sampled
@pytest.mark.parametrize("name", POINTS)
def test_derivatives(name: str) -> None:
    fun, args = POINTS[name]
    check_grads(as_jax(fun), args, order=3 if name == "newton" else 2, atol=1e-4, rtol=1e-4)


def test_the_derivatives_are_those_of_wend() -> None:
    fun, args = POINTS["recurrent"]

    def loss(params: Any, xs: Any) -> Any:
        return (fun(params, xs) ** 2).sum()

    slopes = jax.jit(jax.grad(as_jax(loss)))(*args)
    expected = wend.grad(loss)(*args)
    for key, slope in slopes.items():
        np.testing.assert_allclose(slope, expected[key], rtol=1e-14)


def test_transforms_in_any_nesting() -> None:
    f = as_jax(root)
    second = jax.grad(jax.grad(f))
    assert np.allclose(second(4.0), -0.25 * 4.0**-1.5)
    assert np.allclose(jax.jacfwd(jax.grad(f))(4.0), second(4.0))
    assert np.allclose(jax.grad(jax.jacfwd(f))(4.0), second(4.0))
    assert np.allclose(jax.hessian(f)(4.0), second(4.0))
    assert np.allclose(jax.jit(jax.grad(second))(4.0), 3 / 8 * 4.0**-2.5)

    points = jnp.array([2.0, 4.0, 9.0])
    slopes = 0.5 / np.sqrt(points)
    assert np.allclose(jax.vmap(jax.grad(f))(points), slopes)
    assert np.allclose(jax.grad(lambda a: jax.vmap(f)(a).sum())(points), slopes)
    assert np.allclose(jax.jit(jax.vmap(jax.vmap(f)))(points[:, None]), np.sqrt(points)[:, None])
    assert np.allclose(jax.vmap(second)(points), -0.25 * points**-1.5)
    assert np.allclose(jax.jacrev(jax.vmap(f))(points), np.diag(slopes))
    assert np.allclose(jax.jacfwd(jax.vmap(f))(points), np.diag(slopes))

    value, linear = jax.linearize(jax.vmap(f), points)
    assert np.allclose(value, np.sqrt(points))
    assert np.allclose(linear(jnp.ones(3)), slopes)
    (transposed,) = jax.linear_transpose(linear, points)(jnp.ones(3))
    assert np.allclose(transposed, slopes)

    total = jax.checkpoint(lambda a: f(a) ** 3)
    assert np.allclose(jax.grad(total)(4.0), 1.5 * 2.0)

    def scanned(a: Any) -> Any:
        return jax.lax.scan(lambda c, x: (f(c + x), c), a, points)[0]

    def unrolled(a: Any) -> Any:
        for x in points:
            a = jnp.sqrt(a + x)
        return a

    assert np.allclose(jax.grad(scanned)(2.0), jax.grad(unrolled)(2.0))
    assert np.allclose(jax.hessian(scanned)(2.0), jax.hessian(unrolled)(2.0))
    looped = jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1])), (0, 256.0))
    assert np.isclose(looped[1], 2.0)


def test_batches_of_some_arguments() -> None:
    def powers(x: Any, n: Any) -> Any:
        y = np.ones_like(x)
        for _ in range(n):
            y = y * x
        return y

    f = as_jax(powers)
    x, n = jnp.array([1.0, 2.0, 3.0]), jnp.array([0, 2, 5])
    assert jax.vmap(f)(x, n).tolist() == [1.0, 4.0, 243.0]
    assert jax.vmap(f, in_axes=(None, 0))(x, n).tolist() == [(x**k).tolist() for k in (0, 2, 5)]
    assert jax.vmap(f, in_axes=(0, None), out_axes=1)(x[None], 2).tolist() == [[1.0], [4.0], [9.0]]
    slopes = jax.vmap(jax.grad(f), in_axes=(0, None))(x, 2)
    assert slopes.tolist() == [2.0, 4.0, 6.0]
    both = jax.vmap(lambda x, n: jax.jvp(lambda x: f(x, n), (x,), (1.0,))[1])(x, n)
    assert both.tolist() == [0.0, 4.0, 405.0]


def test_integers_have_no_tangents() -> None:
    def halvings(x: Any) -> Any:
        n = 0
        while x > 1.0:
            x, n = x / 2, n + 1
        return x, n

    f = as_jax(halvings)
    (x, n), (dx, dn) = jax.jvp(f, (12.0,), (1.0,))
    assert (x, n, dx) == (0.75, 4, 1 / 16)
    assert dn.dtype == jax.dtypes.float0
    assert jax.grad(lambda x: f(x)[0] * f(x)[1])(12.0) == 4 / 16


def test_trees_of_both_are_taken() -> None:
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class State:
        x: Any
        v: Any

    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    wend.tree.register(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))

    def step(state: State, pair: Pair, *, mode: str, scale: Any = None) -> Any:
        factor = 2.0 if mode == "double" else 1.0
        return State(state.x + factor * state.v, state.v * pair.a), {"pair": Pair(pair.b, None)}

    f = as_jax(step)
    state, rest = f(State(1.0, 2.0), Pair(3.0, 4.0), mode="double")
    assert isinstance(state, State)
    assert (state.x, state.v, rest["pair"].a, rest["pair"].b) == (5.0, 6.0, 4.0, None)
    assert f(State(1.0, 2.0), Pair(3.0, 4.0), mode="single")[0].x == 3.0
    jitted = jax.jit(lambda state: f(state, Pair(3.0, 4.0), mode="single")[0])
    assert jitted(State(1.0, 2.0)).v == 6.0


def test_numbers_are_as_weak_as_in_jax() -> None:
    f = as_jax(lambda x, y: x * y)
    assert f(np.float32(2.0), 3.0).dtype == np.float32
    assert jax.jit(f)(np.float32(2.0), 3.0).dtype == np.float32
    assert f(np.float32(2.0), np.float64(3.0)).dtype == np.float64


def test_without_64_bits() -> None:
    jax.config.update("jax_enable_x64", False)

    def counted(x: Any) -> Any:
        n = 0
        while x > 1.0:
            x, n = x / 2, n + 1
        return x, n

    x, n = jax.jit(as_jax(counted))(12.0)
    assert (x.dtype, n.dtype) == (np.float32, np.int32)
    assert jax.grad(lambda x: as_jax(counted)(x)[0])(12.0).dtype == np.float32
    weights = np.ones(3)
    with pytest.raises(wend.WendError, match="result 0 is float64, which is not taken"):
        as_jax(lambda x: x * weights)(2.0)
    assert not jax.config.jax_enable_x64


total = wend.Variable(0.0, name="total")


def assigns(x: Any) -> Any:
    total.assign_add(x[0])
    return x


def writes(x: Any) -> Any:
    x[0] = 1.0
    return x


def prints(x: Any) -> Any:
    print(x)
    return x


def grows(x: Any) -> Any:
    return x[x > 0.0]


@pytest.mark.parametrize(
    ("fun", "text"),
    [
        (assigns, "it uses Variable 'total'"),
        (lambda x: x * total.value, "it uses Variable 'total'"),
        (writes, "an argument is changed in place"),
        (prints, "it prints, or calls Python"),
        (grows, "the size of result 0 is known to a run only"),
    ],
)
def test_what_is_refused(fun: Any, text: str) -> None:
    for call in (as_jax(fun), jax.jit(as_jax(fun)), jax.grad(lambda x: as_jax(fun)(x).sum())):
        with pytest.raises(wend.WendError, match=text):
            call(np.ones(2))


def test_errors_have_the_text_and_the_line() -> None:
    def checked(x: Any) -> Any:
        if x < 0.0:
            raise ValueError(f"{x} is negative")
        return x * 2.0

    f = jax.jit(as_jax(checked))
    assert f(1.0) == 2.0
    with pytest.raises(Exception, match=r"ValueError: -1.0 is negative\nraised at .*test_as_jax"):
        f(-1.0).block_until_ready()
    assert f(2.0) == 4.0


@pytest.mark.parametrize(
    "form",
    [
        lambda fun: as_jax(wend.vmap(fun)),
        lambda fun: jax.jit(as_jax(wend.vmap(fun))),
        lambda fun: jax.vmap(as_jax(fun)),
        lambda fun: jax.grad(lambda a: as_jax(wend.vmap(fun))(a).sum()),
    ],
)
def test_errors_in_maps_tell_the_first_element(form: Any) -> None:
    table = np.linspace(0.5, 2.0, 3)
    call = form(lambda a: np.linalg.inv(a).sum() * table[int(a[0, 1])])
    a = np.stack([np.eye(2)] * 6)
    jax.block_until_ready(call(a))
    a[4] = 1.0
    a[2, 0, 1] = 5.0
    for _ in range(2):
        with pytest.raises(Exception, match=r"IndexError: index 5 .*\n.*\nin element 2 of vmap"):
            jax.block_until_ready(call(a))
    a[2, 0, 1] = 0.0
    with pytest.raises(Exception, match=r"LinAlgError: Singular.*\n.*\nin element 4 of vmap"):
        jax.block_until_ready(call(a))
