"""Arrays that have several names: what NumPy shows, or a refusal with a cure."""

from __future__ import annotations

import copy
import types
from typing import Any

import numpy as np
import pytest

import wend
from wend.base import trees
from wend.base.errors import AliasError

V, W = np.array([1.0, 2.0, 3.0]), np.array([4.0, -1.0, 0.5])


# Arrays made in the function out of Python's numbers
def changed_on_each_path(v, w, x):
    a = np.zeros(3)
    b = a
    if x > 1:
        a[0] = 1.0
    else:
        a[1:] += 2.0
    return a, b


def two_names_in_a_loop(v, w, x):
    a = np.zeros(3)
    b, i = a, 0
    while i < x:
        a[0] += 1
        b[1] += 2
        i += 1
    return a, b


def a_view_before(v, w, x):
    a = np.zeros((2, 3))
    row, turned, flat = a[0], a.T, a.reshape(-1)
    a[0, 1] = x
    return row, turned * 1, flat + 0, row[1:].sum()


def rows_written_through(v, w, x):
    a = np.zeros((4, 2))
    for row in a:
        row[0] = x
        row += 1
    return a


def bound_again_to_itself(v, w, x):
    a, row, held, i = v, v[1:], [v, w], 0
    while i < x:
        a[:2] += v[1:]
        v = v
        row = row
        held = held
        a[0] += row[0] + held[0][1]
        i += 1
    return v, a, row, held


def in_a_tuple(v, w, x):
    a = np.zeros(3)
    held = (a, 1)
    a[0] = x
    return held[0] + 0


def filled_by_a_helper(v, w, x):
    def fill(q):
        for k in range(3):
            if x > k:
                q[k] = k

    a = np.ones(3)
    c, lists = a, [[a]]
    fill(a)
    return c.sum(), lists[0][0], np.cumsum(c)


def in_an_object(v, w, x):
    a = np.zeros(3)
    held = types.SimpleNamespace(a=a)
    i = 0.0
    while i < x:
        held.a[0] += 1.0
        i += 1
    return a * 2


def by_methods_and_functions(v, w, x):
    a = np.array([3.0, 1.0, 2.0])
    b = a
    if x > 1:
        a.sort()
    else:
        a.fill(x)
    np.add(b, v, out=b)
    np.add.at(b, [0, 0], x)
    return a, b


def read_before_it_changes(v, w, x):
    a = np.arange(3.0)
    y = v + a
    a[0] = 5.0
    return y, v + a


def nested(v, w, x):
    a, i = np.zeros(3), 0
    while i < x:
        t = np.zeros(2)
        if i > 1:
            a[1], t[0] = 5.0, 1.0
        else:
            a[2] += 1.0
        t[1] += 1
        a[0] += t[0] + t[1]
        i += 1
    return a, a.sum()


def of_an_operator(v, w, x):
    table = TABLE * 2
    table[0] = x
    if x > 1:
        table[1] += 1.0
    return table, table.sum()


TABLE = np.ones(3)


def made_on_one_path(v, w, x):
    a, known = v, np.zeros(3)
    if x > 1:
        a = known + 1.0
        np.add(a, a, out=a)
    return a


def made_on_one_path_of_an_array_of_outside(v, w, x):
    a, b = v * 1, v * 2
    if x > 1:
        a = TABLE * 2
        np.add(a, a, out=a)
    for _ in range(2):
        b = TABLE * 3
        np.add(b, 1.0, out=b)
        w[0] += b[1]
    return a, b


def changed_before_it_is_traced(v, w, x):
    """The loop starts again when it has come to hold traced values."""
    a = np.arange(3.0)
    b = a
    for _ in range(2):
        b[:] = a * 2
        a[2] = x
    return a, b


def changed_by_calls_before_it_is_traced(v, w, x):
    a, b, c = np.arange(3.0), np.ones(3), np.arange(3.0)[::-1]
    for _ in range(2):
        np.add(a, a, out=a)
        np.multiply(b, a, out=b)
        w[0] = w[0] + c[0]
        c.sort()
        unseen(b)
    return a, b, c


@wend.do_not_capture
def unseen(a):
    a += 1.0


