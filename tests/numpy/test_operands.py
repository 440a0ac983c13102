"""What NumPy refuses is refused with an error of its class: at once, and by compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.arrays import quiet
from tests.helpers.bad_calls import BAD_CALLS


def error_of(call: Any, args: Any) -> Exception:
    try:
        quiet(lambda: call(*(x.copy() if isinstance(x, np.ndarray) else x for x in args)))
    except Exception as error:
        return error
    raise AssertionError("no error")


@pytest.mark.parametrize(("call", "args"), BAD_CALLS, ids=range(len(BAD_CALLS)))
def test_the_class_is_numpys(call: Any, args: Any) -> None:
    expected = error_of(call, args)
    kind = next(c for c in type(expected).__mro__ if c.__module__ == "builtins")
    for options in ({"backend": "numpy"}, {"backend": "native"}, {"eager": True}):
        with wend.config(**options):
            error = error_of(wend.function(call), args)
        assert isinstance(error, kind), f"{options}: {error!r}, in NumPy {expected!r}"
