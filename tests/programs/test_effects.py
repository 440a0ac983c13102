"""Programs with effects mean the same traced as in plain Python, also where they fail."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wend
from tests.helpers.effect_programs import EffectProgram, effect_programs
from tests.helpers.shares import sized


def outcome(program: EffectProgram, wrap: Any, calls: list[tuple[float, int]]) -> list[Any]:
    """What each call returns, or how it fails; what it prints; what variables hold after it."""
    fun, variables = program.made(wrap)
    found: list[Any] = []
    for x, n in calls:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                result = [float(y) for y in fun(np.float64(x), np.int64(n))]
            except AssertionError:
                result = ["failed"]
        found += [result, printed.getvalue(), [np.array(v.concrete).tolist() for v in variables]]
    return found


def eagerly(fun: Any) -> Any:
    traced = wend.function(fun)

    def run(*args: Any) -> Any:
        with wend.config(eager=True):
            return traced(*args)

    return run


def under_a_tape(fun: Any) -> Any:
    traced = wend.function(fun)

    def run(*args: Any) -> Any:
        with wend.GradientTape():
            return traced(*args)

    return run


def test_they_mean_what_plain_python_does(arrays: str) -> None:
    count = sized(6, 40) if arrays == "host" else sized(6, 20)
    options = settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    options(given(effect_programs, many_calls)(check_meaning))()


many_calls = st.lists(st.tuples(st.floats(-1.0, 1.0), st.integers(0, 4)), min_size=2, max_size=3)


def check_meaning(program: EffectProgram, calls: Any) -> None:
    expected = outcome(program, lambda fun: fun, calls)
    for wrap in (wend.function, eagerly, under_a_tape):
        compare(outcome(program, wrap, calls), expected)


def compare(found: Any, expected: Any) -> None:
    """Equal up to rounding; what is printed is compared as numbers too."""
    for mine, theirs in zip(found, expected, strict=True):
        if isinstance(mine, str):
            mine, theirs = (text.split() for text in (mine, theirs))
            assert len(mine) == len(theirs), (mine, theirs)
            mine, theirs = ([float(word) for word in words] for words in (mine, theirs))
        if mine == ["failed"] or theirs == ["failed"]:
            assert mine == theirs
            continue
        flat = [np.hstack(x) if x else np.zeros(0) for x in (mine, theirs)]
        np.testing.assert_allclose(flat[0], flat[1], rtol=1e-12, atol=1e-12)
