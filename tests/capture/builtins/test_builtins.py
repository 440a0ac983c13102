"""`any` and `all` stop where Python stops, or refuse."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.shown import check_refused, check_same

import wend


def shown(v):
    print("v", v)
    return v > 1


def pure(v):
    return v * 2 > 1


def checked(v):
    assert v < 2, "too large"
    return v > 1


PROGRAMS = {
    "any": lambda x: any(shown(v) for v in (x, 2 * x, 3 * x)),
    "all": lambda x: all(shown(v) for v in (3 * x, 2 * x, x, 5 * x)),
    "some_known": lambda x: any(shown(v) for v in [0.5, x, 7.0, x]),
    "all_known": lambda x: all(shown(v) for v in [3.5, x, 0.5, x]),
    "list": lambda x: any([shown(v) for v in (x, 2 * x)]),  # noqa: C419
    "map": lambda x: any(map(shown, (x, 2 * x))),
    "map_of_array": lambda x: any(map(shown, np.ones(2) * x)),
    "array": lambda x: any(shown(v) for v in np.ones(2) * x),
    "no_calls": lambda x: 1.0 if any(v > 1 for v in (x, 2 * x)) else 0.0,
    "pure": lambda x: 1.0 if all(pure(v) for v in (x, 2 * x)) else 0.0,
    "empty": lambda x: any(shown(v) for v in ()) or all(shown(v) for v in ()),
    "conditional": lambda x: any(shown(v) if v > 1 else False for v in (x, 2 * x, 3 * x)),
    "and": lambda x: any(v > 1 and shown(v) for v in (x, 2 * x, 3 * x)),
    "filtered": lambda x: any(shown(v) for v in (x, 2 * x) if shown(1.0) or True),
    "checked": lambda x: any(checked(v) for v in (x, 2 * x)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_items_are_computed_until_one_decides(name):
    check_same(PROGRAMS[name], (1.0, 1.0, 2.5, 0.2, 0.6) if name != "checked" else (0.6, 1.5, 0.2))


def test_in_a_loop():
    def program(x):
        i = 0.0
        while not all(shown(v) for v in (x + i, 2.0 + x)):
            i += 1
        return i

    check_same(program)


def test_gradients_flow_around_it():
    fun = wend.grad(lambda x: x * 2.0 if any(pure(v) for v in (x, x * 3)) else x)
    assert (fun(1.0), fun(0.1)) == (2.0, 1.0)


def appends(x):
    log = []

    def noted(v):
        log.append(v)
        return v > 1

    return any(noted(v) for v in (x, 2 * x)) + len(log)


def binds(x):
    return hit if any((hit := v) > 1 for v in (x, 2 * x)) else 0.0


def test_items_that_change_python_are_refused():
    check_refused(binds, "any at .* stops where an item decides, which only the run knows")


def test_items_that_change_a_list_have_a_trace_for_each_path():
    check_same(appends)
