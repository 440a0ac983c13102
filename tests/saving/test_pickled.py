"""Traces in pickles."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import wend
from tests.helpers.saved import again
from wend.base.errors import SaveError


def test_a_concrete_function_is_pickled_with_its_variables():
    total = wend.Variable(1.0)
    concrete = wend.function(
        lambda x, n: total.assign_add(x * n).value, static_argnames="n", name="add"
    ).get_concrete_function(wend.TensorSpec([]), 3)
    copy = pickle.loads(pickle.dumps(concrete))
    assert isinstance(copy, wend.ConcreteFunction)
    assert copy(2.0) == 7.0
    assert copy(2.0) == 13.0
    assert total.value == 1.0
    assert wend.ir.equal(copy.graph, concrete.graph) or str(copy.graph) == str(concrete.graph)
    assert repr(copy) == repr(concrete)


def test_a_function_of_a_file_is_pickled_with_its_traces():
    fun = wend.function(lambda x: x * np.arange(3.0), name="fun")
    fun(np.ones(3))
    copy = pickle.loads(pickle.dumps(again(fun=fun).fun))
    assert copy(np.full(3, 2.0)).tolist() == [0.0, 2.0, 4.0]


def test_one_that_calls_python_is_refused():
    fun = wend.function(lambda x: wend.py_function(abs, 0.0, x), name="fun")
    concrete = fun.get_concrete_function(1.0)
    with pytest.raises(SaveError, match="fun cannot be saved, for its graph calls Python: abs"):
        pickle.dumps(concrete)
