"""Programs whose outside changes between calls: each call does what Python does then."""

from __future__ import annotations

import array
import collections
import copy
import functools
import operator
import types

import numpy as np
import pytest

import wend
import wend.numpy as wnp

PROGRAMS = {}


def program(make):
    """Register a maker of (function, change, …): the changes happen one after another."""
    PROGRAMS[make.__name__] = make
    return make


class Model:
    w = 3.0

    def __init__(self, a=1.0):
        self.a = a
        self.weights = np.array([1.0, 2.0])
        self.items = [1.0, 2.0]

    @property
    def twice(self):
        return 2 * self.a

    def run(self, x):
        return x * self.a + self.w

    def __mul__(self, x):
        return self.a * x

    def __getitem__(self, k):
        return self.items[k]

    def __len__(self):
        return len(self.items)

    def __contains__(self, k):
        return k in self.items

    def __iter__(self):
        return iter(self.items)

    def __bool__(self):
        return self.a > 2

    def __call__(self, x):
        return x + self.a


class Slotted:
    __slots__ = ("a",)


class Computed:
    def __init__(self):
        self.data = {"rate": 2.0}

    def __getattr__(self, name):
        return self.data[name]


def assign(array, key, value):
    return lambda: array.__setitem__(key, value)


def bind(name, value):
    return lambda: globals().__setitem__(name, value)


# Arrays
@program
def float_of_an_element():
    w = np.array([1.0, 2.0])
    return lambda x: float(w[0]) * x, assign(w, 0, 5.0)


@program
def item_and_tolist():
    w = np.array([1.0, 2.0])
    return lambda x: w[0].item() * x + w.tolist()[1], assign(w, 0, 5.0), assign(w, 1, 7.0)


@program
def a_branch_on_an_element():
    w = np.array([1.0, 2.0])
    return lambda x: x if w[0] > 2 else -x, assign(w, 0, 5.0), assign(w, 0, 1.0)


@program
def unpacked():
    w = np.array([1.0, 2.0])

    def fun(x):
        a, b = w
        return a * x + b

    return fun, assign(w, 0, 5.0)


@program
def a_range_of_an_element():
    n = np.array([2])

    def fun(x):
        total = 0.0
        for _ in range(n[0]):
            total = total + x
        return total + sum(range(n[0]))

    return fun, assign(n, 0, 4), assign(n, 0, 0)


@program
def a_position_and_a_size():
    n = np.array([1, 2])
    return (
        lambda x: np.array([x, 2 * x, 3 * x])[n[0]] + np.ones(n[1]).sum(),
        assign(n, 0, 2),
        assign(n, 1, 5),
    )


@program
def reductions_and_products():
    w = np.array([1.0, 2.0])
    return (
        lambda x: x * w.max() + np.exp(w).sum() + w @ w + (w > 1.5).sum(),
        assign(w, 0, 3.0),
    )


@program
def dict_of_arrays():
    weights = {"a": np.ones(2), "b": np.ones(2)}
    return (
        lambda x: x * sum((a**2).sum() for a in weights.values()),
        assign(weights["a"], 0, 4.0),
        lambda: weights.update(c=np.ones(1)),
        lambda: weights.pop("a"),
    )


@program
def zipped_arrays():
    left, right = [np.ones(2), np.ones(2)], [np.ones(2), np.ones(2)]

    def fun(x):
        total = 0.0
        for a, b in zip(left, right, strict=True):
            total = total + (a * b).sum() * x
        return total

    return fun, assign(left[0], 0, 4.0), lambda: (left.append(np.ones(2)), right.append(np.ones(2)))


@program
def two_names_of_one_array():
    w = np.array([1.0, 2.0])
    v = w
    return lambda x: (w * x).sum() + v[0], assign(w, 0, 5.0)


@program
def a_mask():
    mask = np.array([True, False, True])
    return lambda x: (np.array([x, 2 * x, 3 * x])[mask]).sum(), assign(mask, 1, True)


@program
def an_array_of_objects():
    names = np.array(["a", "b"])
    return lambda x: x if names[0] == "a" else -x, assign(names, 0, "c")


@program
def an_array_bound_anew():
    model = Model()
    return (
        lambda x: (model.weights * x).sum(),
        lambda: setattr(model, "weights", np.array([5.0, 6.0, 7.0])),
    )


# Attributes
@program
def attributes_of_objects_and_classes():
    model = Model()
    return (
        lambda x: x * model.w + model.a,
        lambda: setattr(model, "a", 2.0),
        lambda: setattr(model, "w", 7.0),
        lambda: delattr(model, "w"),
    )


