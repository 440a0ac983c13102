"""Rows of `wend.ops.state`; what a store does besides is tested in tests/trace/test_variable.py."""

import numpy as np

from tests.helpers.cases import Case
from wend import Variable

# Held here: places do not keep variables.
ONE, MANY = Variable(0.0), Variable(np.zeros((2, 3)))
_a = np.arange(6.0).reshape(2, 3)

CASES = [
    Case(
        "store",
        lambda previous, value, variable: value,
        smooth=[(np.float64(1.5), np.float64(2.5))],
        attrs={"variable": ONE.storage},
    ),
    Case(
        "store",
        lambda previous, value, variable: value,
        smooth=[(_a, _a + 1)],
        attrs={"variable": MANY.storage},
        symbolic=False,
    ),
]