# Traced ones
def a_view_changed_on_one_path(v, w, x):
    a = v * 1
    part, inner = a[:2], a[:2][1:]
    if x > 1:
        part[0] = 4.0
    else:
        a[0], a[1] = a[1], a[0]
    return part, a, inner


def swapped_buffers(v, w, x):
    u, t, i = v * 1, np.zeros(3), 0
    while i < x:
        t[:] = u * 2
        u, t = t, u
        i += 1
    u[0] = 7.0
    return u, t


def swapped_on_one_path(v, w, x):
    u, t = v * 1, w * 2
    if x > 1:
        u, t = t, u
    u[0] = 1.0
    return u, t


def made_anew_on_one_path(v, w, x):
    a = v * 1
    if x > 1:
        a = a * 2
    a[0] = 5.0
    i = 0
    while i < x:
        a[1] += 1
        if i > 0:
            a = a * 2
        a[0] -= 1
        i += 1
    return a


def one_array_on_every_path(v, w, x):
    if x > 1:
        a = b = v * 2
    else:
        a = b = v * 3
    a[0] = 5.0
    return a, b


def rows_swapped(v, w, x):
    """NumPy's trap: a[1] is a view, so both rows become the second."""
    m = np.stack([v, w])
    m[0], m[1] = m[1], m[0]
    n = np.stack([v, w])
    n[[0, 1]] = n[[1, 0]]
    return m, n


def parts(v, w, x):
    part = v[1:]
    v[2] = x
    i = 0
    while i < x:
        part[0] += v[0]
        v *= 2
        i += 1
    return part.sum(), part


def arrays_in_a_list_that_is_turned(v, w, x):
    rows, s = [v, w], 0.0
    for _ in range(3):
        rows.reverse()
        s = s + x
    return rows, v * s


def copies_in_a_list(v, w, x):
    out, i = [v.copy()], 0
    while i < x:
        v[0] += 1
        out.append(v.copy())
        i += 1
    return np.stack(out)


def views_of_the_whole(v, w, x):
    t, u = np.arange(6.0), np.zeros((2, 3))
    rows, turned = t.reshape(2, 3).T, u.T
    i = 0
    while i < x:
        rows[i % 3] = rows[i % 3] * 2 + t[0] + x
        t[1] += rows[0, 1]
        turned[i % 3, 1] += rows[1, 0]
        i += 1
    return t, rows, u, turned[1:].sum()


def views_of_what_is_traced(v, w, x):
    t = v * x
    column, flat = t[:, None], t.reshape(1, 3).reshape(-1)
    column[0] = w[:1]
    if x > 1:
        flat[1] = 7.0
        column += 1
    else:
        t[2] = 5.0
        flat[0] += column[2, 0]
    pair = np.stack([t, w])
    np.swapaxes(pair, 0, 1)[1] = 8.0
    np.moveaxis(pair, 0, 1)[2] *= 2.0
    return t, column, flat.sum(), pair


def what_numpy_makes_of_another(v, w, x):
    line, tiled = np.linspace(0.0, 1.0, 5), np.tile(np.arange(2.0), 2)
    line[1] = x
    tiled[1:3] += v[:2] * x
    return line, tiled


def views_that_helpers_change(v, w, x):
    def fill(rows):
        rows[0] = x
        rows += v[0]

    t = np.zeros((2, 3))
    fill(t.T)
    fill(t)
    return t


EQUAL = [
    *(views_of_the_whole, views_of_what_is_traced, what_numpy_makes_of_another),
    views_that_helpers_change,
    *(changed_on_each_path, two_names_in_a_loop, a_view_before, rows_written_through),
    *(in_a_tuple, bound_again_to_itself, made_on_one_path, changed_before_it_is_traced),
    changed_by_calls_before_it_is_traced,
    *(made_on_one_path_of_an_array_of_outside, a_view_changed_on_one_path),
    *(filled_by_a_helper, in_an_object, by_methods_and_functions, read_before_it_changes, nested),
    *(of_an_operator, swapped_buffers, swapped_on_one_path, made_anew_on_one_path),
    *(one_array_on_every_path, rows_swapped, parts, copies_in_a_list),
    arrays_in_a_list_that_is_turned,
]


