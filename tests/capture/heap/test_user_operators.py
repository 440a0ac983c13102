"""Objects whose methods Python calls without a call in the code."""

from __future__ import annotations

import numpy as np
import pytest

import wend


class Shown:
    """It counts how often it is shown, and makes its parts of what it gets."""

    def __init__(self, x):
        self.poly = np.insert(np.asarray(x), 0, 1)
        self.sign = 1.0 if x > 0.0 else -1.0
        self.count = 0.0

    def _show(self):
        self.count += 1.0
        return "shown"


class ByRepr(Shown):
    __repr__ = Shown._show


class ByStr(Shown):
    __str__ = Shown._show


def by_percent(x):
    return "%s" % x  # noqa: UP031


@pytest.mark.parametrize("cls", [ByRepr, ByStr])
@pytest.mark.parametrize("show", [str, by_percent, "{}".format, lambda x: f"{x}"])
def test_what_showing_an_object_changes_is_kept(cls, show):
    def fun(x):
        a = cls(x)
        while x < 5.0:
            show(a)
            x = x + 1.0
        return a.count, a.poly[1], a.sign

    compiled = wend.function(fun)
    for x in (1.0, -2.0, 7.0):
        assert compiled(x) == fun(x)
