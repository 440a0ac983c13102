"""Array functions of lists that hold traced values, alone and among several arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.testing import check_grads

ONES = np.ones(3)
JOINED: dict[str, Callable[..., Any]] = {
    "concatenate": lambda t: np.concatenate(([t], ONES)),
    "concatenate_lists": lambda t: np.concatenate([[t, 1], (2.0,)]),
    "concatenate_rows": lambda t: np.concatenate(([[t]], [[1.0]]), axis=1),
    "concatenate_a_product": lambda t: np.concatenate(([np.cos(t)], ONES * np.sin(t))),
    "by_name": lambda t: np.vstack(tup=([t, 1.0], [1.0, 2.0]), dtype=np.float32, casting="unsafe"),
    "vstack": lambda t: np.vstack(([t, 1.0], [1.0, 2.0])),
    "hstack": lambda t: np.hstack(([t], ONES)),
    "dstack": lambda t: np.dstack(([t], [t * t])),
    "column_stack": lambda t: np.column_stack(([t, 1.0], [1.0, t])),
    "stack": lambda t: np.stack(([t, 1.0], (2.0, t)), axis=1),
    "append": lambda t: np.append(ONES, [t]),
    "block": lambda t: np.block([[t, 1.0], [2.0, t]]),
    "select": lambda t: np.select([[t > 0, t < 0]], [[t, 2.0]], 0.0),
    "choose": lambda t: np.choose([0, 1], [[t, 1.0], [2.0, 3.0]]),
    "multi_dot": lambda t: np.linalg.multi_dot([[[t, 1.0], [0.0, 1.0]], np.eye(2)]),
}
OTHERS: dict[str, Callable[..., Any]] = {
    "lexsort": lambda t: np.lexsort(([t, 1.0], [2.0, 3.0])),
    "lexsort_arrays": lambda t: np.lexsort((np.array([t, 1.0]), np.array([2.0, 2.0]))),
    "meshgrid": lambda t: np.meshgrid([t, 1.0], [2.0, t]),
}


@pytest.mark.parametrize("name", [*JOINED, *OTHERS])
def test_lists_of_traced_values_are_arrays(name: str) -> None:
    function = (JOINED | OTHERS)[name]
    compiled = wend.function(function)
    for t in (1.5, -0.5):
        np.testing.assert_equal(compiled(t), function(t))


@pytest.mark.parametrize("name", [name for name in JOINED if name != "by_name"])
def test_joined_lists_have_derivatives(name: str) -> None:
    check_grads(lambda t: np.sum(np.sin(JOINED[name](t))), (0.7,), order=1)


def test_an_array_that_must_be_copied_has_numpys_error() -> None:
    def program(t: Any) -> Any:
        return np.array([t, 1.0], copy=False)

    with pytest.raises(ValueError, match="Unable to avoid copy") as expected:
        program(1.0)
    with pytest.raises(ValueError, match="Unable to avoid copy") as error:
        wend.function(program)(1.0)
    assert str(expected.value) in str(error.value)
