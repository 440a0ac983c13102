"""Stores in views are found through the nodes that put the views back."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.graphs import traced
from wend.passes.put_back import read_back, store_of


def through_a_transpose(y, i):
    y.T[1, i] = 5.0
    return y


def through_rows(y, i):
    row = y[::-1][i]
    row[2] = 5.0
    return y


def at_a_known_row(y, i):
    y.T[1][i] = 5.0
    return y


@pytest.mark.parametrize("fun", [through_a_transpose, through_rows, at_a_known_row])
def test_the_array_of_a_store(fun):
    graph = traced(fun, np.zeros((4, 3)), 2)
    found = [x for node in graph.nodes if (x := store_of(node)) is not None]
    assert found
    store, array = found[-1]
    assert store.op.updates == 0
    assert array is graph.params[0]


def test_what_is_put_into_an_array_of_its_own_is_no_view():
    def fun(y, i):
        z = y.T * 1.0
        z[1, i] = 5.0
        return z

    graph = traced(fun, np.zeros((4, 3)), 2)
    assert all(store_of(node) is None for node in graph.nodes)


def test_a_view_is_read_back():
    graph = traced(through_rows, np.zeros((4, 3)), 2)
    puts = [node for node in graph.nodes if store_of(node) is not None]
    assert all(read_back(put) is not None for put in puts)
