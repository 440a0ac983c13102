"""What a function does while it is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import wend


def at_trace(items: list[Any]) -> Callable[[Any], None]:
    """Return a function that appends to a list whenever Python runs it: once per trace."""

    @wend.do_not_capture
    def append(item: Any) -> None:
        items.append(item)

    return append
