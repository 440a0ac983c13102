"""Programs with aliases give what plain Python gives, or say that they cannot; never another."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import wend
from tests.capture.alias_programs import alias_programs, compiled
from tests.helpers.shares import sized
from wend.base import trees

A, B = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 4.0])
ARGUMENTS = [(A, B, 0, 0.5), (A, B, 1, 3.0), (A, B, 3, 2.0)]


def leaves(tree):
    return trees.flatten(tree)[0]


@np.errstate(all="ignore")  # what grows beyond all bounds does so on both sides
def check(text: str) -> None:
    plain = compiled(text)
    captured = wend.function(plain)
    for args in ARGUMENTS:
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        expected = plain(*mine)
        try:
            found = captured(*theirs)
        except wend.WendError:
            continue
        for a, b in zip(*map(leaves, ((found, theirs), (expected, mine))), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=f"{args}\n{text}")


NORMAL = settings(
    max_examples=sized(8, 40),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)


@NORMAL
@given(alias_programs())
def test_alias_programs(text: str) -> None:
    check(text)


@pytest.mark.slow
@settings(NORMAL, max_examples=3000)
@given(alias_programs(depth=3))
def test_many_alias_programs(text: str) -> None:
    check(text)
