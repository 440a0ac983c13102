"""A loop that reads and writes parts of an array costs what these are: counted in bytes, at every
order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import wend
from tests.helpers.bytes_moved import FORMS, SIZES, bytes_moved, check_growth

PROGRAMS: dict[str, Callable] = {}


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


@pytest.mark.sampled(30)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_work_grows_linearly(name, form):
    any_size = [wend.TensorSpec((None,), np.float64)]
    fun = wend.function(FORMS[form](PROGRAMS[name]), input_signature=any_size)
    check_growth(fun)


@pytest.mark.parametrize("name", ["conditional", "slices", "swaps_by_positions", "two_arrays"])
def test_work_grows_linearly_with_known_sizes(name):
    check_growth(wend.function(FORMS["second_order"](PROGRAMS[name])))


@pytest.mark.parametrize("form", ["value", "gradient"])
def test_work_grows_linearly_with_100_000_elements(form):
    fun = wend.function(FORMS[form](set_elements))
    check_growth(fun, sizes=(25_000, 100_000))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_reference(name):
    x = np.linspace(-1.0, 1.0, 7)
    second_order = FORMS["second_order"](PROGRAMS[name])
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
