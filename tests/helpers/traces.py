"""What a function does while it is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import wend
from wend.function.tracing import Tracing


def at_trace(items: list[Any]) -> Callable[[Any], None]:
    """Return a function that appends to a list whenever Python runs it: once per trace."""

    @wend.do_not_capture
    def append(item: Any) -> None:
        items.append(item)

    return append


@contextmanager
def count_traces() -> Iterator[Callable[[], int]]:
    """Give the number of traces made in this block, of whatever function."""
    trace = Tracing.__call__
    with mock.patch.object(Tracing, "__call__", autospec=True, side_effect=trace) as counter:
        yield lambda: counter.call_count
