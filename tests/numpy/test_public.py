"""The namespace: on plain arrays NumPy's own; every function there is, is tested somewhere."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.array_cases import SAMPLES
from tests.helpers.arrays import LATER
from tests.numpy import (
    test_contracting,
    test_creating,
    test_elementwise,
    test_indexing,
    test_linalg,
    test_reducing,
    test_shaping,
)
from wend.numpy.public import STAGED

# What this NumPy has not, and newer ones have
LACKING = {n for n in (*LATER, "__array_namespace_info__") if not hasattr(np, n)}
FUNCTIONS = sorted(
    name
    for name, value in vars(wnp).items()
    if callable(value) and getattr(value, "__module__", "").startswith("wend.numpy")
)

# NumPy's own do not ask their arguments what to do, or are not there.
NOT_ASKED = set("__array_namespace_info__ empty finfo full iinfo logsumexp ones zeros".split())


def test_every_function_is_compared_with_numpy() -> None:
    modules = (
        test_contracting, test_creating, test_elementwise, test_indexing, test_linalg,
        test_reducing, test_shaping,
    )  # fmt: skip
    text = "\n".join(inspect.getsource(module) for module in modules)
    tested = {*test_elementwise.UFUNCS, *test_elementwise.OTHERS}
    tested |= {sample.name for sample in SAMPLES}
    missing = [name for name in FUNCTIONS if name not in tested | LACKING]
    assert [n for n in missing if f"m.{n}(" not in text and f'"{n}"' not in text] == []


def test_every_function_is_numpys_and_says_so() -> None:
    assert [name for name in FUNCTIONS if not hasattr(np, name)] == sorted({"logsumexp", *LACKING})
    assert [name for name in FUNCTIONS if not getattr(wnp, name).__doc__] == []
    known = {name for name in FUNCTIONS if getattr(np, name, None) in STAGED}
    assert set(FUNCTIONS) - known == NOT_ASKED | LACKING


def test_what_is_no_function_is_numpys_object() -> None:
    for name in ("float32", "pi", "inf", "newaxis", "ndarray"):
        assert getattr(wnp, name) is getattr(np, name)


def test_options_of_ufuncs_work_on_plain_arrays_and_are_refused_by_name_on_traced_ones() -> None:
    x, out = np.ones(3), np.zeros(3)
    wnp.add(x, 1, out=out, where=np.array([True, False, True]))
    np.testing.assert_array_equal(out, [2, 0, 2])
    with pytest.raises(TypeError, match="takes no where"):
        wend.function(lambda x: wnp.add(x, 1, where=x > 0))(x)
    with pytest.raises(TypeError, match="takes 2 arrays"):
        wend.function(lambda x: wnp.add(x))(x)


@pytest.mark.parametrize("function", [np.spacing, np.packbits])
def test_a_function_that_is_not_known_says_so(function: Any) -> None:
    with pytest.raises(TypeError, match=r"numpy\..* is not known for traced arrays"):
        wend.function(lambda x: function(x, 1))(np.ones(3))
