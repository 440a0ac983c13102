"""Places of variables: held weakly, and settled after a run."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.base.errors import VariableError
from wend.ir import parse, to_text
from wend.runtime.storage import PassedStorage, bind_variables


def test_it_does_not_keep_its_variable():
    storage = wend.Variable(1.0, name="v").storage
    assert repr(storage) == "the place of a variable that is gone"
    for use in (lambda: storage.owner, lambda: storage.put(2.0)):
        with pytest.raises(VariableError, match=r"'v', made at .* is gone"):
            use()


def test_settling_copies_what_others_may_change():
    v, mine, own = wend.Variable(np.zeros(3)), np.arange(3.0), np.arange(3.0)
    for array, given, is_copied in [
        (mine, [mine], True),
        (mine[::-1], [1.0, mine], True),
        (own, [mine], False),
        (v.value, [v.value, mine], False),
    ]:
        v.storage.put(array)
        v.storage.copy_shared(given)
        assert np.shares_memory(v.value, array) is not is_copied
        assert not v.value.flags.writeable
    v = wend.Variable(1.0)
    v.storage.put(np.array(2.0))
    v.storage.copy_shared([mine])
    assert type(v.value) is np.float64


def test_who_is_passed():
    v, w, stands = wend.Variable(1.0), wend.Variable(2.0), wend.Variable(0.0)
    storage = PassedStorage(stands, RuntimeError)
    assert storage.owner is stands
    with bind_variables({storage: v}):
        storage.put(5.0)
        with bind_variables({storage: w}):
            storage.put(6.0)
        assert storage.owner is v
    assert (v.value, w.value, stands.value) == (5.0, 6.0, 0.0)


def test_graphs_with_stores_print_and_parse():
    """D20: places are entries of the side table."""
    v, w = wend.Variable(1.0), wend.Variable(2.0)
    fun = wend.function(lambda x: (v.assign(x), w.assign(x), v.assign_add(w))[0] * 1.0)
    graph = fun.get_concrete_function(3.0).graph
    table: list = []
    text = to_text(graph, table=table)
    assert table == [v.storage, w.storage]
    again = parse(text, table=table)
    assert to_text(again) == text
    assert [node.attrs["variable"] for node in again.nodes if node.op.name == "store"] == [
        v.storage,
        w.storage,
        v.storage,
    ]
