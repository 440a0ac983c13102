"""Floor 11: checks for tests of programs and rules. `gradients.py` is the page to read first."""

from wend.testing.gradients import check_grads as check_grads
from wend.testing.graphs import assert_graphs_equal as assert_graphs_equal
