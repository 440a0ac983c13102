"""`wend.testing.assert_graphs_equal`."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import traced
from wend.ir.types import tensor
from wend.ops.build import Build
from wend.testing import assert_graphs_equal


def test_names_and_lines_do_not_count():
    def first(x):
        return wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x)

    def second(y):
        # elsewhere
        return wend.while_loop(lambda w: w < 8.0, lambda w: w * w, y)

    assert_graphs_equal(traced(first, 1.0), traced(second, 2.0))


def test_the_message_shows_the_lines_that_differ():
    one = traced(lambda x: wnp.sin(x) * 2.0, 1.0)
    other = traced(lambda x: wnp.cos(x) * 2.0, 1.0)
    with pytest.raises(AssertionError, match=r"(?s)-.*= cos\(%0\).*\+.*= sin\(%0\)"):
        assert_graphs_equal(one, other)


def test_long_constants_count():
    a, b = np.arange(40.0), np.arange(40.0)
    b[7] = 0.0

    def adding(values):
        b = Build("adding")
        x = b.param(tensor("f8", 40))
        return b.finish([b.add(x, b.constant(values))])

    assert_graphs_equal(adding(a), adding(a))
    with pytest.raises(AssertionError, match="the graphs differ"):
        assert_graphs_equal(adding(a), adding(b))
