"""Objects with functions as methods and variables as attributes."""

from __future__ import annotations

import threading
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.saved import again, is_same
from wend.base.errors import SaveError, TypeMismatchError


class Color(Enum):
    RED = 1


class Layer:
    def __init__(self, w):
        self.w = wend.Variable(w, name="w")

    @wend.function
    def apply(self, x):
        return wnp.tanh(self.w * x)

    @wend.function
    def never_called(self, x):
        return x

    def plain(self):
        return 1


class Model:
    __slots__ = ("__weakref__", "kind", "layers", "shared", "table")

    def __init__(self):
        self.layers = [Layer(np.ones(3)), Layer(np.full(3, 2.0))]
        self.shared = self.layers[0]
        self.table = {"mean": np.arange(3.0), ("a", 1): None}
        self.kind = "dense"

    @wend.function
    def step(self, x):
        for layer in self.layers:
            x = layer.apply(x)
        self.shared.w.assign_add(self.table["mean"])
        return x


def test_methods_and_variables():
    model = Model()
    x = np.linspace(0.0, 1.0, 3)
    model.step(x)
    for layer in model.layers:
        layer.apply(x)
    m = again(model)
    assert is_same(m.layers[1].apply(x), model.layers[1].apply(x))
    assert is_same(m.step(x), model.step(x))
    assert m.shared is m.layers[0]
    assert is_same(m.shared.w.value, model.shared.w.value)
    assert is_same(m.step(x), model.step(x))
    assert (m.kind, m.table["mean"].tolist(), m.table["a", 1]) == ("dense", [0.0, 1.0, 2.0], None)
    assert is_same(
        wend.grad(lambda v: m.step(v).sum())(x), wend.grad(lambda v: model.step(v).sum())(x)
    )


def test_what_is_not_in_the_file():
    layer = Layer(np.ones(2))
    layer.apply(np.ones(2))
    m = again(layer)
    assert repr(m) == "<loaded Layer: w, apply>"
    with pytest.raises(AttributeError, match=r"Layer\.never_called was left out when it was saved"):
        m.never_called(1.0)
    with pytest.raises(AttributeError, match=r"Layer\.plain is not in the file"):
        m.plain()
    assert not hasattr(m, "__len__")


class Fitted:
    scale = wend.Variable(3.0)
    rate = 0.5

    def __init__(self):
        self.w = wend.Variable(2.0)

    @wend.function
    def __call__(self, x):
        return self.w * x * self.scale

    @staticmethod
    @wend.function
    def doubled(x):
        return 2.0 * x

    @classmethod
    @wend.function
    def slowed(cls, x):
        return cls.rate * x

    @property
    def half(self):
        return 0.5 * self.w


class Refitted(Fitted):
    rate = 0.25


def test_what_the_class_has_is_saved_with_an_object():
    model = Refitted()
    values = model(1.0), model.doubled(1.0), model.slowed(1.0)
    m = again(model)
    assert (m(1.0), m.doubled(1.0), m.slowed(1.0)) == values == (6.0, 2.0, 0.25)
    assert (m.rate, m.scale.value, wend.grad(m)(1.0)) == (0.25, 3.0, 6.0)
    m.scale.assign(1.0)
    assert (m(1.0), model(1.0)) == (2.0, 6.0)
    assert (
        repr(again(m)) == repr(m) == "<loaded Refitted: w, rate, scale, __call__, doubled, slowed>"
    )


def test_an_object_without_a_saved_call_is_not_callable():
    layer = Layer(np.ones(2))
    layer.apply(np.ones(2))
    with pytest.raises(TypeMismatchError, match=r"Layer is not callable: the file has no __call__"):
        again(layer)(1.0)


def test_attributes_that_files_cannot_hold_are_left_out_with_a_warning():
    layer = Layer(np.ones(2))
    layer.apply(np.ones(2))
    layer.lock = threading.Lock()
    layer.score = np.tanh
    layer.folder = Path("data")
    layer.color = Color.RED
    named = r"Layer\.lock, Layer\.score, Layer\.folder and Layer\.color: left out"
    with pytest.warns(UserWarning, match=named):
        m = again(layer)
    with pytest.raises(AttributeError, match="lock was left out"):
        _ = m.lock


def test_objects_that_refer_to_each_other():
    first, second = Layer(np.ones(2)), Layer(np.zeros(2))
    first.next, second.next = second, first
    m = again(first)
    assert m.next.next is m
    assert m.next.w.value.tolist() == [0.0, 0.0]


def test_containers_load_as_such():
    fun = wend.function(lambda x: 2.0 * x, name="fun")
    fun(1.0)
    value = {"a": [fun, None], "b": (np.ones(2), 3, "text")}
    loaded = again(value)
    assert loaded["a"][0](2.0) == 4.0
    assert loaded["a"][1] is None
    assert is_same(loaded["b"][:2], value["b"][:2])
    assert loaded["b"][2] == "text"


def test_arrays_of_loaded_objects_may_be_changed():
    m = again({"a": np.zeros(2)})
    m["a"][0] = 1.0
    assert m["a"].tolist() == [1.0, 0.0]


def test_functions_with_rules_are_saved_in_functions():
    @wend.custom_vjp
    def clipped(x):
        return wnp.clip(x, -1.0, 1.0)

    clipped.defvjp(lambda x: (clipped(x), x), lambda x, ct: (ct,))
    with pytest.raises(SaveError, match="which a file cannot hold"):
        again(clipped=clipped)
    fun = wend.function(clipped)
    fun(2.0)
    assert wend.grad(again(fun=fun).fun)(2.0) == 1.0


def test_loaded_objects_are_saved_again():
    layer = Layer(np.ones(2))
    layer.apply(np.ones(2))
    twice = again(again(layer))
    assert is_same(twice.apply(np.ones(2)), layer.apply(np.ones(2)))
    assert repr(twice) == "<loaded Layer: w, apply>"
