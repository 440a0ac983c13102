"""What results hold: containers of the caller, instances of classes, and objects held twice."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import wend
from wend.trace.aliasing.rebuilt_containers import ResultAndContainers

BACKENDS = ("numpy", "native")


class Angle:
    """An ordinary class, whose constructor computes."""

    def __init__(self, degrees: Any, digits: int = 3) -> None:
        self.degrees, self.digits, self.unit = degrees % 360.0, digits, "deg"
        self.function, self.parent = np.sin, None

    def __eq__(self, other: object) -> bool:
        raise AssertionError("no code of the class runs when a result is rebuilt")

    __hash__ = None  # type: ignore[assignment]

    @property
    def radians(self) -> Any:
        return self.degrees * np.pi / 180.0


class Slotted:
    """A class with slots, one of which is empty."""

    __slots__ = ("absent", "value")

    def __init__(self, value: Any) -> None:
        self.value = value


class Guarded:
    """A class that sets attributes in its own way."""

    def __init__(self, value: Any) -> None:
        vars(self)["value"] = value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)


@dataclass
class Pair:
    """A dataclass."""

    first: Any
    second: Any


class Node:
    """A class whose instances may refer to each other."""

    def __init__(self, value: Any) -> None:
        self.value, self.links = value, []


OUTSIDE = Pair(1.0, 2.0), [1.0, {"a": 2.0}], Node(3.0)


def _described(value: Any, seen: dict[int, int] | None = None) -> Any:
    """Return the classes, numbers and identities in a value; arrays count by their elements."""
    seen = {} if seen is None else seen
    if isinstance(value, (bool, int, float, np.generic)) or value is None:
        return value if value is None else float(value)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if isinstance(value, tuple):
        return tuple(_described(x, seen) for x in value)
    if isinstance(value, str) or callable(value):
        return value
    if id(value) in seen:
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    if isinstance(value, list):
        return [_described(x, seen) for x in value]
    items = value if isinstance(value, dict) else {**getattr(value, "__dict__", {})}
    if isinstance(value, Slotted):
        items = {"value": value.value, "absent": hasattr(value, "absent")}
    return type(value).__name__, [(k, _described(x, seen)) for k, x in items.items()]


def _one(x):
    return Angle(x * 2.0)


def _in_containers(x):
    return {"a": [Angle(x), (Angle(x + 1.0, 5), None)], "b": Slotted(x)}


def _own_setter(x):
    return Guarded([x, 2, True])


def _twice(x):
    a = Angle(x)
    return a, [a, {"a": a}]


def _containers_twice(x):
    items, pair = [x], Pair(x, {"k": x})
    return items, pair, (items, pair), pair.second


def _cycle(x):
    a, b = Node(x), Node(x + 1.0)
    a.links.append(b)
    b.links.append(a)
    return a, b


def _list_that_holds_itself(x):
    items = [x]
    items.append(items)
    return items


def _branch(x):
    if x.sum() > 1.0:
        a = Angle(x)
    else:
        a = Angle(-x)
    return a


PROGRAMS = (
    *(_one, _in_containers, _own_setter, _twice, _containers_twice, _cycle),
    *(_list_that_holds_itself, _branch),
)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_objects_are_those_of_python(program, backend):
    compiled = wend.function(program)
    with wend.config(backend=backend):
        for x in (np.arange(3.0), np.arange(3.0) + 0.5, np.zeros(3), np.ones(3)):
            assert _described(compiled(x)) == _described(program(x))


@pytest.mark.parametrize("program", PROGRAMS[:5])
def test_objects_are_returned_in_eager_mode(program):
    x = np.arange(3.0)
    with wend.config(eager=True):
        assert _described(wend.function(program)(x)) == _described(program(x))


def _graph_of(rng: np.random.Generator, x: Any) -> Any:
    """Return containers and instances that refer to earlier ones at random."""
    made: list[Any] = []
    for k in range(int(rng.integers(2, 8))):
        parts = [made[int(i)] for i in rng.integers(0, len(made), 2)] if made else [x * 1.0, x + 1]
        kind = int(rng.integers(5))
        made.append([[*parts, x], {"p": parts[0], "q": parts}, Pair(*parts), Node(x), 0][kind])
        if kind == 3:
            made[-1].links = parts
        elif kind == 4:
            made[-1] = (parts[0], x * float(k))
    return made


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(40))
def test_random_results_have_the_identities_of_python(seed):
    def program(x):
        return _graph_of(np.random.default_rng(seed), x)

    x = np.arange(2.0)
    compiled = wend.function(wend.do_not_capture(program))
    for _ in range(3):
        assert _described(compiled(x)) == _described(program(x))


def test_each_call_returns_new_objects():
    compiled = wend.function(_twice)
    first, second = compiled(np.ones(3)), compiled(np.ones(3))
    assert first[0] is not second[0]
    first[0].degrees[:] = 7.0
    assert second[0].degrees.tolist() == [1.0, 1.0, 1.0]


def test_fields_hold_numbers_of_python():
    compiled = wend.function(lambda x: Angle(x, 4))
    for _ in range(5):  # the later calls enter compiled code directly
        angle = compiled(400.0)
        assert (angle.degrees, angle.digits) == (40.0, 4)
        assert [type(angle.degrees), type(angle.digits)] == [float, int]


def test_objects_of_outside_are_returned_themselves():
    for value in OUTSIDE:
        compiled = wend.function(lambda x, k: OUTSIDE[k], static_argnames="k")
        k = next(k for k, other in enumerate(OUTSIDE) if other is value)
        for _ in range(3):
            assert compiled(1.0, k) is value


def test_an_argument_is_returned_itself():
    node, compiled = Node(np.ones(2)), wend.function(lambda node, x: (node, [node, x]))
    for _ in range(3):
        first, (second, _) = compiled(node, 2.0)
        assert first is second is node


def test_an_object_is_put_into_a_list_of_the_caller():
    items: list[Any] = []
    wend.function(lambda items, x: items.append(Angle(x)))(items, 361.0)
    assert isinstance(items[0], Angle)
    assert items[0].degrees == 1.0


def test_derivatives_of_functions_that_return_objects():
    x = np.array([1.0, 2.0])
    value, pullback = wend.vjp(lambda x: Slotted(x * x), x)
    assert value.value.tolist() == [1.0, 4.0]
    assert pullback(Slotted(np.ones(2)))[0].tolist() == [2.0, 4.0]
    value, tangent = wend.jvp(lambda x: Slotted(x * x), (x,), (np.ones(2),))
    assert tangent.value.tolist() == [2.0, 4.0]
    compiled = wend.function(lambda x: Angle(x * x))
    assert wend.grad(lambda x: compiled(x).radians.sum() / np.pi * 180.0)(x).tolist() == [2.0, 4.0]
    (_, aux), _ = wend.value_and_grad(lambda x: (x.sum(), Angle(x)), has_aux=True)(x)
    assert aux.degrees.tolist() == [1.0, 2.0]


def test_cotangents_of_what_is_returned_twice_are_added():
    def program(x):
        items = [x * x]
        return items, items

    _, pullback = wend.vjp(program, np.array([1.0, 2.0]))
    (ct,) = pullback(([np.ones(2)], [np.ones(2)]))
    assert ct.tolist() == [4.0, 8.0]


def test_vmap_of_functions_that_return_objects():
    angle = wend.vmap(lambda x: Angle(x * 2.0))(np.arange(3.0))
    assert angle.degrees.tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("make", [threading.Lock, lambda: iter([1]), lambda: lambda: 1])
def test_what_cannot_be_rebuilt_is_named(make):
    with pytest.raises(TypeError, match=r"returns .* at result\.value"):
        wend.function(lambda x: Slotted(make()))(1.0)


def test_a_result_that_holds_itself_has_no_derivative():
    with pytest.raises(wend.WendError):
        wend.vjp(_cycle, np.ones(2))


def _tree(fun, *args):
    return wend.function(fun).get_concrete_function(*args).traced.result_tree


def test_only_what_changes_is_in_the_result():
    def change(first, second):
        first[0] = second[0]
        return second[0]

    tree = _tree(change, [1.0], [2.0])
    assert tree.type is ResultAndContainers
    assert tree.child(1).num_children == 1


def test_a_result_without_containers_of_the_caller_is_as_it_was():
    tree = _tree(lambda items: [items[0], "a"], [1.0])
    assert tree.type is list


def test_items_that_stay_are_no_results_of_the_graph():
    concrete = wend.function(lambda items: items.reverse()).get_concrete_function([1.0, 2.0])
    assert len(concrete.traced.result_types) == 0