@pytest.mark.parametrize("fun", EQUAL, ids=lambda fun: fun.__name__)
def test_aliases_are_numpys(fun) -> None:
    captured = wend.function(fun)
    for x in (0.0, 1.0, 3.5):
        mine, theirs = copy.deepcopy((V, W, x)), copy.deepcopy((V, W, x))
        expected, found = fun(*theirs), captured(*mine)
        for a, b in zip(_leaves((found, mine)), _leaves((expected, theirs)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)
    assert captured.trace_count == 1


def _leaves(tree):
    return trees.flatten(tree)[0]


def _total(tree):
    return sum(((k + 1.5) * leaf**2).sum() for k, leaf in enumerate(_leaves(tree)))


@pytest.mark.sampled
@pytest.mark.parametrize("fun", [f for f in EQUAL if f is not parts], ids=lambda fun: fun.__name__)
def test_gradients_through_them(fun) -> None:
    def loss(v, x):
        return _total(fun(v.copy(), W.copy(), x))

    for x in (0.25, 1.5, 2.5):
        for argument in (0, 1):
            found = wend.grad(loss, argument)(V, x)
            step = 1e-6
            if argument == 1:
                expected = (loss(V, x + step) - loss(V, x - step)) / (2 * step)
            else:
                units = step * np.eye(3)
                expected = [(loss(V + u, x) - loss(V - u, x)) / (2 * step) for u in units]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def asked_for_one_name(v, w, x):
    """`is` of what stays one, or two, on every path."""
    y, rows, same = v, [v, w], [v, w]
    kept = rows
    i = 0
    while i < x:
        v += 1.0
        i += 1
    if x > 1:
        w = w + 1.0
    return float(y is v), float(kept is rows), float(rows is same), float(w + 1.0 is not v), w


def test_is_of_what_stays_one() -> None:
    for x in (0.0, 3.0):
        found = wend.function(asked_for_one_name)(V.copy(), W.copy(), x)
        expected = asked_for_one_name(V.copy(), W.copy(), x)
        np.testing.assert_array_equal(np.hstack(found), np.hstack(expected))


# What only the run tells
def chosen(v, w, x):
    y = v if x > 1 else w
    y[0] = 10.0
    return y


def rebound_on_one_path(v, w, x):
    b = v
    if x > 1:
        v = v * 2
    v[0] = 100.0
    return b


def buffers_of_the_caller(v, w, x):
    i = 0
    while i < x:
        w[:] = v * 2
        v, w = w, v
        i += 1
    return v


def changed_after_a_choice(v, w, x):
    a, b = v * 1, v * 2
    y = a if x > 1 else b
    a[0] = 5.0
    return y * 1


def a_part_changed_after_a_choice(v, w, x):
    a, b = v * 1, v * 2
    y = a if x > 1 else b
    part = y[:2]
    a[0] = 5.0
    return part * 1


def one_of_two_names(v, w, x):
    c = v * 1
    if x > 1:
        a = b = c * 2
    else:
        a, b = c * 3, c * 4
    a[0] = 5.0
    return a, b


def another_name_in_the_loop(v, w, x):
    u, t, i = v * 1, v * 2, 0
    while i < x:
        t = u
        u[0] += 1
        i += 1
    return t


def appended_and_changed(v, w, x):
    out, i = [v * 1], 0
    while i < x:
        v[0] += 1
        out.append(v)
        i += 1
    return len(out)


def changed_after_appending(v, w, x):
    out, i, a = [v * 1], 0, v * 1
    while i < x:
        out.append(a)
        i += 1
    a[0] = 5.0
    return np.stack(out)


def an_item_changed(v, w, x):
    out, i = [v * 1], 0
    while i < x:
        out.append(v * i)
        i += 1
    out[0][0] = 5.0
    return np.stack(out)


def an_array_of_outside(v, w, x):
    table = TABLE
    table[0] = x
    return table


def an_array_of_outside_after_it_was_used(v, w, x):
    table = TABLE * 2
    part = table[1:]
    y = v * table
    part[0] = 5.0
    return y


def put_into_an_array_of_outside_after_it_was_used(v, w, x):
    table = TABLE * 2
    y = v * table[1:][:1]
    np.add(table, 1.0, out=table)
    return y * table


def filled_on_one_path_after_it_was_used(v, w, x):
    if x > 1:
        table = TABLE * 2
        v = v * table
        table.fill(9.0)
    return v


def an_array_of_outside_in_an_object(v, w, x):
    held = types.SimpleNamespace(table=TABLE)
    held.table[0] = x
    return held.table


def an_array_of_outside_on_one_path(v, w, x):
    table = TABLE
    if x > 1:
        table[0] = 7.0
    return table


def _changed_by(change):
    def fun(v, w, x):
        if x > 1:
            change(TABLE)
        return v * x

    return fun


FUNCTIONS_THAT_CHANGE = {
    "copyto": lambda a: np.copyto(a, 9.0),
    "put": lambda a: np.put(a, [0], 9.0),
    "place": lambda a: np.place(a, a > 0, [9.0]),
    "putmask": lambda a: np.putmask(a, a > 0, 9.0),
    "put_along_axis": lambda a: np.put_along_axis(a, np.array([0]), 9.0, 0),
    "fill_diagonal": lambda a: np.fill_diagonal(a.reshape(1, 3), 9.0),
    "add.at": lambda a: np.add.at(a, [0], 9.0),
    "out": lambda a: np.add(a, 1.0, out=a),
    "out by position": lambda a: np.add(a, 1.0, a),
    "fill": lambda a: a.fill(9.0),
    "sort": lambda a: (a[::-1].sort(), a.put([0], 2.0)),
    "__iadd__": lambda a: a.__iadd__(1.0),
}


@pytest.mark.parametrize("x", [0.5, 2.0])
@pytest.mark.parametrize("change", FUNCTIONS_THAT_CHANGE)
def test_what_changes_an_array_of_outside_on_one_path(change, x) -> None:
    _check_table(_changed_by(FUNCTIONS_THAT_CHANGE[change]), x)


def _check_table(fun, x) -> None:
    """Check that a function changes the array of outside as Python does."""
    outcomes = []
    try:
        for run in fun, wend.function(fun):
            TABLE[...] = 1.0
            calls = [(np.array(run(V.copy(), W.copy(), y)), TABLE.copy()) for y in (x, 2.5 - x, x)]
            outcomes.append(np.array(calls).tolist())
    finally:
        TABLE[...] = 1.0
    assert outcomes[1] == outcomes[0]


@pytest.mark.parametrize("x", [0.5, 2.0])
def test_an_array_of_outside(x) -> None:
    functions = an_array_of_outside_in_an_object, an_array_of_outside_on_one_path
    for fun in an_array_of_outside, *functions:
        _check_table(fun, x)


def asked_which_array(v, w, x):
    y = v if x > 1 else w
    return y.sum() if y is v else w.sum()


def asked_which_list(v, w, x):
    a = b = [v[0], w[0]]
    if x > 1:
        a = [w[0], v[0]]
    return 1.0 if a is not b else 2.0


def reshaped_in_an_order_that_nobody_knows(v, w, x):
    t = np.stack([v, w])
    y = t.reshape(3, 2)
    y[0] = x
    return t


REFUSED = {
    asked_which_array: "known only at run time",
    asked_which_list: "known only at run time",
    chosen: "may be <traced f64[3], argument",
    rebound_on_one_path: "may be <traced f64[3], argument v>",
    buffers_of_the_caller: "may be another array, depending on the trip",
    changed_after_a_choice: "may be, or hold, an array that was changed",
    a_part_changed_after_a_choice: "may be, or hold, an array that was changed",
    one_of_two_names: "may be <traced f64[3], if at",
    another_name_in_the_loop: "may be an array that changes there",
    appended_and_changed: "holds an array that changes in the loop",
    changed_after_appending: "may be, or hold, an array that was changed",
    an_item_changed: "is a view",
    reshaped_in_an_order_that_nobody_knows: "is a view",
}


@pytest.mark.parametrize(
    "fun",
    [
        an_array_of_outside_after_it_was_used,
        put_into_an_array_of_outside_after_it_was_used,
        filled_on_one_path_after_it_was_used,
    ],
)
def test_arrays_computed_from_outside_ones_are_the_functions_own(fun) -> None:
    np.testing.assert_array_equal(
        wend.function(fun)(V.copy(), W.copy(), 2.0), fun(V.copy(), W.copy(), 2.0)
    )


@pytest.mark.parametrize("fun", REFUSED, ids=lambda fun: fun.__name__)
def test_what_only_the_run_tells_is_refused(fun) -> None:
    with pytest.raises(wend.WendError) as caught:
        wend.function(fun)(V.copy(), W.copy(), 2.0)
    assert REFUSED[fun] in str(caught.value)
    assert "To fix it: " in str(caught.value)
    np.testing.assert_array_equal(TABLE, np.ones(3))


@pytest.mark.parametrize("x", [0.5, 2.0])
def test_a_list_of_the_caller_or_another(x) -> None:
    @wend.function
    def f(row, x):
        if x > 1:
            row = [3.0, 4.0]
        row[0] = 9.0
        return row

    with pytest.raises(AliasError, match="may be the list that the caller holds"):
        f([1.0, 2.0], x)


# One array as two arguments
def read_after_a_change(a, b):
    a[0] = 5.0
    return a + b


def read_in_the_loop_that_changes(a, b):
    for i in range(3):
        a[i] = b[i - 1] + 1.0


def both_changed(a, b):
    a[0] = 1.0
    b[0] = 2.0


def read_before_the_change(a, b):
    b[0] = a[0] + 1.0
    return b * 2.0


def written_as_a_whole(a, b):
    np.add(a, 1.0, out=b)


@pytest.mark.parametrize("fun", [read_after_a_change, read_in_the_loop_that_changes, both_changed])
def test_one_array_as_two_arguments_is_refused_where_it_would_show(fun) -> None:
    captured = wend.function(fun)
    x = V.copy()
    for _ in range(3):  # however often it was called before
        captured(x, W.copy())
    before = x.copy()
    for one, other in ((x, x), (x, x[::-1]), (x[:], x)):
        with pytest.raises(AliasError, match="are one array, or parts of one"):
            captured(one, other)
    np.testing.assert_array_equal(x, before)
    with pytest.raises(AliasError):
        wend.function(lambda x: captured(y := x * 1.0, y))(V)


@pytest.mark.parametrize("fun", [read_before_the_change, written_as_a_whole])
def test_one_array_as_two_arguments_is_taken_where_it_would_not_show(fun) -> None:
    mine, theirs = V.copy(), V.copy()
    found, expected = wend.function(fun)(theirs, theirs), fun(mine, mine)
    np.testing.assert_array_equal(theirs, mine)
    if expected is not None:
        np.testing.assert_array_equal(found, expected)
    wend.function(read_after_a_change)(np.arange(6.0)[::2], np.arange(6.0)[1::2])


# What NumPy gives that looks at an array, which then becomes traced
LOOKS = {
    "asarray": np.asarray,
    "ascontiguousarray": np.ascontiguousarray,
    "array": lambda a: np.array(a, copy=None),
    "atleast_2d": np.atleast_2d,
    "broadcast_to": lambda a: np.broadcast_to(a, (2, 4)),
    "a part of broadcast_to": lambda a: np.broadcast_to(a, (2, 4))[1, :3],
    "buffer": lambda a: np.asarray(memoryview(a)),
    "diag": lambda a: np.diag(a.reshape(2, 2)),
    "moveaxis": lambda a: np.moveaxis(a.reshape(2, 2), 0, 1),
    "rot90": lambda a: np.rot90(a.reshape(2, 2)),
    "real": np.real,
    "split": lambda a: np.split(a, 2)[1],
    "rows": lambda a: list(a.reshape(2, 2))[1],
    "sliding_window_view": lambda a: np.lib.stride_tricks.sliding_window_view(a, 2),
}
REFUSED_LOOKS = {
    "broadcast_arrays": lambda a: np.broadcast_arrays(a, np.zeros((2, 4)))[0],
    "view": lambda a: a.view(),
}


def looked_at(look):
    def fun(x):
        a = np.arange(4.0)
        seen = look(a)
        a[1:] = x
        return seen * 1, a

    return fun


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_what_looks_at_an_array_changes_with_it(look) -> None:
    for found, expected in zip(
        wend.function(looked_at(look))(7.0), looked_at(look)(7.0), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("look", REFUSED_LOOKS.values(), ids=REFUSED_LOOKS)
def test_what_looks_at_an_array_in_other_ways_is_refused(look) -> None:
    with pytest.raises(AliasError, match="a view that NumPy made of an array that has become"):
        wend.function(looked_at(look))(7.0)


# Arrays that operators make of arrays of outside, in branches and loops
LINE = np.arange(4.0)


def made_in_a_branch(x, n):
    y = x
    if x > 0:
        t = LINE * 2
        t[0] = 5
        y = x + t[0] + t[1]
    return y


def filled_in_a_branch(x, n):
    y = x
    if x > 0:
        t = LINE * 2
        t[0] = x
        t[1] += x
        y = x + t[0] + t[1]
    return y


def made_in_a_loop(x, n):
    for i in range(n):
        t = LINE * 2
        t[1] = i
        if x > 30:
            u = LINE + 1
            u[0] = x
            x = x - u[0]
        x = x + t.sum()
    return x


def held_twice(x, n):
    y = x
    if x > 0:
        t = LINE * 2
        u = t
        t[0] = x
        y = x + u[0]
    return y


@pytest.mark.parametrize("fun", [made_in_a_branch, filled_in_a_branch, made_in_a_loop, held_twice])
def test_arrays_made_of_arrays_of_outside(fun):
    captured = wend.function(fun)
    for args in ((1.5, 4), (-2.0, 0), (40.0, 3)):
        assert captured(*args) == fun(*args)
    np.testing.assert_array_equal(LINE, np.arange(4.0))


@pytest.mark.usefixtures("integers_stay_traced")
@pytest.mark.parametrize(
    "look",
    [
        lambda v, n: np.broadcast_to(v, (n, 6)),
        lambda v, n: v.reshape(n, -1),
        lambda v, n: np.reshape(v, (n, 2)),
    ],
)
def test_a_view_of_a_size_that_the_run_tells_is_not_read_after_a_change(look: Any) -> None:
    """Of an array that Python knew until then."""

    def changed(n: Any) -> Any:
        v = np.zeros(6)
        view = look(v, n)
        before = view.sum()
        v[0] = 5
        return before + view.sum()

    def unchanged(n: Any) -> Any:
        v = np.arange(6.0)
        return look(v, n) * v[0]

    np.testing.assert_array_equal(wend.function(unchanged)(np.int64(3)), unchanged(3))
    with pytest.raises(wend.WendError, match="is a view of an array that was changed"):
        wend.function(changed)(np.int64(3))


@pytest.mark.parametrize("n", [0, 2, 5])
def test_a_slice_that_the_run_ends_is_a_view_of_what_python_knows(n: int) -> None:
    def both(n: Any) -> Any:
        v = np.zeros(5)
        head = v[:n]
        v[1] = 5
        head += 1
        for k in range(n):
            v[k] += k
        return v, head

    for found, expected in zip(wend.function(both)(np.int64(n)), both(n), strict=True):
        np.testing.assert_array_equal(found, expected)


def bound_anew_on_one_path(v, x):
    if x < 1:
        v[1] += 1
    elif x < 2:
        v[0] = 2
    elif x < 3:
        v = v + 5
    return v


def bound_anew_and_changed_after(v, x):
    if x < 1:
        v[1] += 1
    elif x < 2:
        w = v if x < 1.2 else v + 5
        v = w * 2
    return v


@pytest.mark.parametrize("x", [0.5, 1.5, 2.5, 3.5])
@pytest.mark.parametrize("fun", [bound_anew_on_one_path, bound_anew_and_changed_after])
def test_a_change_on_one_path_leaves_what_another_has_made(fun: Any, x: float) -> None:
    given, expected = np.zeros(3), np.zeros(3)
    np.testing.assert_array_equal(wend.function(fun)(given, x), fun(expected, x))
    np.testing.assert_array_equal(given, expected)


def written_through_slices(x, k):
    v = np.zeros(4)
    u, w = v[k:], v[: k + 1]
    u[0] = x
    w += 1
    v[1] = 7
    return v, u, w


def sliced_in_a_loop(x, k):
    v = np.zeros(4)
    for i in range(k + 1):
        u = v[i:]
        u += x
    return v


def sliced_before_a_branch(x, k):
    v = np.zeros(4)
    u, w = v[k:], v[1:]
    if x < 5:
        u[0] = 3.0
    else:
        w[1] = x
    return v, u * 1


def sliced_before_a_loop(x, k):
    v = np.zeros(4)
    u = v[k:]
    for i in range(k):
        v[i] = i + x
    u[0] = 9.0
    return v, u


RAGGED = [1.0, np.ones(2)]  # by which a loop cannot be one node


def sliced_and_changed_before_a_loop_that_python_runs(x, k):
    v = np.zeros(4)
    u = v[k:]
    v[0] = x
    for i in range(2):
        x = x + np.sum(RAGGED[i])
    return u * 1, x


def sliced_before_a_loop_that_python_runs(x, k):
    v = np.zeros(4)
    u = v[k:]
    for i in range(2):
        x = x + np.sum(RAGGED[i]) + u[0]
        v[i + 1] = 5.0
        u[0] = x
    return v, u, x


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("x", [0.5, 6.0])
@pytest.mark.parametrize(
    "fun",
    [
        written_through_slices,
        sliced_in_a_loop,
        sliced_before_a_branch,
        sliced_before_a_loop,
        sliced_and_changed_before_a_loop_that_python_runs,
        sliced_before_a_loop_that_python_runs,
    ],
)
def test_slices_of_known_arrays_that_the_run_ends(fun: Any, x: float, k: int) -> None:
    found, expected = wend.function(fun)(x, np.int64(k)), fun(x, k)
    for mine, theirs in zip(*(trees.flatten(r)[0] for r in (found, expected)), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_python_goes_on_knowing_an_array_of_which_the_run_takes_a_slice() -> None:
    @wend.function
    def f(x, k):
        table = np.array([1, 2, 3])
        total = table[k:].sum()
        for _ in wend.unroll(range(int(table[2]))):
            total = total + x
        return total, f"{table[1]}" == "2"

    assert f(2.0, np.int64(1)) == (11.0, True)


@pytest.mark.parametrize("take", [np.diagonal, np.diag, lambda a: a.diagonal()])
def test_a_diagonal_is_not_read_after_its_array_has_changed(take: Any) -> None:
    def changed(x):
        a = np.outer(x, x)
        d = take(a)
        a[1, 1] = 5.0
        return d * 1

    with pytest.raises(AliasError, match="is a view of an array that was changed"):
        wend.function(changed)(np.arange(3.0))
    with pytest.raises(ValueError, match="output array is read-only"):
        wend.function(lambda x: np.add(take(x), 1, out=take(x)))(np.eye(3))


def read_by_an_inner_function(x, k):
    v = np.zeros(4)

    @wend.function
    def inner(m):
        return v[m:] * 2 + x

    before = inner(k).sum()
    v[1] = x
    return before, v[k:] * 1, inner(k).sum()


def views_of_views(x, k):
    v = np.arange(4.0)
    u = v[k:]
    w = u[1:]
    q = w[::-1]
    u[1] = x
    q[0] = 5
    return v, u, w, q


def views_in_a_list(x, k):
    v = np.arange(4.0)
    views = [v[k:], v[:2]]
    v[0] = x
    views[0] += 1
    return views[0] * 1, views[1] * 1, v


def given_to_a_function(x, k):
    v = np.arange(4.0)

    def change(z):
        z[0] = x
        return z.sum()

    return change(v[k:]), v


def rows_and_columns(x, k):
    v = np.arange(6.0).reshape(2, 3)
    u, w = v[k - 1], v[:, k - 1 :]
    u[0] = x
    w[0] = 7
    return v, u, w


def of_a_view(x, k):
    v = np.arange(4.0)[1:]
    u = v[k:]
    v[1] = x
    return u * 1, v


def changed_by_methods(x, k):
    v = np.arange(4.0)
    u = v[k:]
    np.sin(v, out=v)
    w = u * 1
    u.sort()
    v.fill(x)
    return w, u * 1


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(
    "fun",
    [
        read_by_an_inner_function,
        views_of_views,
        views_in_a_list,
        given_to_a_function,
        rows_and_columns,
        of_a_view,
        changed_by_methods,
    ],
)
def test_views_of_known_arrays(fun: Any, k: int) -> None:
    found, expected = wend.function(fun)(3.0, np.int64(k)), fun(3.0, k)
    for mine, theirs in zip(*(trees.flatten(r)[0] for r in (found, expected)), strict=True):
        np.testing.assert_array_equal(mine, theirs)
