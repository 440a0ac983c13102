"""Lists, dicts and deques of the caller that a function changes in place."""

from __future__ import annotations

import copy
from collections import OrderedDict, deque

import numpy as np
import pytest

import wend
from wend.base.errors import StructureError


def swap(items):
    items[0], items[1] = items[1], items[0]


def bubble_sort(items):
    for i in range(len(items)):
        for j in range(len(items) - 1 - i):
            if items[j] > items[j + 1]:
                items[j], items[j + 1] = items[j + 1], items[j]
    return items


def sort(items):
    items.sort()
    return items


def rotate(rows):
    rows[:] = [list(row) for row in zip(*rows[::-1], strict=True)]


def transpose(rows):
    rows.reverse()
    for i in range(len(rows)):
        for j in range(i):
            rows[i][j], rows[j][i] = rows[j][i], rows[i][j]
    return rows


def append(items, x):
    items.append(x * 2)
    return len(items)


def grow_in_a_loop(items, x):
    while x > 1.0:
        x = x / 2
        items.append(x)
    return items


def grow_in_a_branch(items, x):
    if x > 0.0:
        items.append(x)
    return x


def change_a_dict(parts, x):
    parts["a"] = x
    parts["b"][0] += x
    del parts["c"]
    return parts["b"]


def move_arrays(arrays):
    arrays[0], arrays[1] = arrays[1], arrays[0]
    arrays[0][0] = 7.0
    return arrays[1]


def take_a_row(rows):
    row = rows.pop(0)
    row[0] = 9
    return row


def change_on_one_path(items, x):
    if x > 0:
        items[0] = x
    else:
        items[1] = x


def reverse_texts(items, x):
    items.reverse()
    return x


def put_a_list(rows, x):
    rows.append([x, x * 2])


def change_in_a_tuple(pair, x):
    pair[0].append(x)
    return pair[0]


def rotate_a_deque(items, x):
    items.rotate(1)
    items.appendleft(x)


def order_a_dict(parts, x):
    parts.move_to_end("a")
    parts["new"] = [x]


def reader(items):
    return items[0] + 1.0, items


