"""Loops without an end: Python would not come back, and neither does what is compiled."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import wend


class Interrupted(Exception):
    """Of the alarm below."""


@pytest.fixture
def alarm() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise Interrupted

    old = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 2.0)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, old)


def of_itself(x: Any, y: Any) -> Any:
    while x > 0:
        x = x * 1.0
    return x


def of_another(x: Any, y: Any) -> Any:
    while x > 0:
        y = y + 1.0
    return y


def unchanged(x: Any, y: Any) -> Any:
    while x > 0:
        y = y * 1.0
    return x + y


ENDLESS = [of_itself, of_another, unchanged]


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("fun", ENDLESS)
def test_what_is_read_of_an_endless_loop_is_never_given(
    fun: Callable[..., Any], backend: str, alarm: None
) -> None:
    compiled = wend.function(fun, backend=backend)
    assert compiled(-1.0, 3.0) == fun(-1.0, 3.0)
    assert wend.grad(compiled)(-1.0, 3.0) in (0.0, 1.0)
    with pytest.raises(Interrupted):
        compiled(1.0, 3.0)


def test_a_loop_that_nobody_reads_may_go(alarm: None) -> None:
    """It has no effect, so nobody can tell."""

    @wend.function
    def fun(x: Any) -> Any:
        y = x
        while y > 0:
            y = y * 1.0
        return x + 1.0

    assert fun(1.0) == 2.0
