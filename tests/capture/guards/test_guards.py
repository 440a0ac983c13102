"""What the functions of a trace read of the Python around them."""

from __future__ import annotations

import gc
import types
import weakref

import numpy as np

import wend
import wend.numpy as wnp
from wend.backends.fastcall import MISSING
from wend.capture.guards.guards import (
    guard_argument,
    guard_uncaptured,
    include_guards,
    record_guards,
)
from wend.ir.builder import Builder

RATE = 0.5
OPTIONS = types.SimpleNamespace(rate=2.0, deep=types.SimpleNamespace(k=1.0))
WEIGHTS = np.ones(2)
COUNT = 0
SEEN = []


def scaled(x):
    return x * RATE + OPTIONS.deep.k + np.sum(WEIGHTS) + wnp.sin(x)


def counting(x):
    global COUNT
    COUNT += 1
    SEEN.append(x)
    return x * RATE


def read(fun, *args, owner=MISSING):
    with record_guards() as recorder:
        if owner is not MISSING:
            guard_argument(owner, "owner")
        guard_uncaptured(fun, owner)
        fun(*args)
    return recorder.finished()


def names(reads):
    """Return the names of what was read, without functions, modules and containers around."""
    ignored = ("np", "wnp", "OPTIONS", "OPTIONS.deep")
    return {r.name for r in reads.reads if not r.name.endswith("()") and r.name not in ignored}


def test_names_and_values():
    found = read(scaled, 1.0)
    contents = "the contents of WEIGHTS"  # as code that is not captured may look at them
    assert names(found) == {"RATE", "OPTIONS.deep.k", "WEIGHTS", contents}
    assert found.texts() == ["RATE = 0.5", "OPTIONS.deep.k = 1.0"]
    assert found.changes() == []


def test_what_a_trace_changes_itself_is_its_own_doing():
    assert names(read(counting, 1.0)) == {"RATE"}


def test_changes(monkeypatch):
    found = read(scaled, 1.0)
    monkeypatch.setitem(globals(), "RATE", 0.25)
    monkeypatch.setattr(OPTIONS, "deep", types.SimpleNamespace())
    monkeypatch.setitem(globals(), "WEIGHTS", np.zeros(2))
    assert [str(change) for change in found.changes()] == [
        "RATE is 0.25, not 0.5",
        "OPTIONS.deep is another (a SimpleNamespace)",
        "WEIGHTS is another (an array of shape (2,))",
    ]


def test_an_array_that_is_changed_in_place():
    weights = np.ones(2)

    def fun(x):
        return x * weights

    guards = read(fun, 1.0)
    weights[0] = 5.0
    assert [str(change) for change in guards.changes()] == [
        "the contents of weights is another (an array of shape (2,))"
    ]


class Model:
    scale = 3.0

    def __init__(self):
        self.rate, self.layers = 0.5, [1.0, 2.0]

    @property
    def twice(self):
        return 2 * self.rate

    def run(self, x):
        return self.scale * self.rate * x + self.layers[0] + self.twice + self.helper()

    def helper(self):
        return 0.0


def test_attributes_of_parameters():
    model = Model()
    found = read(Model.run, model, 1.0, owner=model)
    methods = {"self.twice", "self.helper"}  # no getter was run
    assert names(found) == {"self.scale", "self.rate", "self.layers", *methods}
    model.layers[1] = 7.0
    model.scale = 4.0
    assert [str(change) for change in found.changes()] == [
        "self.scale is 4.0, not 3.0",
        "self.layers is [1.0, 7.0], not [1.0, 2.0]",
    ]
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert (reference(), found.changes()) == (None, [])


def test_methods_and_getters_that_captured_code_calls():
    model = Model()
    fun = wend.function(lambda x: model.run(x))
    fun(1.0)
    (line,) = [line for line in fun.explain().split("\n") if line.startswith("   reads ")]
    assert line.strip() == "reads model.scale = 3.0, model.rate = 0.5, model.layers[0] = 1.0"


def test_objects_that_run_code_when_they_are_looked_at():
    class Proxy:
        def __getattribute__(self, name):
            raise ZeroDivisionError

    class Slotted:
        __slots__ = ("rate",)

    proxy, slotted = Proxy(), Slotted()

    def fun(x):
        return x or (proxy.rate, slotted.rate)

    assert names(read(fun, 1.0)) >= {"proxy", "slotted"}
    found = names(read(lambda p, x: x or p.rate, proxy, 1.0, owner=proxy))
    assert found <= {"ZeroDivisionError", "Proxy.__getattribute__"}


def test_functions_are_not_kept_alive():
    def make(rate):
        return lambda x: x * rate

    fun = make(2.0)
    found = read(fun, 1.0)
    reference = weakref.ref(fun)
    del fun
    assert (reference(), found.changes()) == (None, [])


def test_a_closure_that_is_not_bound_yet():
    def fun(x):
        return x if x else later

    found = read(fun, 1.0)
    later = 1.0
    assert (names(found), found.changes(), later) == (set(), [], 1.0)


def test_traces_include_what_they_call():
    inner = read(scaled, 1.0)
    with record_guards() as outer:
        include_guards(inner)
    assert names(outer.finished()) == names(inner)
    include_guards(inner)  # outside of a trace: nothing to tell


def test_what_another_thread_changes_during_a_trace_fails_its_guard(monkeypatch):
    emit = Builder.emit_node

    def emit_in_turn(self, op, *operands, **attrs):
        if op.name == "sin":
            monkeypatch.setitem(globals(), "RATE", 3.0)
        return emit(self, op, *operands, **attrs)

    compiled = wend.function(lambda x: x * RATE + wnp.sin(0.0 * x), backend="numpy")
    monkeypatch.setattr(Builder, "emit_node", emit_in_turn)
    assert compiled(1.0) == 0.5
    monkeypatch.setattr(Builder, "emit_node", emit)
    assert (compiled(1.0), compiled.trace_count) == (3.0, 2)
