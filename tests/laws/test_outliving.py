"""No traced value outlives its trace: after a call, refused or not, none is left."""

from __future__ import annotations

import contextlib
import gc
from typing import Any

import pytest

import wend
from tests.capture.heap.test_trace_log import PROGRAMS, Lazy, all_of_its_own
from wend.eager.dispatch import Staged


class _Cached:
    """An object with caches that its methods fill."""

    last: Any = None

    def keep(self, x: Any) -> Any:
        self.last = x * 2.0
        return self.last

    def keep_and_fail(self, x: Any) -> Any:
        self.last = x * 2.0
        raise ValueError

    def keep_for_a_time(self, x: Any) -> Any:
        self.last = x * 2.0
        result = self.last + 1.0
        self.last = None
        return result

    def keep_in_a_loop(self, x: Any) -> Any:
        while x < 10.0:
            self.last = x = x * 2.0
        return x

    def keep_in_a_container(self, x: Any) -> Any:
        self.last = {"rows": [(x,), {"x": [x + 1.0]}]}
        return x

    def keep_a_closure(self, x: Any) -> Any:
        self.last = lambda: x
        return x


_CACHED = _Cached()
_FUNCTIONS = [
    *PROGRAMS,
    *(getattr(_CACHED, name) for name in vars(_Cached) if name.startswith("keep")),
    Lazy().value,
    all_of_its_own,
]


def _traced() -> dict[int, Any]:
    gc.collect()
    return {id(x): x for x in gc.get_objects() if issubclass(type(x), Staged)}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fun", _FUNCTIONS, ids=lambda fun: fun.__name__)
def test_no_tracer_outlives_its_trace(fun: Any) -> None:
    before = _traced()
    for transformed in (fun, wend.grad(fun), lambda x: wend.jvp(fun, (x,), (1.0,))):
        with contextlib.suppress(wend.WendError, ValueError, IndexError):
            wend.function(transformed)(1.0)
    left = [x for key, x in _traced().items() if key not in before]
    assert not [repr(x) for x in left if not isinstance(x, wend.Variable)]
