"""Random programs give what plain Python gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wend
from tests.capture.programs import compiled, programs
from tests.helpers.shares import sized
from wend.base import trees

ARGUMENTS = [(0, 1, 0.5), (2, -1, 3.0), (5, 3, -1.0)]


def check(text: str, static: tuple[int, ...]) -> None:
    plain = compiled(text)
    captured = wend.function(plain, static_argnums=static)
    for args in ARGUMENTS:
        expected, _ = trees.flatten(plain(*args))
        found, _ = trees.flatten(captured(*args))
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=f"{args}\n{text}")


STATICS = st.sampled_from([(), (0,), (1, 2), (0, 1, 2)])
NORMAL = settings(
    max_examples=sized(10, 30),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)


@NORMAL
@given(programs(depth=3), STATICS)
def test_programs(text: str, static: tuple[int, ...]) -> None:
    check(text, static)


@pytest.mark.slow
@settings(NORMAL, max_examples=2000)
@given(programs(depth=4), STATICS)
def test_many_programs(text: str, static: tuple[int, ...]) -> None:
    check(text, static)
