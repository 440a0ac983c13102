"""Checks for tests of programs and rules; start with `gradients.py`."""

from wend.testing.gradients import check_grads as check_grads
from wend.testing.graphs import assert_graphs_equal as assert_graphs_equal
