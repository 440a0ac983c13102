"""Pages that tools write are up to date; what is a test already is not run for them again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from tools import coverage_table, npbench_table

from tests.fuzz.quick import quickly
from tests.helpers import arrays
from tests.helpers.arrays import LATER, OWN, Sample
from tests.helpers.shares import SAMPLED_SHARE, is_chosen


def test_npbench_s_kernels() -> None:
    """Its checks are tests/programs/test_npbench.py."""

    def holds(*_: Any) -> bool:
        return True

    assert npbench_table.page(holds) == npbench_table.PAGE.read_text(encoding="utf-8")


# The checks of array functions are tests/numpy/test_functions.py, on the reference. Here they run
# on native code: the values of one function in twenty, and derivatives (whose operations
# tests/backends/native/ has) in long runs.
@pytest.mark.skipif(bool(OWN.keys() & LATER.keys()), reason="of a NumPy that has all of it")
@pytest.mark.parametrize(
    ("compiler", "run"),
    [
        pytest.param(quickly, [arrays.check_traced], id="values"),
        pytest.param(
            nullcontext,
            [arrays.check_eager, arrays.check_traced, arrays.check_through, arrays.check_gradient],
            id="all",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_array_functions(
    compiler: Callable[[], AbstractContextManager[None]], run: list[Callable[[Sample], None]]
) -> None:
    def passes(check: Callable[[Sample], None], samples: list[Sample]) -> bool:
        return check not in run or coverage_table.passes(check, samples)

    with compiler():
        page = coverage_table.page(passes, lambda function: is_chosen(function, 2 * SAMPLED_SHARE))
    assert page == coverage_table.PAGE.read_text(encoding="utf-8")
