"""Random programs and their derivatives, in every way that wend runs them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

import wend
from tests.fuzz.check import check_program
from tests.fuzz.program import Program, read
from tests.fuzz.quick import quickly
from tests.fuzz.writing import programs

pytestmark = pytest.mark.filterwarnings("ignore")


def times(number: float) -> settings:
    """So many for each of Hypothesis' usual examples."""
    return settings(
        max_examples=int(number * settings().max_examples),
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )


@times(4)
@given(programs())
def test_programs(program: Program) -> None:
    with quickly(), wend.config(verify=False):
        check_program(program)


@times(2)
@given(programs())
def test_texts_are_read_back(program: Program) -> None:
    assert read(program.to_text()).to_text() == program.to_text()
