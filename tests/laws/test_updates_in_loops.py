"""A loop that reads and writes parts of an array costs what these are: counted in bytes, at every
order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import wend

PROGRAMS: dict[str, Callable] = {}
SIZES = 100, 400
# Of four times as many trips; quadratic work grows sixteenfold.
MAX_GROWTH = 5.0
BYTES_ALLOWED = 4096  # whatever the size: constants, the last block of a pool


def program(fun):
    PROGRAMS[fun.__name__] = fun
    return fun


@program
def set_elements(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    return (y * y).sum()


@program
def add_to_elements(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] += x[i] * x[i]
    return (y * y).sum()


@program
def multiply_elements(x):
    y = np.ones(x.shape[0])
    for i in range(x.shape[0]):
        y[i] *= x[i]
    return y.sum()


@program
def recurrence(x):
    y = x * 1.0
    for i in range(1, x.shape[0]):
        y[i] = np.sin(y[i - 1]) * x[i] + x[i]
    return y.sum()


@program
def rows(x):
    y = np.zeros((x.shape[0], 4))
    for i in range(x.shape[0]):
        y[i] = x[i] * np.arange(4.0)
    return (y * y).sum()


@program
def slices(x):
    y = np.zeros(x.shape[0] + 3)
    for i in range(x.shape[0]):
        y[i : i + 3] = y[i : i + 3] * x[i] + 1.0
    return (y * y).sum()


@program
def slices_that_inner_loops_read(x):
    y = np.zeros(x.shape[0] + 3)
    for i in range(1, x.shape[0]):
        t = x[i]
        for k in range(3):
            t = np.sin(t) + 0.1 * k * (y[i - 1 : i + 1] * y[i - 1 : i + 1]).sum()
        y[i] = t
    return (y * y).sum()


@program
def added_slices(x):
    y = np.zeros(x.shape[0] + 3)
    for i in range(x.shape[0]):
        y[i : i + 3] += np.sin(x[i])
    return (y * y).sum()


@program
def views(x):
    y = np.zeros((x.shape[0], 2))
    for i in range(x.shape[0]):
        row = y[i]
        row[0] = x[i] * x[i]
        row[1] = row[0] * x[i]
    return (y * y).sum()


@program
def two_arrays(x):
    y, z = np.zeros(x.shape[0]), np.zeros(x.shape[0])
    for i in range(1, x.shape[0]):
        y[i] = z[i - 1] * x[i] + 1
        z[i] = y[i - 1] + np.cos(y[i])
    return (y * z).sum()


@program
def swaps(x):
    y = x * 1.0
    for i in range(x.shape[0]):
        first, last = y[i] * 1.0, y[-1 - i] * 1.0
        y[i] = last
        y[-1 - i] = first
    return (y * x * x).sum()


@program
def swaps_by_positions(x):
    y = x * 1.0
    for i in range(x.shape[0] - 1):
        y[[i, i + 1]] = y[[i + 1, i]]
    return (y * x * x).sum()


@program
def appended(x):
    out = []
    for i in range(x.shape[0]):
        out.append(x[i] * x[i])
    return (np.stack(out) ** 2).sum()


@program
def conditional(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[i] = x[i] * x[i]
    return (y * y).sum()


@program
def both_branches(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[i] = x[i] * x[i]
        else:
            y[i] = -x[i]
    return (y * y).sum()


@program
def bubbles(x):
    y = x * x
    for i in range(x.shape[0] - 1):
        if y[i] > y[i + 1]:
            larger = y[i] * 1.0
            y[i] = y[i + 1]
            y[i + 1] = larger
    return (y * x).sum()


def write(y, i, value):
    y[i] = value * value


@program
def by_a_helper(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        write(y, i, x[i])
    return (y * y).sum()


written = wend.function(lambda y, i, value: y.at[i].set(value * value))


@program
def by_an_inner_call(x):
    y = x * 0.0
    for i in range(x.shape[0]):
        y = written(y, i, x[i])
    return (y * y).sum()


@program
def by_the_method_of_a_ufunc(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        np.maximum.at(y, i, x[i] * x[i])
    return (y * y).sum()


@wend.function
def write_traced(y, i, value):
    y[i] = value * value


@program
def by_a_traced_function(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        write_traced(y, i, x[i])
    return (y * y).sum()


@program
def by_at(x):
    y = x * 1.0
    for i in range(x.shape[0]):
        y = y.at[i].multiply(x[i]).at[0].add(x[i])
    return (y * y).sum()


@program
def nested_for(x):
    y = np.zeros((x.shape[0], 2))
    for i in range(x.shape[0]):
        for j in range(2):
            y[i, j] = x[i] * (j + 1)
    return (y * y).sum()


@program
def nested_while(x):
    y = np.zeros(x.shape[0])
    i = 0
    while i < x.shape[0]:
        j = 0
        while j < 2:
            y[i] = y[i] * 0.5 + x[i]
            j += 1
        i += 1
    return (y * y).sum()


@program
def dynamic_program(x):
    table = np.zeros((x.shape[0], 3))
    for i in range(1, x.shape[0]):
        for j in range(1, 3):
            least = min(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1])
            table[i, j] = least + x[i] * x[i - 1]
    return table[x.shape[0] - 1, 2]


@program
def with_a_break(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
        if y[i] > 1e9:
            break
    return (y * y).sum()


@program
def read_only(x):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            total += np.sin(x[i]) * x[-i]
    return total


@program
def by_put(x):
    y = np.zeros((x.shape[0], 2))
    for i in range(x.shape[0]):
        np.put(y, 2 * i, x[i] * x[i])
    return (y * y).sum()


@program
def within_a_handler(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        try:
            y[i + 1] += x[i] * x[i]
        except IndexError:
            y[0] = x[i]
    return (y * y).sum()


@program
def conditional_through_a_view(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[::-1][i] = x[i] * x[i]
    return (y * y).sum()


@program
def sizes_read_in_an_inner_loop(x):
    y, total = np.zeros(x.shape[0]), 0.0
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
        for j in range(2):
            total += np.sin(y[len(y) - 1 - j]) * len(y)
    return total


@program
def complex_elements(x):
    y = x * (1.0 + 1.0j)
    for i in range(1, x.shape[0]):
        y[i] = y[i] * y[i - 1].real + 1.0j * y.imag[i - 1]
        if x[i] > 0:
            y[i] *= x[i]
    return (y * y.conj()).real.sum()


@program
def complex_slices(x):
    y = np.zeros(x.shape[0] + 3, np.complex64)
    for i in range(x.shape[0]):
        y[i : i + 3] += x[i] * y[i : i + 3] + 1.0j
    return (y * y.conj()).real.sum()


@program
def cuts_in_both_branches(x):
    y = x * 1.0
    for i in range(1, x.shape[0]):
        if x[i] > 0:
            y[i - 1 : i + 1] += x[i] * y[i - 1 : i + 1]
        else:
            y[i - 1 : i + 1] *= y[i - 1 : i + 1]
    return (y * y).sum()


@program
def cuts_read_in_a_nested_branch(x):
    y, total = x * 1.0, 0.0
    for i in range(1, x.shape[0]):
        if x[i] > -0.5:
            if x[i] > 0:
                total += (y[i - 1 : i + 1] * y[i - 1 : i + 1]).sum()
        y[i] = x[i] * np.sin(total)
    return total


@wend.function
def squares(z, i):
    return (z[i - 1 : i + 1] * z[i - 1 : i + 1]).sum()


@program
def cuts_read_by_a_traced_function(x):
    y, total = x * 1.0, 0.0
    for i in range(1, x.shape[0]):
        total += squares(y, i)
        y[i] = x[i] * np.sin(total)
    return total


@program
def cuts_before_a_break(x):
    y, i = x * 1.0, 1
    while True:
        if x[i] > 0:
            y[i - 1 : i + 1] *= y[i - 1 : i + 1]
        i += 1
        if i >= x.shape[0]:
            break
        y[i] *= x[i]
    return y.sum()


# An element of a matrix of n rows, each of which NumPy reads without touching the others
READS: dict[str, Callable] = {
    "element": lambda m, i: m[i, 1],
    "element_from_the_end": lambda m, i: m[-1 - i, -1],
    "element_of_a_row": lambda m, i: m[i][1],
    "element_of_a_column": lambda m, i: m[:, 1][i],
    "element_of_the_transpose": lambda m, i: m.T[1, i],
    "element_of_a_row_of_the_transpose": lambda m, i: m.T[1][i],
    "element_of_a_vector": lambda m, i: m.reshape(-1)[3 * i],
    "flat_element": lambda m, i: m.flat[3 * i],
    "element_of_the_reverse": lambda m, i: m[::-1][i, 0],
    "element_of_a_tail": lambda m, i: m[1:][i - 1, 0],
    "element_of_a_tail_of_a_row": lambda m, i: m[i, 1:][1],
    "new_axis": lambda m, i: m[i, None, 1].sum(),
    "elements_of_a_column": lambda m, i: m[[i, i - 1], 1].sum(),
    "elements_of_a_row": lambda m, i: m[i, [0, 2]].sum(),
    "part_of_a_column": lambda m, i: m[i - 1 : i + 1, 1].sum(),
    "item": lambda m, i: m.item(i, 1),
    "branch": lambda m, i: m[i, 0] if m[i, 1] > 0 else m[i, 2],
}


def _reading(read):
    def fun(x):
        m = np.stack([x, x * x, x + 1.0], 1)
        total = 0.0
        for i in range(x.shape[0]):
            total += np.sin(read(m, i))
        return total

    return fun


THROUGH_VIEWS = {f"reads_{name}": _reading(read) for name, read in READS.items()}


def column(y, i, value):
    c = y[:, 1]
    c[i] = value


def transpose(y, i, value):
    y.T[1, i] = value


def row(y, i, value):
    y[i][1] += value


def reverse(y, i, value):
    y[::-1][i, 0] = value


def flat(y, i, value):
    y.flat[3 * i] = value


WRITES = [column, transpose, row, reverse, flat]


def _writing(write):
    def fun(x):
        y = np.zeros((x.shape[0], 3))
        for i in range(x.shape[0]):
            write(y, i, x[i] * x[i])
        return (y * y).sum()

    return fun


THROUGH_VIEWS.update({f"writes_{write.__name__}": _writing(write) for write in WRITES})


# Views that are made before a loop that writes to them at positions of the last axis
VIEWS: dict[str, Callable] = {
    "row_of_the_transpose": lambda y: y.T[1],
    "transpose": lambda y: y.T,
    "reverse": lambda y: y[::-1, 1],
    "column": lambda y: y[:, 1],
    "view_of_a_view": lambda y: y[::-1].T[1:],
    "tail": lambda y: y[1:, 1],
    "every_other": lambda y: y[::2, 1],
    "new_axis": lambda y: y[None, :, 1],
}


def _set(z, i, value):
    z[..., i] = value


def _add(z, i, value):
    z[..., i - 1] += value * z[..., i - 2]


def _cut(z, i, value):
    z[i - 2 : i] = value * z[i - 2 : i] + value


def _swap(z, i, value):
    z[[i, i - 1]] = z[[i - 1, i]] * value


def _row(z, i, value):
    row = z[i - 1 : i]
    row[0] = value
    z[i - 1] *= row[0]


def _within_a_handler(z, i, value):
    try:
        z[i + 1] = value
    except IndexError:
        z[0] = value


def _conditional(z, i, value):
    if value > 0:
        z[i] += value


def _by_a_traced_function(z, i, value):
    write_traced(z, i, value)


STORES = {
    "set": _set,
    "cut": _cut,
    "swap": _swap,
    "row": _row,
    "handler": _within_a_handler,
    "conditional": _conditional,
    "call": _by_a_traced_function,
}


def _storing(view, store):
    def fun(x):
        y = np.ones((2 * x.shape[0] + 1, 3))
        z = view(y)
        for i in range(2, x.shape[0]):
            store(z, i, x[i] * x[i])
        return (y * y).sum()

    return fun


FROM_OUTSIDE = {
    **{f"set_{name}": _storing(view, _set) for name, view in VIEWS.items()},
    **{f"{name}_reverse": _storing(VIEWS["reverse"], store) for name, store in STORES.items()},
    **{f"{name}_column": _storing(VIEWS["column"], store) for name, store in STORES.items()},
    "cut_every_other": _storing(VIEWS["every_other"], _cut),
    "add_new_axis": _storing(VIEWS["new_axis"], _add),
    "add_transpose": _storing(VIEWS["transpose"], _add),
}


FORMS: dict[str, Callable] = {
    "value": lambda f: f,
    "gradient": wend.grad,
    "jvp": lambda f: lambda x: wend.jvp(f, (x,), (x,))[1],
    "second_order": lambda f: wend.grad(lambda x: (wend.grad(f)(x) ** 2).sum()),
    "checkpoint": lambda f: wend.grad(wend.checkpoint(f)),
}


def bytes_moved(fun, n):
    """Return the bytes that native code allocates or overwrites as a whole in a call."""
    x = np.linspace(-1.0, 1.0, n)
    with wend.config(backend="native"), wend.profile() as p:
        fun(x)
    return sum(line.bytes for line in p.lines())


@pytest.mark.sampled
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_work_grows_linearly(name, form):
    any_size = [wend.TensorSpec((None,), np.float64)]
    fun = wend.function(FORMS[form](PROGRAMS[name]), input_signature=any_size)
    small, large = (bytes_moved(fun, n) for n in SIZES)
    assert large <= MAX_GROWTH * small + BYTES_ALLOWED


@pytest.mark.sampled
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", THROUGH_VIEWS)
def test_views_cost_what_is_read_and_written(name, form):
    any_size = [wend.TensorSpec((None,), np.float64)]
    fun = wend.function(FORMS[form](THROUGH_VIEWS[name]), input_signature=any_size)
    small, large = (bytes_moved(fun, n) for n in SIZES)
    assert large <= MAX_GROWTH * small + BYTES_ALLOWED


@pytest.mark.sampled
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FROM_OUTSIDE)
def test_views_made_before_cost_what_is_written(name, form, is_known):
    any_size = None if is_known else [wend.TensorSpec((None,), np.float64)]
    fun = wend.function(FORMS[form](FROM_OUTSIDE[name]), input_signature=any_size)
    small, large = (bytes_moved(fun, n) for n in (400, 1600))
    assert large <= MAX_GROWTH * small + BYTES_ALLOWED


@pytest.mark.parametrize("name", THROUGH_VIEWS)
def test_views_of_known_sizes_cost_what_is_read_and_written(name):
    small, large = (
        bytes_moved(wend.function(FORMS["gradient"](THROUGH_VIEWS[name])), n) for n in SIZES
    )
    assert large <= MAX_GROWTH * small + BYTES_ALLOWED


@pytest.mark.parametrize("name", ["conditional", "slices", "swaps_by_positions", "two_arrays"])
def test_work_grows_linearly_with_known_sizes(name):
    small, large = (
        bytes_moved(wend.function(FORMS["second_order"](PROGRAMS[name])), n) for n in SIZES
    )
    assert large <= MAX_GROWTH * small + BYTES_ALLOWED


@pytest.mark.parametrize("form", ["value", "gradient"])
def test_work_grows_linearly_with_100_000_elements(form):
    fun = wend.function(FORMS[form](set_elements))
    small, large = (bytes_moved(fun, n) for n in (25_000, 100_000))
    assert small <= large <= MAX_GROWTH * small + BYTES_ALLOWED


@pytest.mark.parametrize("name", [*PROGRAMS, *THROUGH_VIEWS, *FROM_OUTSIDE])
def test_gradients_are_those_of_the_reference(name):
    x = np.linspace(-1.0, 1.0, 7)
    second_order = FORMS["second_order"]((PROGRAMS | THROUGH_VIEWS | FROM_OUTSIDE)[name])
    with wend.config(backend="numpy"):
        expected = second_order(x)
    with wend.config(backend="native"):
        np.testing.assert_allclose(second_order(x), expected, rtol=1e-12, atol=1e-12)


def test_the_count_sees_a_copy_in_each_trip():
    def copies(x):
        y, total = x * 1.0, 0.0
        for i in range(x.shape[0]):
            changed = y.at[i].set(total)
            total = total + changed[i - 1]
            y = y.at[0].add(changed[-1])
        return total

    small, large = (bytes_moved(wend.function(copies), n) for n in SIZES)
    assert large > 10 * small


def test_the_count_sees_whole_arrays_in_each_trip():
    def whole(x):
        y = x * 1.0
        for _ in range(x.shape[0]):
            y = np.sin(y)
        return y

    small, large = (bytes_moved(wend.function(whole), n) for n in SIZES)
    assert large > 10 * small