CALLS = [
    (swap, [1.0, 2]),
    (bubble_sort, [3, 1, 2, 0]),
    (sort, [3.0, 1.0, 2.0]),
    (rotate, [[1, 2], [3, 4]]),
    (transpose, [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
    (append, [1.0], 2.0),
    (grow_in_a_loop, [1.0], 8.0),
    (grow_in_a_loop, [1.0], 0.0),
    (grow_in_a_branch, [1.0], 2.0),
    (grow_in_a_branch, [1.0], -2.0),
    (change_a_dict, {"a": 1.0, "b": [1.0, 2.0], "c": 3}, 3.0),
    (move_arrays, [np.ones(2), np.zeros(3)]),
    (take_a_row, [[1, 2], [3, 4]]),
    (change_on_one_path, [1.0, 2.0], 1.0),
    (change_on_one_path, [1.0, 2.0], -1.0),
    (reverse_texts, ["a", "b"], 1.0),
    (put_a_list, [[1.0, 2.0]], 3.0),
    (change_in_a_tuple, ([1.0], 2.0), 3.0),
    (rotate_a_deque, deque([1.0, 2.0], maxlen=2), 3.0),
    (order_a_dict, OrderedDict(a=1.0, b=2.0), 3.0),
    (reader, [1.0, 2.0]),
]


def _described(value):
    """Describe a value with its class and those of its items; scalars of NumPy as numbers."""
    if isinstance(value, dict):
        return type(value), [(key, _described(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple, deque)):
        return type(value), [_described(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    return type(value), value


def _numbers(value):
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("fun", "args"), [(fun, args) for fun, *args in CALLS])
def test_the_caller_sees_what_python_would_do(fun, args, backend):
    traced = wend.function(fun, backend=backend)
    for _ in range(3):
        expected_args, traced_args = copy.deepcopy(args), copy.deepcopy(args)
        leaves = [id(x) for x in traced_args[0]]
        expected, result = fun(*expected_args), traced(*traced_args)
        assert _described(traced_args) == _described(expected_args)
        assert _described(wend.tree.map(_numbers, result)) == _described(expected)
        assert (result is traced_args[0]) == (expected is expected_args[0])
        if fun is move_arrays:
            assert [id(x) for x in traced_args[0]] == leaves[::-1]
    assert traced.trace_count == 1


def test_one_list_passed_twice_is_one():
    @wend.function
    def fun(a, b, x):
        a[0] = x
        return b[0] * 2, 1 if a is b else 0

    one, other = [1.0, 2.0], [1.0, 2.0]
    assert fun(one, other, 5.0) == (2.0, 0)
    assert fun(one, one, 7.0) == (14.0, 1)
    assert fun(one, other, 6.0) == (2.0, 0)
    assert (one, other, fun.trace_count) == ([6.0, 2.0], [1.0, 2.0], 2)


def test_calls_with_one_list_and_with_two_keep_their_traces():
    are_one = wend.function(lambda xs, ys: 1.0 if xs is ys else ys[0])
    one, other = [1.0, 2.0], [3.0, 2.0]
    for _ in range(4):
        assert (are_one(one, other), are_one(one, one)) == (3.0, 1.0)
    assert are_one.trace_count == 2


def test_one_list_in_a_tuple_and_a_list_is_one():
    @wend.function
    def fun(pair, rows):
        rows[0].append(3.0)
        return len(pair[1])

    row = [1.0]
    assert fun((2.0, row), [row]) == 2
    assert row == [1.0, 3.0]


def test_a_function_that_another_calls_changes_its_lists():
    @wend.function
    def inner(items, x):
        items[0] = x * 2

    @wend.function
    def in_a_loop(items, x):
        i = 0
        while i < x:
            inner(items, items[0] + x)
            i += 1
        return items[0]

    @wend.function
    def in_a_branch(x):
        items = [1.0, x]
        if x > 0:
            inner(items, x)
        return items

    items = [1.0]
    assert in_a_loop(items, 2.0) == 16.0
    assert items == [16.0]
    assert in_a_branch(3.0) == [6.0, 3.0]
    assert in_a_branch(-3.0) == [1.0, -3.0]


def test_a_local_list_that_an_inner_function_changes_in_a_loop():
    @wend.function
    def inner(x):
        items = [x]
        items[0] = x * 2
        return items[0]

    @wend.function
    def outer(x, n):
        for _ in range(n):
            x = inner(x)
        return x

    assert outer(1.0, 5) == 32.0


def _put(items, x):
    items[0] = x
    return items[0] * x


@pytest.mark.parametrize(
    "call",
    [
        lambda: wend.grad(_put)([1.0], 2.0),
        lambda: wend.grad(_put, argnums=1)([1.0], 2.0),
        lambda: wend.vjp(_put, [1.0], 2.0),
        lambda: wend.vmap(_put, in_axes=(None, 0))([1.0], np.arange(3.0)),
        lambda: wend.function(_put).get_concrete_function([1.0], 2.0)([1.0], 2.0),
    ],
)
def test_where_no_caller_would_see_it_a_change_is_refused(call):
    with pytest.raises(wend.WendError, match="change"):
        call()


def _first_of(xs):
    return {"twice": xs[0] * 2, "all": (xs, xs)}, xs[0]


@pytest.mark.parametrize("fun", [lambda xs: xs, lambda xs: [xs[0] * 2, xs], _first_of])
def test_a_list_that_is_only_returned_has_derivatives(fun):
    def with_a_copy(xs):
        return fun(list(xs))

    xs, tangents = [2.0, np.array([3.0, 4.0])], [1.0, np.array([5.0, 6.0])]
    assert_equal = np.testing.assert_equal
    value, pullback = wend.vjp(fun, xs)
    same_value, same_pullback = wend.vjp(with_a_copy, xs)
    assert_equal(value, same_value)
    assert_equal(pullback(value), same_pullback(value))
    assert_equal(wend.jvp(fun, (xs,), (tangents,)), wend.jvp(with_a_copy, (xs,), (tangents,)))
    (value, push), (same_value, same_push) = (
        wend.linearize(fun, xs),
        wend.linearize(with_a_copy, xs),
    )
    assert_equal((value, push(tangents)), (same_value, same_push(tangents)))
    assert_equal(wend.jacrev(fun)(xs), wend.jacrev(with_a_copy)(xs))


def test_a_list_that_holds_itself_is_refused():
    @wend.function
    def fun(items):
        items.append(items)

    with pytest.raises(StructureError, match="holds itself"):
        fun([1.0])


def test_one_new_list_put_in_twice_is_refused():
    @wend.function
    def fun(rows, x):
        row = [x]
        rows[:] = [row, row]

    with pytest.raises(StructureError, match="it would become two"):
        fun([[1.0]], 2.0)
