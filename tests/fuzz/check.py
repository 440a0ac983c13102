"""Whether a program means the same in every way that wend runs it, and its derivatives do."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.derivatives import check_derivatives
from tests.fuzz.program import Program
from tests.fuzz.share import WHOLE, Share
from tests.fuzz.values import check_values
from tests.fuzz.ways import Ways

_SHORT = 20  # lines of a program whose second derivatives are quickly compiled


def check_program(program: Program, *, share: Share = WHOLE, seen: Counter | None = None) -> None:
    """Run it in the ways of a share, with its derivatives; `seen` counts what became of it.

    Raises:
        AssertionError: two ways differ.
    """
    seen = Counter() if seen is None else seen
    program = replace(program, calls=program.calls[-share.calls :])
    if program.text.count("\n") > _SHORT:
        share = replace(share, second=())
    with np.errstate(all="ignore"), unraisable() as raised:
        ways = Ways(program)
        if check_values(program, ways, share, seen):
            check_derivatives(program, ways, share, seen)
    assert not raised, f"where nothing may raise: {raised[0]!r}"


@contextmanager
def unraisable() -> Iterator[list[Any]]:
    """What is raised where nobody catches it, as in `__del__`."""
    raised: list[Any] = []
    usual = sys.unraisablehook
    sys.unraisablehook = lambda one: raised.append(one.exc_value)
    try:
        yield raised
    finally:
        sys.unraisablehook = usual