@program
def a_chain_by_a_local():
    outer = types.SimpleNamespace(b=types.SimpleNamespace(w=2.0))

    def fun(x):
        t = outer.b
        return t.w * x

    return (
        fun,
        lambda: setattr(outer.b, "w", 3.0),
        lambda: setattr(outer, "b", types.SimpleNamespace(w=9.0)),
    )


@program
def objects_in_a_list():
    models = [Model(1.0), Model(2.0)]
    return (
        lambda x: x * sum(m.a for m in models),
        lambda: setattr(models[0], "a", 5.0),
        lambda: models.append(Model(9.0)),
    )


@program
def a_property():
    model = Model()
    return lambda x: x * model.twice, lambda: setattr(model, "a", 5.0)


@program
def slots():
    slotted = Slotted()
    slotted.a = 1.0
    return lambda x: x * slotted.a, lambda: setattr(slotted, "a", 5.0)


@program
def a_getattr_hook():
    computed = Computed()
    return lambda x: x * computed.rate, assign(computed.data, "rate", 5.0)


@program
def names_that_are_computed():
    model = Model()
    names = ["a"]
    return (
        lambda x: x * getattr(model, names[0]) + operator.attrgetter("w")(model),
        lambda: setattr(model, "a", 5.0),
        assign(names, 0, "w"),
        lambda: setattr(model, "w", 1.5),
    )


@program
def absent_attributes():
    model = Model()
    return (
        lambda x: x * getattr(model, "z", 1.0) + hasattr(model, "y"),
        lambda: setattr(model, "z", 5.0),
        lambda: setattr(model, "y", 5.0),
        lambda: delattr(model, "y"),
    )


@program
def methods_and_operators():
    model = Model()
    return (
        lambda x: model.run(x) + model * x + model[0] + len(model) + (2.0 in model) + model(x),
        lambda: setattr(model, "a", 5.0),
        lambda: model.items.append(4.0),
        assign(model.items, 0, 9.0),
    )


@program
def iteration_and_truth():
    model = Model()
    return (
        lambda x: (x if model else -x) + sum(v for v in model),
        lambda: setattr(model, "a", 5.0),
        lambda: model.items.append(4.0),
    )


@program
def a_method_replaced():
    class Local(Model):
        def run(self, x):
            return x

    model = Local()
    return lambda x: model.run(x), lambda: setattr(Local, "run", lambda self, x: 5 * x)


@program
def all_attributes():
    model = Model()
    del model.weights, model.items
    return (
        lambda x: x * len(vars(model)) + copy.copy(model).a,
        lambda: setattr(model, "z", 1),
        lambda: setattr(model, "a", 3.0),
    )


# Containers
@program
def a_long_list():
    items = [float(k) for k in range(60)]
    return lambda x: x * items[50] + sum(items), assign(items, 50, 10.0), assign(items, 3, 0.5)


@program
def nested_containers():
    settings = {"a": {"b": [1.0, {"c": 2.0}]}}

    def fun(x):
        b = settings["a"]["b"]
        return x * b[1]["c"] + b[0] + len(settings["a"])

    return (
        fun,
        assign(settings["a"]["b"][1], "c", 5.0),
        assign(settings["a"]["b"], 0, 7.0),
        assign(settings["a"], "d", 7.0),
    )


@program
def containers_of_collections():
    queue = collections.deque([1.0, 2.0])
    counts = collections.Counter("aab")
    ordered = collections.OrderedDict(a=1.0, b=2.0)
    buffer = array.array("d", [1.0, 2.0])
    return (
        lambda x: x * queue[0] + counts["a"] + sum(ordered.values()) + sum(buffer),
        lambda: queue.appendleft(5.0),
        lambda: counts.update("a"),
        assign(ordered, "a", 9.0),
        assign(buffer, 0, 4.0),
    )


@program
def sets_and_slices():
    names, items = {"a"}, [1.0, 2.0, 3.0]
    return (
        lambda x: x * len(names) + sum(items[1:]) + ("b" in names),
        lambda: names.add("b"),
        assign(items, 2, 9.0),
    )


@program
def methods_of_containers():
    table, items = {"a": 1.0}, [1.0]
    return (
        lambda x: (
            x * table.get("a", 0.0) + table.get("b", 0.0) + items.count(1.0) + items.index(1.0)
        ),
        assign(table, "b", 4.0),
        lambda: items.append(1.0),
        lambda: items.insert(0, 3.0),
    )


