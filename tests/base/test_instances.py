"""Transforms of functions of dataclasses: the results have their classes."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wend
from tests.helpers.shares import sized
from wend.base.instances import class_with_generated


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any


@dataclass(slots=True)
class Scaled:
    point: Any
    factor: Any = 1.0


@dataclass(frozen=True)
class Net:
    w: Any
    b: Any
    count: int = 2
    act: Any = np.tanh
    name: str = "net"
    inner: Point | None = None


def cubic(p):
    return p.x**2 * np.sum(p.y**3)


POINT = Point(1.5, np.array([1.0, 2.0]))
GRADIENT = Point(27.0, np.array([6.75, 27.0]))


def loss(net, x):
    h = x
    for _ in range(net.count):
        h = net.act(net.w @ x + net.b) * h
    return np.sum(h) * net.inner.x + net.inner.y @ x


NET, X = Net(np.array([0.5, 0.2]), 0.1, inner=Point(2.0, np.ones(2))), np.array([1.0, 2.0])


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    leaves, structure = wend.tree.flatten(found)
    expected_leaves, expected_structure = wend.tree.flatten(expected)
    assert structure == expected_structure
    for leaf, other in zip(leaves, expected_leaves, strict=True):
        np.testing.assert_allclose(leaf, other, rtol=1e-12)


@pytest.mark.parametrize(
    "gradient",
    [
        wend.grad(cubic),
        wend.jacfwd(cubic),
        wend.jacrev(cubic),
        wend.grad(wend.checkpoint(cubic)),
        wend.function(wend.grad(cubic)),
        lambda p: wend.vjp(cubic, p)[1](1.0)[0],
        lambda p: wend.value_and_grad(cubic)(p)[1],
        lambda p: wend.grad(lambda tree: cubic(tree["p"][0]))({"p": [p]})["p"][0],
    ],
)
def test_gradients_have_the_class(gradient):
    for _ in range(3):
        assert_same(gradient(POINT), GRADIENT)


def test_gradients_where_fields_are_no_floats():
    gradient = wend.grad(loss)(NET, X)
    assert (gradient.count, gradient.act, gradient.name) == (None, None, None)
    step = 1e-6
    for k in range(2):
        d = step * np.eye(2)[k]
        ends = loss(replace(NET, w=NET.w + d), X), loss(replace(NET, w=NET.w - d), X)
        np.testing.assert_allclose(gradient.w[k], (ends[0] - ends[1]) / (2 * step), rtol=1e-6)
    np.testing.assert_allclose(gradient.inner.y, X)
    tangent = replace(gradient, inner=Point(0.0, np.zeros(2)))
    expected = gradient.w @ gradient.w + gradient.b**2
    np.testing.assert_allclose(wend.jvp(loss, (NET, X), (tangent, 0 * X))[1], expected)
    np.testing.assert_allclose(wend.linearize(lambda n: loss(n, X), NET)[1](tangent), expected)


def test_a_step_of_descent_keeps_texts_and_functions():
    after = wend.tree.map(
        lambda p, g: p if g is None else p - 0.01 * g, NET, wend.grad(loss)(NET, X)
    )
    assert (after.act, after.name, after.count) == (np.tanh, "net", 2)
    assert loss(after, X) < loss(NET, X)
    with pytest.raises(wend.WendError, match="a Net against a dict"):
        wend.tree.map(lambda p, g: p, NET, {"w": 1.0})


def test_leaves_are_arrays_and_numbers():
    assert [np.size(x) for x in wend.tree.leaves(NET)] == [2, 1, 1, 1, 2]
    same, other = replace(NET, b=3.0), replace(NET, name="other")
    assert wend.tree.structure(NET) == wend.tree.structure(same) != wend.tree.structure(other)
    leaves, structure = wend.tree.flatten(NET)
    assert_same(wend.tree.unflatten(structure, leaves), NET)


def test_second_derivatives():
    hessian = wend.hessian(cubic)(POINT)
    assert_same(hessian.x, Point(18.0, np.array([9.0, 36.0])))
    np.testing.assert_allclose(hessian.y.y, [[13.5, 0.0], [0.0, 27.0]])
    of_x = wend.grad(lambda p: wend.grad(cubic)(p).x)(POINT)
    assert_same(of_x, Point(18.0, np.array([9.0, 36.0])))


def test_a_pullback_takes_the_class_of_the_result():
    value, pullback = wend.vjp(lambda p: Scaled(Point(p.x * 2, p.y * p.x), 3.0), POINT)
    assert_same(value, Scaled(Point(3.0, 1.5 * POINT.y), 3.0))
    (ct,) = pullback(Scaled(Point(1.0, np.ones(2)), 0.0))
    assert_same(ct, Point(2.0 + 3.0, np.full(2, 1.5)))
    value, pullback = wend.vjp(lambda p: (p, p.x * 2), POINT)
    assert_same(value, (POINT, 3.0))
    assert_same(pullback((POINT, 1.0))[0], Point(3.5, POINT.y))


def test_vmap_over_fields():
    rows = Point(np.array([1.0, 2.0]), np.ones((2, 3)))
    doubled = wend.vmap(lambda p: replace(p, x=p.x * 2))(rows)
    assert_same(doubled, Point(np.array([2.0, 4.0]), np.ones((2, 3))))
    mapped = wend.vmap(lambda p: p.x * p.y, in_axes=(Point(0, None),))(Point(rows.x, np.ones(3)))
    np.testing.assert_allclose(mapped, [[1.0] * 3, [2.0] * 3])
    gradients = wend.vmap(wend.grad(cubic))(Point(np.array([1.5, 3.0]), np.array([[1.0, 2.0]] * 2)))
    np.testing.assert_allclose(gradients.x, [27.0, 54.0])


@pytest.mark.parametrize("wrap", [wend.function, lambda fun: fun])
def test_functional_control_flow_carries_instances(wrap):
    grown = wrap(lambda p: wend.while_loop(lambda p: p.x < 10, lambda p: replace(p, x=p.x * 2), p))
    assert_same(grown(POINT), replace(POINT, x=12.0))
    assert_same(wend.grad(lambda p: grown(p).x)(POINT), Point(8.0, np.zeros(2)))
    scanned = wrap(lambda p: wend.scan(lambda c, a: (replace(c, x=c.x + a), c), p, np.arange(3.0)))
    last, every = scanned(POINT)
    assert_same(last, replace(POINT, x=4.5))
    assert_same(every, Point(np.array([1.5, 1.5, 2.5]), np.tile(POINT.y, (3, 1))))
    chosen = wrap(lambda p, c: wend.cond(c, lambda p: replace(p, x=-p.x), lambda p: p, p))
    assert_same(chosen(POINT, np.bool_(True)), replace(POINT, x=-1.5))


def test_custom_rules_take_instances():
    @wend.custom_vjp
    def square(p):
        return cubic(p)

    square.defvjp(lambda p: (cubic(p), p), lambda p, ct: (Point(2 * ct, p.y * ct),))
    assert_same(wend.grad(square)(POINT), Point(2.0, POINT.y))

    @wend.custom_jvp
    def other(p):
        return cubic(p)

    other.defjvp(lambda primals, tangents: (cubic(primals[0]), 5.0 * tangents[0].x))
    assert_same(wend.grad(other)(POINT), Point(5.0, np.zeros(2)))


def test_tapes_take_instances():
    with wend.GradientTape() as tape:
        net = tape.watch(NET)
        value = loss(net, X)
    found, expected = tape.gradient(value, net), wend.grad(loss)(NET, X)
    assert_same(found, expected)
    with wend.config(eager=True):
        assert_same(wend.grad(loss)(NET, X), expected)


def test_a_change_is_refused_in_derivatives():
    def change(s):
        s.factor = s.factor * 2
        return s.factor

    for transform in (wend.grad(change), wend.vmap(change)):
        with pytest.raises(wend.WendError, match=r"is changed in place, at \w\.factor"):
            transform(Scaled(np.ones(2), np.ones(2)))


def test_saved_functions_take_the_class_or_a_record():
    scaled = wend.function(lambda net, x: (replace(net, b=net.b * x), net))
    expected = scaled(NET_OF_NUMBERS, 3.0)
    file = io.BytesIO()
    wend.save(file, scaled=scaled)
    assert b"InstanceNode" not in file.getvalue()
    file.seek(0)
    loaded = wend.load(file, types=[Net, Point]).scaled
    assert_same(loaded(NET_OF_NUMBERS, 3.0), expected)
    again = io.BytesIO()
    wend.save(again, scaled=loaded)
    again.seek(0)
    assert_same(wend.load(again, types=[Net, Point]).scaled(NET_OF_NUMBERS, 3.0), expected)


NET_OF_NUMBERS = Net(1.0, 0.5, act=None)

trees = st.recursive(
    st.floats(-2, 2).map(lambda x: round(x, 3)),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=2),
        st.builds(Point, inner, inner),
        st.builds(Scaled, inner, st.sampled_from(["text", None, 2.5])),
        st.dictionaries(st.sampled_from("ab"), inner, min_size=1),
    ),
    max_leaves=5,
)


@settings(max_examples=sized(6, 15))
@given(st.builds(Point, trees, trees))
def test_the_gradient_of_squares_is_twice_the_tree(tree: Any) -> None:
    def squares(value):
        return sum(x * x for x in wend.tree.leaves(value))

    assert_same(wend.grad(squares)(tree), _twice(tree))
    assert_same(wend.function(lambda t: (t, squares(t)))(tree)[0], tree)


def _twice(tree: Any) -> Any:
    if isinstance(tree, Scaled) and isinstance(tree.factor, str):
        return Scaled(_twice(tree.point), None)
    if isinstance(tree, (Point, Scaled)):
        names = ("x", "y") if isinstance(tree, Point) else ("point", "factor")
        return type(tree)(*(_twice(getattr(tree, name)) for name in names))
    if isinstance(tree, list):
        return [*map(_twice, tree)]
    if isinstance(tree, dict):
        return {key: _twice(item) for key, item in tree.items()}
    return None if tree is None else np.float64(2 * tree)


def test_methods_that_dataclasses_and_attrs_write_are_told_from_those_of_users() -> None:
    namespace: dict[str, Any] = {}
    exec("class Written:\n    def __eq__(self, other):\n        return True\n", namespace)
    written = namespace["Written"]  # its code is of "<string>", as that of dataclasses

    @dataclass(eq=False)
    class Derived(written):  # type: ignore[misc, valid-type]
        x: Any = 0

    @dataclass
    class Own:
        x: Any = 0

        def __eq__(self, other: object) -> bool:
            return False

    class Below(Point):
        pass

    made = {cls: class_with_generated(cls, "__eq__") for cls in (Point, Below, Derived, Own, int)}
    assert made == {Point: Point, Below: Point, Derived: None, Own: None, int: None}
    attr = pytest.importorskip("attrs")
    by_attrs = attr.make_class("Attr", ["x"])
    assert class_with_generated(by_attrs, "__eq__") is by_attrs
