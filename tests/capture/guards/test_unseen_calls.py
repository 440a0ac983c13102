"""Functions that code which is not captured calls are found by a profiler, beside the user's."""

from __future__ import annotations

import cProfile
import sys
from typing import Any

import pytest

import wend
from wend.base.errors import UnsupportedError


class Key:
    """A key of a dict whose hash may print."""

    is_loud = False

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        if self.is_loud:
            print("hash")
        return self.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other.number == self.number


class LoudKey(Key):
    """A key of a dict whose hash prints."""

    is_loud = True


def quiet(x: float) -> float:
    return x * len({Key(1), Key(2)})


def loud(x: float) -> float:
    return x * len({LoudKey(1), Key(2)})


def inner_first(x: float) -> float:
    y = wend.function(quiet)(x)
    return y + len({LoudKey(3)})


def test_profilers_of_the_user_go_on() -> None:
    seen = set()

    def profile(frame: Any, event: str, arg: Any) -> None:
        seen.add(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        assert wend.function(quiet)(1.5) == 3.0
        with pytest.raises(UnsupportedError, match="calls print"):
            wend.function(loud)(1.5)
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)
    assert "__hash__" in seen


def test_an_inner_trace_leaves_the_outer_profiled() -> None:
    with pytest.raises(UnsupportedError, match="calls print"):
        wend.function(inner_first)(1.5)
    assert sys.getprofile() is None


def test_profilers_in_c_go_on() -> None:
    with cProfile.Profile() as profile:
        assert wend.function(quiet)(1.5) == 3.0
    assert any("__hash__" in str(entry.code) for entry in profile.getstats())
