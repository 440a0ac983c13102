"""Calls of one trace: what it has bound may be left out; anything else is refused by name."""

from __future__ import annotations

import gc
import re

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.errors import LeakedValueError, StructureError, TypeMismatchError

F64 = wend.TensorSpec([], "float64")


def test_static_arguments_are_bound():
    """T102."""
    fun = wend.function(lambda x, y: x + y, static_argnames="y")
    concrete = fun.get_concrete_function(F64, 2.0)
    assert concrete(5) == concrete(5.0) == concrete(x=5.0) == 7.0
    assert concrete(5.0, 2.0) == concrete(5.0, y=2.0) == 7.0
    with pytest.raises(TypeMismatchError, match=r"was traced for y: 2.0, given 3.0"):
        concrete(5.0, 3.0)
    with pytest.raises(TypeError, match=r"was traced for x: f64\[\], given i64\[\]"):
        concrete(np.int64(5))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        concrete()
    assert fun.trace_count == 1


def test_strings_objects_and_none_are_bound():
    marker = object()

    @wend.function
    def fun(x, unit, options=None, *, how, scale=2.0):
        assert options == {"deep": None, "flag": "yes"}
        assert how is marker
        return x * {"m": 1.0, "km": 1000.0}[unit] * scale

    class Marker:
        pass

    marker = Marker()
    concrete = fun.get_concrete_function(F64, "km", {"deep": None, "flag": "yes"}, how=marker)
    assert concrete(3.0) == concrete(3.0, "km") == concrete(3.0, how=marker) == 6000.0
    with pytest.raises(TypeMismatchError, match=r"was traced for how: <.*, given <"):
        concrete(3.0, how=Marker())
    with pytest.raises(TypeMismatchError, match=r"options\['flag'\]: 'yes', given 'no'"):
        concrete(3.0, options={"deep": None, "flag": "no"})


def test_bound_arguments_before_traced_ones_are_given_by_keyword():
    fun = wend.function(lambda n, x: x**n, static_argnums=0)
    concrete = fun.get_concrete_function(2, F64)
    assert concrete(x=3.0) == concrete(2, 3.0) == 9.0
    with pytest.raises(TypeMismatchError, match=r"was traced for n: 2, given 3\.0"):
        concrete(3.0, 4.0)


class Model:
    def __init__(self, weight):
        self.weight = weight

    @wend.function
    def scaled(self, x, power="one"):
        return self.weight * (x if power == "one" else x * x)


def test_methods_are_called_without_their_object():
    a, b = Model(2.0), Model(3.0)
    concrete = a.scaled.get_concrete_function(F64, "two")
    assert concrete(3.0) == concrete(a, 3.0) == concrete(3.0, power="two") == 18.0
    with pytest.raises(TypeError):
        concrete(b, 3.0)
    assert a.scaled.concrete_functions()[0](3.0) == 18.0
    _, run = concrete.forward(3.0)
    assert concrete.backward(run, 1.0) == (None, 12.0, None)


def test_an_object_that_is_gone_is_told():
    a = Model(2.0)
    concrete = a.scaled.get_concrete_function(F64, "two")
    del a
    gc.collect()
    with pytest.raises(LeakedValueError, match="the object of the method scaled is gone"):
        concrete(3.0)


def test_numbers_of_python_are_cast_as_numpy_casts_them():
    fun = wend.function(lambda x, k: x * k)
    single = fun.get_concrete_function(wend.TensorSpec([2], "float32"), wend.TensorSpec([], "i4"))
    found = single(np.ones(2, np.float32), 3)
    assert (found.dtype, found.tolist()) == (np.dtype(np.float64), [3.0, 3.0])
    with pytest.raises(TypeMismatchError, match=r"k: i32\[\], given f64\[\] \(weak\)"):
        single(np.ones(2, np.float32), 3.0)
    with pytest.raises(TypeMismatchError, match=r"x: f32\[2\], given i64\[\] \(weak\)"):
        single(1, 3)


def test_sizes_that_are_unknown_may_be_any():
    concrete = wend.function(wnp.sum).get_concrete_function(wend.TensorSpec([None], "float64"))
    assert concrete(np.ones(7)) == 7.0
    with pytest.raises(TypeMismatchError, match=r"f64\[\w+\], given f64\[2,2\]"):
        concrete(np.ones((2, 2)))


def test_signatures_given_beforehand_cast():
    fun = wend.function(lambda x: x * 2, input_signature=[wend.TensorSpec([None], "float32")])
    concrete = fun.get_concrete_function()
    assert concrete([1, 2, 3]).tolist() == [2.0, 4.0, 6.0]


static = wend.function(lambda x, y, *, z="a": x + y, static_argnums=1, name="static")
made = static.get_concrete_function({"p": F64}["p"], 2.0, z="b")
trees = wend.function(lambda p: p["a"] + p["b"], name="trees")
tree = trees.get_concrete_function({"a": F64, "b": F64})

MISTAKES = {
    "another static value": lambda: made(1.0, 3.0),
    "another keyword": lambda: made(1.0, z="c"),
    "an array of another dtype": lambda: made(np.float32(1.0)),
    "an array of another shape": lambda: made(np.ones(3)),
    "an argument too many": lambda: made(1.0, 2.0, 3.0),
    "another structure": lambda: tree({"a": 1.0}),
    "a string for an array": lambda: tree({"a": 1.0, "b": "x"}),
    "a float in place of an integer": lambda: wend.function(
        lambda n: n * 2, name="counted"
    ).get_concrete_function(3)(2.5),
}


def test_mistakes_are_told_by_name(golden):
    told = []
    for name, mistake in MISTAKES.items():
        with pytest.raises((StructureError, TypeError)) as caught:
            mistake()
        text = re.sub(r"0x[0-9a-f]+", "ADDRESS", str(caught.value))
        told.append(f"# {name}\n{type(caught.value).__name__}: {text}\n")
    golden.check("errors/trace_inputs.txt", "\n".join(told))
