"""Functions can be pickled and copied: by name, or without their traces."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import wend


@wend.function
def doubled(x):
    return x * 2


def tripled(x, n=1):
    return x * 3 * n


class Model:
    def __init__(self, k):
        self.k = k

    @wend.function
    def scaled(self, x):
        return self.k * x


def again(x):
    return pickle.loads(pickle.dumps(x))


def test_a_decorated_function_is_what_its_name_stands_for():
    assert doubled(1.0) == 2.0
    assert again(doubled) is doubled
    assert copy.deepcopy(doubled) is copy.copy(doubled) is doubled
    assert again(Model.scaled) is Model.scaled


def test_another_function_is_made_anew():
    fun = wend.function(
        tripled, static_argnames="n", reduce_retracing=False, backend="numpy", name="f"
    )
    fun(1.0, 2)
    found = again(fun)
    assert (found.name, found.backend, found.reduce_retracing) == ("f", "numpy", False)
    assert (found(1.0, 2), found(1.0, 3), found.trace_count) == (6.0, 9.0, 2)
    assert fun.trace_count == 1
    specified = again(wend.function(tripled, input_signature=[wend.TensorSpec([None])]))
    assert specified([1.0, 2.0]).tolist() == [3.0, 6.0]


def test_methods():
    model = Model(2.0)
    model.scaled(1.0)
    found = again(model.scaled)
    assert (found(3.0), found.instance.k, found.instance is model) == (6.0, 2.0, False)
    assert copy.deepcopy(model).scaled(np.ones(2)).tolist() == [2.0, 2.0]


def test_what_python_cannot_pickle():
    with pytest.raises((pickle.PicklingError, AttributeError)):
        again(wend.function(lambda x: x))
