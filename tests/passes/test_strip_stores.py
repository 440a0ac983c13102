"""Stores left out, and to other variables, at every depth."""

from __future__ import annotations

import numpy as np

import wend
from wend.backends.numpy.backend import BACKEND
from wend.ir import equal, verify
from wend.passes.cse import cse
from wend.passes.dce import dce
from wend.passes.fold import fold
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.passes.strip_stores import retarget_stores, strip_stores

V, W = wend.Variable(1.0), wend.Variable(2.0)


def nested(x, n):
    def body(i, c):
        V.assign_add(x)
        wend.cond(c > 2.0, lambda: V.assign(c), lambda: W.assign(c))
        return inner(c)

    wend.fori_loop(0, n, body, x)
    return V * W


inner = wend.function(lambda c: W.assign_add(c) * 1.0)
GIVEN = [np.float64(1.0), np.int64(4), np.float64(1.0), np.float64(2.0)]


def graph():
    return wend.function(nested).get_concrete_function(1.0, np.int64(4)).graph


def test_without_stores_values_are_the_same():
    whole = graph()
    bare = strip_stores(whole)
    verify(bare)
    assert (whole.count("store"), bare.count("store")) == (4, 0)
    assert strip_stores(bare) is bare
    V.assign(7.0)
    found = BACKEND.compile(run_passes(bare, OPTIMIZE))(GIVEN)
    assert V.value == 7.0
    assert [*found] == [*BACKEND.compile(run_passes(whole, OPTIMIZE))(GIVEN)]
    assert V.value == found[1]


def test_with_places_stores_are_to_others():
    other, whole = wend.Variable(0.0), graph()
    moved = retarget_stores(whole, {V.storage: other.storage})
    verify(moved)
    V.assign(7.0)
    found = BACKEND.compile(run_passes(moved, OPTIMIZE))(GIVEN)
    assert (V.value, other.value) == (7.0, found[1])
    assert retarget_stores(whole, {other.storage: V.storage}) is whole


def test_no_pass_loses_merges_or_moves_a_store():
    def twice(x):
        V.assign(2.0)
        V.assign(2.0)
        W.assign(2.0)
        if x > 0.0:
            V.assign(3.0)
        W.assign(x * 0.0)
        if x > 0.0:
            W.assign(V * 1.0)
        return x

    whole = wend.function(twice).get_concrete_function(1.0).graph
    places = [node.attrs["variable"] for node in whole.walk() if node.op.name == "store"]
    assert places == [V.storage, V.storage, W.storage, V.storage, W.storage, W.storage]
    for transform in (dce, cse, fold, lambda graph: run_passes(graph, OPTIMIZE)):
        after = transform(whole)
        found = [node.attrs["variable"] for node in after.walk() if node.op.name == "store"]
        assert found == places
    assert equal(whole, whole)
