"""The line of a frame."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from wend.base.source import line_of


@pytest.mark.parametrize("count", [3, 3000])
def test_the_line_is_that_of_the_frame(count: int) -> None:
    lines: list[tuple[int, int]] = []

    def note() -> None:
        frame: FrameType | None = sys._getframe(1)
        assert frame is not None
        lines.append((line_of(frame), frame.f_lineno))

    call = "note()\n    \n    (note(),\n     note())"
    scope: dict[str, Any] = {"note": note}
    exec("def calls():\n    " + "\n    ".join([call] * count), scope)
    scope["calls"]()
    assert len({line for line, _ in lines}) == 3 * count
    assert all(line == expected for line, expected in lines)
