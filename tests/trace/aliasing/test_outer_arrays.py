"""Arrays of outside that functions of eager loops and branches change."""

from __future__ import annotations

import numpy as np
import pytest

import wend

TABLE = np.zeros(3)


def change_the_table(v):
    TABLE[0] += 1.0
    return v


CHANGES = {
    "a part": lambda a: a.__setitem__(0, 1.0) or a[0],
    "all": lambda a: np.copyto(a, 1.0),
    "method": lambda a: a.fill(1.0),
    "out": lambda a: np.add(a, 1.0, out=a),
    "ufunc": lambda a: np.add.at(a, [0], 1.0),
}
FORMS = {
    "while_loop": lambda body: wend.while_loop(lambda v: v < 3, lambda v: body(v) + 1, 0),
    "fori_loop": lambda body: wend.fori_loop(0, 3, lambda i, v: body(v), 0.0),
    "cond": lambda body: wend.cond(np.bool_(False), body, lambda v: v, 1.0),
    "scan": lambda body: wend.scan(lambda c, x: (body(c), x), 0.0, np.ones(3)),
}
SAYS = "an array of outside, is changed in place"


@pytest.mark.parametrize("form", FORMS)
def test_changing_an_array_of_outside_is_refused(form) -> None:
    held, rows = np.zeros(3), [np.zeros(2)]

    def store(v):
        held[1] = 5.0
        return v

    def add(v):
        rows[0] += 1.0
        return v

    for body in (store, add, change_the_table, lambda v: change_the_table(v)):
        with pytest.raises(wend.WendError, match=SAYS):
            FORMS[form](body)
    assert not any(array.any() for array in (held, rows[0], TABLE))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [k for k in CHANGES if k != "a part"])
def test_whatever_changes_it(form, kind) -> None:
    held, change = np.zeros(3), CHANGES[kind]

    def body(v):
        change(held)
        return v

    with pytest.raises(wend.WendError, match=SAYS):
        FORMS[form](body)
    assert not held.any()


@pytest.mark.parametrize("form", FORMS)
def test_arrays_of_its_own_may_change(form) -> None:
    held = np.ones(3)

    def body(v):
        own = held.copy()
        own[0] = 5.0
        own += held
        return v + own[0] * 0

    FORMS[form](body)
    assert held.tolist() == [1.0, 1.0, 1.0]