@program
def an_int_and_a_float():
    items = [1]
    return (
        lambda x: x if isinstance(items[0], int) else -x,
        assign(items, 0, 1.0),
        assign(items, 0, True),
    )


@program
def a_negative_zero():
    items = [0.0]
    return lambda x: np.copysign(x, items[0]), assign(items, 0, -0.0)


# Functions
def helper(x, scale=2.0, *, shift=(1.0,)):
    return x * scale + shift[0] + K


K = 1.0


@program
def globals_and_helpers():
    return lambda x: helper(x) + K, bind("K", 4.0), bind("K", 4), bind("K", 1.0)


@program
def defaults_and_code():
    def inner(x, items=[1.0], *, shift=0.0):  # noqa: B006
        return x * items[0] + shift

    def other(x, items=None, *, shift=0.0):
        return -x

    return (
        lambda x: inner(x),
        lambda: setattr(inner, "__defaults__", ([7.0],)),
        lambda: setattr(inner, "__kwdefaults__", {"shift": 3.0}),
        lambda: inner.__defaults__[0].__setitem__(0, 9.0),
        lambda: setattr(inner, "__code__", other.__code__),
    )


@program
def a_default_of_its_own():
    items = [1.0]

    def fun(x, items=items):
        return x * items[0]

    return fun, assign(items, 0, 5.0)


@program
def a_partial():
    items = [1.0]

    def inner(items, x):
        return x * items[0]

    part = functools.partial(inner, items)
    return lambda x: part(x), assign(items, 0, 5.0)


@program
def a_builtin_that_is_hidden():
    return lambda x: abs(-x), bind("abs", lambda x: 10 * x), lambda: globals().pop("abs")


@program
def a_module_of_its_own():
    module = types.ModuleType("settings")
    module.rate = 1.0
    return lambda x: x * module.rate, lambda: setattr(module, "rate", 5.0)


@program
def code_that_is_not_captured():
    items, w = [1.0], np.array([1.0, 2.0])

    @wend.do_not_capture
    def inner(x):
        return x * items[0] + w[0] + K

    return lambda x: inner(x), assign(items, 0, 5.0), assign(w, 0, 3.0)


@program
def a_closure():
    rate = 1.0

    def change(value):
        nonlocal rate
        rate = value

    return lambda x: x * rate, functools.partial(change, 5.0), functools.partial(change, 5)


@program
def nested_functions():
    rate = [1.0]

    def fun(x):
        def inner(y):
            return y * rate[0]

        return inner(x) + (lambda y: y + rate[0])(x)

    return fun, assign(rate, 0, 5.0)


@pytest.fixture(autouse=True)
def _globals():
    yield
    globals().update(K=1.0)
    globals().pop("abs", None)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS)
def test_each_call_sees_the_outside_as_it_is(make, backend):
    fun, *changes = make()
    compiled = wend.function(fun, backend=backend)
    for change in (lambda: None, lambda: None, *changes):
        change()
        for x in (2.0, 3.0):
            np.testing.assert_allclose(compiled(x), fun(x), rtol=1e-15)


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::wend.RetraceWarning")  # that is what they are for
@pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS)
def test_gradients_see_the_outside_as_it_is(make):
    fun, *changes = make()
    gradient = wend.grad(fun)
    for change in (lambda: None, *changes):
        change()
        expected = (fun(2.0 + 1e-6) - fun(2.0 - 1e-6)) / 2e-6
        for _ in range(2):
            np.testing.assert_allclose(gradient(2.0), expected, rtol=1e-6, atol=1e-6)


def test_arrays_are_live_without_another_trace():
    w = np.array([1.0, 2.0])
    fun = wend.function(lambda x: (np.exp(w) * x).sum() + w @ w)
    for k in range(4):
        w[0] = k
        assert fun(2.0) == pytest.approx((np.exp(w) * 2.0).sum() + w @ w)
    assert fun.trace_count == 1


def test_an_object_that_the_function_makes_is_not_guarded():
    def fun(x):
        model = Model(2.0)
        model.a = model.a + 1.0
        return model.run(x) + sum(model.items)

    compiled = wend.function(fun)
    assert compiled(2.0) == fun(2.0)
    assert "model" not in compiled.explain()


def test_wend_numpy_of_an_outside_array():
    w = np.array([1.0, 2.0])
    fun = wend.function(lambda x: wnp.sum(wnp.exp(w)) * x)
    assert fun(1.0) == pytest.approx(np.exp(w).sum())
    w[0] = 3.0
    assert fun(1.0) == pytest.approx(np.exp(w).sum())
