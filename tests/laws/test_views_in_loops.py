"""A loop that reads and writes views of an array costs what these are, at every order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import wend
from tests.helpers.bytes_moved import FORMS, check_growth

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


# Parts of a matrix that the loop changes, too
PARTS: dict[str, Callable] = READS | {
    "known_rows": lambda m, i: (m[1:3] * m[1:3]).sum(),
    "last_rows": lambda m, i: (m[-3:, 0] * m[-3:, 0]).sum(),
    "every_other_of_known_rows": lambda m, i: (m[4:1:-1] * m[1:6:2]).sum(),
    "part_of_a_known_row": lambda m, i: (m[2, 1:] * m[-1, :2]).sum(),
    "row_of_columns": lambda m, i: m[:, 1:][i].sum(),
    "row_of_reversed_columns": lambda m, i: m[1:, 1:][::-1][i - 1].sum(),
    "column_of_rows_of_the_transpose": lambda m, i: m.T[1:][:, i].sum(),
    "part_of_a_column_of_the_transpose": lambda m, i: m.T[1:, 2].sum(),
}


def _reading_and_writing(read, is_conditional):
    def fun(x):
        m = np.stack([x, x * x, x + 1.0], 1)
        total = 0.0
        for i in range(1, x.shape[0]):
            if not is_conditional:
                total += np.sin(read(m, i))
            elif x[i] > 0:
                total += np.sin(read(m, i))
            m[i, 1] = x[i] * np.sin(total)
        return total

    return fun


READ_AND_WRITTEN = {
    **{f"{name}_read": _reading_and_writing(read, False) for name, read in PARTS.items()},
    **{f"{name}_read_or_not": _reading_and_writing(read, True) for name, read in PARTS.items()},
}


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


@wend.function
def write_traced(z, i, value):
    z[i] = value * value


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


ALL = THROUGH_VIEWS | READ_AND_WRITTEN | FROM_OUTSIDE


@pytest.mark.sampled(48)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", THROUGH_VIEWS)
def test_views_cost_what_is_read_and_written(name, form):
    any_size = [wend.TensorSpec((None,), np.float64)]
    fun = wend.function(FORMS[form](THROUGH_VIEWS[name]), input_signature=any_size)
    check_growth(fun)


@pytest.mark.sampled(72)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", READ_AND_WRITTEN)
def test_parts_of_what_changes_cost_what_is_read(name, form):
    any_size = [wend.TensorSpec((None,), np.float64)]
    fun = wend.function(FORMS[form](READ_AND_WRITTEN[name]), input_signature=any_size)
    check_growth(fun)


@pytest.mark.sampled(72)
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FROM_OUTSIDE)
def test_views_made_before_cost_what_is_written(name, form, is_known):
    any_size = None if is_known else [wend.TensorSpec((None,), np.float64)]
    fun = wend.function(FORMS[form](FROM_OUTSIDE[name]), input_signature=any_size)
    check_growth(fun, sizes=(400, 1600))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", THROUGH_VIEWS)
def test_views_of_known_sizes_cost_what_is_read_and_written(name):
    check_growth(wend.function(wend.grad(THROUGH_VIEWS[name])))


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", ALL)
def test_gradients_are_those_of_the_reference(name):
    x = np.linspace(-1.0, 1.0, 7)
    second_order = FORMS["second_order"](ALL[name])
    with wend.config(backend="numpy"):
        expected = second_order(x)
    with wend.config(backend="native"):
        np.testing.assert_allclose(second_order(x), expected, rtol=1e-12, atol=1e-12)
