"""`jvp`: its interface. What it computes is in `tests/programs`."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.traces import at_trace

import wend
import wend.numpy as wnp
from wend.base.errors import NotDifferentiableError, ShapeError, StructureError, TypeMismatchError


def test_value_and_tangent():
    value, tangent = wend.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.5))
    assert (value, tangent) == (6.0, 4.0)
    assert type(value) is type(tangent) is np.float64


def test_pytrees():
    def fun(p, n):
        return {"y": p["w"] * p["s"][0] * n, "n": n, "c": (np.float32(2), None)}

    p, t = {"w": np.arange(3.0), "s": (2.0, None)}, {"w": np.ones(3), "s": (1.0, None)}
    value, tangent = wend.jvp(fun, (p, 3), (t, None))
    np.testing.assert_array_equal(value["y"], [0, 6, 12])
    np.testing.assert_array_equal(tangent["y"], [6, 9, 12])
    assert tangent["n"] is None
    assert tangent["c"] == (0.0, None)
    assert tangent["c"][0].dtype == np.float32


def test_integers_inside_pytrees():
    def fun(p):
        return p["x"] * p["n"] * p["i"][1]

    p = {"x": 2.0, "n": 3, "i": np.arange(2), "none": None}
    t = {"x": 1.0, "n": None, "i": None, "none": None}
    assert wend.jvp(fun, (p,), (t,)) == (6.0, 3.0)


def test_an_argument_without_floats_has_none_for_a_tangent():
    def fun(x, sizes):
        return x * sizes["a"] * sizes["b"][0]

    assert wend.jvp(fun, (2.0, {"a": 3, "b": [1]}), (1.0, None)) == (6.0, 3.0)


def test_python_integers_that_move_are_floats():
    assert wend.jvp(lambda x: x * x, (3,), (1,)) == (9.0, 6.0)
    assert wend.jvp(lambda p: p[0] * p[1], ((3, 2),), ((1.0, None),)) == (6.0, 2.0)
    assert wend.function(lambda x: wend.jvp(lambda x: x * x, (x,), (1.0,)))(3) == (9.0, 6.0)


def test_has_aux():
    value, tangent, aux = wend.jvp(lambda x: (x * x, {"n": 3}), (2.0,), (1.0,), has_aux=True)
    assert (value, tangent, aux) == (4.0, 4.0, {"n": 3})
    with pytest.raises(StructureError, match="pair"):
        wend.jvp(lambda x: x, (2.0,), (1.0,), has_aux=True)


def test_dtypes():
    value, tangent = wend.jvp(lambda x: x * 2, (np.float32(1),), (1,))
    assert value.dtype == tangent.dtype == np.float32
    value, tangent = wend.jvp(lambda x: x.astype("f8") * 2, (np.float32(1),), (np.float32(1),))
    assert value.dtype == tangent.dtype == np.float64


def test_what_does_not_move_has_zeros():
    _value, tangent = wend.jvp(lambda x: (wnp.floor(x), wend.stop_gradient(x)), (1.5,), (1.0,))
    assert tangent == (0.0, 0.0)
    _, tangent = wend.jvp(lambda x: np.ones(2), (1.5,), (1.0,))
    np.testing.assert_array_equal(tangent, [0, 0])


def test_results_are_the_callers():
    x, t = np.ones(2), np.ones(2)
    (a, b), (ta, tb) = wend.jvp(lambda x: (x, x), (x,), (t,))
    for array in (a, b, ta, tb):
        array[...] = 5.0
        np.testing.assert_array_equal(x, [1, 1])
        np.testing.assert_array_equal(t, [1, 1])
        array[...] = 1.0
    ta[...] = 7.0
    np.testing.assert_array_equal(tb, [1, 1])


def test_a_decorated_function_is_traced_once():
    python = []
    note = at_trace(python)

    @wend.function
    def fun(x):
        note(x)
        return x * x

    assert [wend.jvp(fun, (x,), (1.0,))[1] for x in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    assert len(python) == fun.trace_count == 1


def test_static_arguments():
    fun = wend.function(lambda x, power: x**power, static_argnums=1)
    assert wend.jvp(fun, (3.0, 2), (1.0, None)) == (9.0, 6.0)
    with pytest.raises(NotDifferentiableError, match="power has a tangent"):
        wend.jvp(fun, (3.0, 2), (1.0, 1.0))


def test_captured_values_do_not_move():
    captured = np.array([2.0, 3.0])
    _value, tangent = wend.jvp(lambda x: x * captured, (np.ones(2),), (np.ones(2),))
    np.testing.assert_array_equal(tangent, captured)


def test_closures_over_traced_values_move_from_outside():
    def outer(x):
        y = x * 2.0
        return wend.jvp(lambda z: z * z * y, (x,), (1.0,))[1]  # 2zy at z = x: 4x²

    assert wend.function(outer)(3.0) == 36.0
    assert wend.grad(outer)(3.0) == wend.jvp(outer, (3.0,), (1.0,))[1] == 24.0


def test_in_the_body_of_a_loop():
    def fun(v):
        return v * v * v

    def descend(x):
        return wend.fori_loop(0, 5, lambda i, x: x - 0.1 * wend.jvp(fun, (x,), (1.0,))[1], x)

    def plain(x):
        return wend.fori_loop(0, 5, lambda i, x: x - 0.1 * 3.0 * x * x, x)

    assert descend(0.5) == pytest.approx(plain(0.5), rel=1e-12)
    assert wend.grad(descend)(0.5) == pytest.approx(wend.grad(plain)(0.5), rel=1e-12)
    assert wend.hessian(descend)(0.5) == pytest.approx(wend.hessian(plain)(0.5), rel=1e-12)


def test_plain_python_loops_are_captured():
    def root(a):
        x = a
        while wnp.abs(x * x - a) > 1e-12 * a:
            if x > 0:
                x = 0.5 * (x + a / x)
        return x

    value, tangent = wend.jvp(root, (2.0,), (1.0,))
    np.testing.assert_allclose((value, tangent), (2**0.5, 0.5 / 2**0.5), rtol=1e-12)


def test_complex_numbers():
    """Tangents are complex as their primals; D19."""
    z, t = 1.0 + 2.0j, 0.5 - 1.0j
    _value, tangent = wend.jvp(lambda z: z * z, (z,), (t,))
    np.testing.assert_allclose(tangent, 2 * z * t)
    _, tangent = wend.jvp(lambda z: wnp.abs(z), (z,), (t,))
    np.testing.assert_allclose(tangent, (z.conjugate() * t).real / abs(z))
    assert tangent.dtype == np.float64
    _, tangent = wend.jvp(lambda x: x * (1 + 1j), (2.0,), (1.0,))
    assert tangent == 1 + 1j


def test_effects_happen_once(capsys):
    def fun(x):
        wend.print("x is {}", x)
        return x * x

    assert wend.jvp(fun, (2.0,), (1.0,)) == (4.0, 4.0)
    assert capsys.readouterr().out.count("x is") == 1


def test_unknown_sizes():
    spec = wend.TensorSpec

    @wend.function(input_signature=[spec([None]), spec([None])])
    def fun(x, t):
        return wend.jvp(lambda x: wnp.sum(x * x), (x,), (t,))[1]

    assert fun(np.arange(3.0), np.ones(3)) == 6.0
    with pytest.raises(ValueError, match="reshape"):
        fun(np.arange(3.0), np.ones(1))


@pytest.mark.parametrize(
    ("primals", "tangents", "error", "message"),
    [
        (2.0, (1.0,), TypeError, r"primals must be a tuple, not float.*\n.*\(primals,\)"),
        ((2.0,), 1.0, TypeError, "tangents must be a tuple"),
        ((2.0, 3.0), (1.0,), StructureError, r"2 primals and 1 tangents"),
        (({"a": 2.0},), ({"b": 2.0},), StructureError, r"\[0\]\['a'\] is missing"),
        (({"a": 2.0},), (2.0,), StructureError, r"\[0\]: a dict against an array or number"),
        ((2.0,), (None,), StructureError, r"tangent of x is None, x is f64\[\]\n.*zeros"),
        ((2.0,), ((1.0,),), StructureError, r"tangent of x is a tuple"),
        (({"a": [2.0]},), ({"a": [None]},), StructureError, r"tangent of x\['a'\]\[0\] is None"),
        ((np.ones(2),), (np.ones(3),), ShapeError, r"tangent of x is f64\[3\], x is f64\[2\]"),
        ((np.ones(2),), (1.0,), ShapeError, r"is f64\[\], x is f64\[2\]"),
        ((np.float32(2),), (np.float64(1),), TypeMismatchError, r"astype\('float32'\)"),
        ((2.0,), (1j,), TypeMismatchError, r"is c128\[\], x is f64\[\]"),
        ((np.arange(2),), (np.ones(2),), NotDifferentiableError, r"x has a tangent.*\n.*None"),
        ((np.int64(2),), (1.0,), NotDifferentiableError, r"give None"),
        ((True,), (1.0,), NotDifferentiableError, r"x has a tangent but is no float"),
    ],
    ids=str,
)
def test_mistakes(primals, tangents, error, message):
    def first(x, *rest):
        return wnp.sum(wnp.asarray(1.0))

    with pytest.raises(error, match=message):
        wend.jvp(first, primals, tangents)


def test_an_argument_changed_in_place_is_refused():
    def fun(x):
        x[0] = 2.0
        return x

    with pytest.raises(NotDifferentiableError, match="jvp of fun: it changes an argument"):
        wend.jvp(fun, (np.ones(2),), (np.ones(2),))
