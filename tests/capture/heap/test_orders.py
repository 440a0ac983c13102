"""The order of dict keys and attributes: Python's, or refused where only the run knows it."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import StructureError

BACKENDS = ["native", "numpy"]


class Point: ...


def digits(values: Any) -> Any:
    total = 0.0
    for value in values:
        total = total * 10 + value
    return total


def of_argument(d):
    return digits(d.values())


def of_result(d):
    return {k: v * 2 for k, v in d.items()}


def nested_result(d):
    return [{"all": {**d, "new": 1.0}}, {k: d[k] for k in reversed(d)}]


def updated(d):
    return {"c": 1.0} | d


def popped(d):
    d = dict(d)
    d["a"] = d.pop("a") + 1.0
    return d


def first_key(d):
    return d[next(iter(d))]


def in_a_loop(d):
    out = dict.fromkeys(d, 0.0)
    i = 0
    while i < d["a"]:
        for k, v in d.items():
            out[k] = out[k] * 2 + v
        i = i + 1
    return out


def keywords(d):
    def inner(**kwargs):
        return {k: v + 1.0 for k, v in kwargs.items()}

    return inner(**d)


KINDS: Sequence[Callable[..., Any]] = [dict, OrderedDict, functools.partial(defaultdict, float)]


def shown(value: Any) -> str:
    """Return a text of a pytree with the order of its keys."""
    if isinstance(value, dict):
        return f"{type(value).__name__} {[(k, shown(v)) for k, v in value.items()]}"
    if isinstance(value, (list, tuple)):
        return str([*map(shown, value)])
    return str(float(value))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "fun",
    [
        *(of_argument, of_result, nested_result, updated, popped),
        *(first_key, in_a_loop, keywords),
    ],
)
def test_the_order_of_an_argument_is_pythons(fun: Callable[..., Any], backend: str) -> None:
    for kind in KINDS:
        captured = wend.function(fun, backend=backend)
        for _ in range(4):
            for d in (kind({"a": 1.0, "b": 2.0}), kind({"b": 2.0, "a": 1.0})):
                assert shown(captured(d)) == shown(fun(d))


def test_nested_orders_and_keywords() -> None:
    nested = wend.function(lambda tree: digits(tree[0]["x"].values()))
    keywords = wend.function(lambda **kwargs: digits(kwargs.values()))
    method = wend.function(lambda a, b: a * 10 + b)
    for _ in range(4):
        assert nested([{"x": {"a": 1.0, "b": 2.0}}]) == 12.0
        assert nested([{"x": {"b": 2.0, "a": 1.0}}]) == 21.0
        assert keywords(a=1.0, b=2.0) == 12.0
        assert keywords(b=2.0, a=1.0) == 21.0
        assert method(a=1.0, b=2.0) == method(b=2.0, a=1.0) == 12.0
    assert (nested.trace_count, keywords.trace_count, method.trace_count) == (2, 2, 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_class_of_a_key_is_seen(backend: str) -> None:
    def by_class(d):
        key = next(iter(d))
        return d[key] * {int: 100.0, float: 10.0, bool: 1.0}[type(key)]

    captured = wend.function(by_class, backend=backend)
    for _ in range(4):
        assert [captured({key: 2.0}) for key in (1, 1.0, True)] == [200.0, 20.0, 2.0]
    assert captured.trace_count == 3


def test_derivatives_keep_the_order() -> None:
    point = {"b": 2.0, "a": 3.0}
    assert shown(wend.grad(lambda d: d["b"] * d["a"] ** 2)(point)) == shown({"b": 9.0, "a": 12.0})
    value, pull = wend.vjp(lambda d: {"y": d["b"] * 2, "x": d["a"]}, point)
    assert shown(value) == shown({"y": 4.0, "x": 3.0})
    # Cotangents and tangents are matched by key
    assert shown(pull({"x": 1.0, "y": 2.0})) == shown(({"b": 4.0, "a": 1.0},))
    _, tangent = wend.jvp(
        lambda d: {"y": d["b"] * 2, "x": d["a"]}, (point,), ({"a": 1.0, "b": 2.0},)
    )
    assert shown(tangent) == shown({"y": 4.0, "x": 1.0})
    with wend.GradientTape() as tape:
        x = tape.watch({"b": 2.0, "a": 3.0})
        y = {"y": x["b"] * 2, "x": x["a"]}
    grads = tape.gradient(y, x, output_gradients={"x": 1.0, "y": 2.0})
    assert shown(grads) == shown({"b": 4.0, "a": 1.0})


def test_a_signature_has_an_order() -> None:
    spec = wend.TensorSpec([])
    fun = wend.function(of_argument, input_signature=[{"a": spec, "b": spec}])
    assert fun({"a": 1.0, "b": 2.0}) == 12.0
    with pytest.raises(StructureError, match=r"args\[0\] is a dict in the order 'b', 'a', not"):
        fun({"b": 2.0, "a": 1.0})
    concrete = wend.function(of_argument).get_concrete_function({"a": 1.0, "b": 2.0})
    with pytest.raises(StructureError, match="was traced for arguments"):
        concrete({"b": 2.0, "a": 1.0})


def test_why_another_order_was_traced() -> None:
    fun = wend.function(of_argument)
    fun({"a": 1.0, "b": 2.0})
    fun({"b": 1.0, "a": 2.0})
    assert "d is a dict in the order 'b', 'a', not a dict in the order 'a', 'b'" in fun.explain()


# Branches and loops
def same_order_on_both_paths(x):
    if x > 1:
        d = {"b": x, "a": 1.0}
    else:
        d = {"b": 2.0, "a": x}
    return digits(d.values())


def filled_on_both_paths(x):
    d = {}
    if x > 1:
        d["b"] = x
        d["a"] = 1.0
    else:
        d["b"] = 2.0
        d["a"] = x
    return digits(d.values())


def moved_on_both_paths(x):
    d = {"a": 1.0, "b": 2.0}
    if x > 1:
        d["a"] = d.pop("a") + x
    else:
        d["a"] = d.pop("a")
    return digits(d.values())


def attributes_on_both_paths(x):
    p = Point()
    if x > 1:
        p.b = x
        p.a = 2.0
    else:
        p.b = 2.0
        p.a = x
    return digits(vars(p).values())


def attributes_after_another(x):
    p = Point()
    p.c = 1.0
    if x > 1:
        p.b, p.a, p.c = x, 2.0, 4.0
    else:
        p.b, p.a = 2.0, x
    return digits(vars(p).values())


def attributes_in_nested_branches(x):
    p = Point()
    p.b, p.a = 1.0, 2.0
    for i in range(3):
        if x > i:
            if x > 2:
                p.a = p.a + x
            else:
                p.b = p.b + x
    return digits(vars(p).values())


def signs(x):
    zero = 0.0 if x > 1 else -0.0
    return np.copysign(x, zero)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "fun",
    [
        *(same_order_on_both_paths, filled_on_both_paths, moved_on_both_paths),
        *(attributes_on_both_paths, attributes_after_another, attributes_in_nested_branches),
        signs,
    ],
)
def test_one_order_on_all_paths_is_pythons(fun: Callable[..., Any], backend: str) -> None:
    captured = wend.function(fun, backend=backend)
    for _ in range(2):
        for x in (3.0, 0.5, 1.5):
            assert captured(x) == fun(x)


def another_order(x):
    if x > 1:
        d = {"a": 1.0, "b": x}
    else:
        d = {"b": 2.0, "a": x}
    return digits(d.values())


def filled_in_another_order(x):
    d = {}
    if x > 1:
        d["a"] = 1.0
        d["b"] = 2.0
    else:
        d["b"] = 2.0
        d["a"] = 1.0
    return digits(d.values())


def popped_and_put_back(x):
    d = {"a": 1.0, "b": 2.0}
    if x > 1:
        v = d.pop("a")
        d["a"] = v
    return digits(d.values())


def moved_to_the_end(x):
    d = OrderedDict(a=1.0, b=2.0)
    if x > 1:
        d.move_to_end("a")
    return digits(d.values())


def moved_in_a_loop(x):
    d = {"a": 1.0, "b": 2.0}
    while x > 1:
        x = x - 1
        d["a"] = d.pop("a")
    return digits(d.values())


def another_class_of_key(x):
    if x > 1:
        d = {1: x}
    else:
        d = {True: x}
    return d


def returned_in_another_order(x):
    if x > 1:
        return {"a": x, "b": 1.0}
    return {"b": 1.0, "a": x}


def in_functional_branches(x):
    return wend.cond(x > 1, lambda: {"a": x, "b": x}, lambda: {"b": x, "a": x})


def in_a_functional_loop(x):
    return wend.fori_loop(0, 3, lambda i, d: {"b": d["b"], "a": d["a"]}, {"a": x, "b": x})


def attributes_in_another_order(x):
    p = Point()
    if x > 1:
        p.a, p.b = 1.0, 2.0
    else:
        p.b, p.a = 2.0, 1.0
    return digits(vars(p).values())


def attribute_deleted_and_set_again(x):
    p = Point()
    p.a, p.b = 1.0, 2.0
    if x > 1:
        del p.a
        p.a = 1.0
    return digits(vars(p).values())


def attribute_moved_in_a_loop(x):
    p = Point()
    p.a, p.b = 1.0, 2.0
    while x > 1:
        x = x - 1
        a = p.a
        del p.a
        p.a = a
    return digits(vars(p).values())


REFUSED: Sequence[tuple[Callable[..., Any], str]] = [
    (another_order, "d: a dict in the order 'a', 'b' against a dict in the order 'b', 'a'"),
    (filled_in_another_order, "the same keys in the same order"),
    (popped_and_put_back, "d: a dict in the order 'b', 'a' against a dict in the order 'a', 'b'"),
    (moved_to_the_end, "a OrderedDict in the order 'b', 'a'"),
    (moved_in_a_loop, "keep the same keys, in their order"),
    (another_class_of_key, r"d\[1\] is missing"),
    (returned_in_another_order, "in the order 'a', 'b' against"),
    (in_functional_branches, "in the order 'b', 'a' against"),
    (in_a_functional_loop, "in the order 'a', 'b' against"),
    (attributes_in_another_order, "`p.__dict__` has the order a, b if the test holds, else b, a"),
    (attribute_deleted_and_set_again, "`p.__dict__` has the order b, a if the test holds"),
    (attribute_moved_in_a_loop, "`p.__dict__` changes in the loop from a, b to b, a"),
]


@pytest.mark.parametrize(("fun", "message"), REFUSED)
def test_an_order_that_only_the_run_knows_is_refused(fun: Callable[..., Any], message: str) -> None:
    captured = wend.function(fun)
    for x in (3.0, 1.0, 3.0):
        with pytest.raises(StructureError, match=message):
            captured.get_concrete_function(x)
