"""Random graphs and their gradients in native code and by the interpreter."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

import wend
from tests.fuzz.agree import check
from tests.fuzz.example import Example, read
from tests.fuzz.making import examples
from tests.fuzz.quick import quickly


def times(number: int) -> settings:
    """So many for each of Hypothesis' usual examples."""
    return settings(
        max_examples=number * settings().max_examples,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )


@times(20)
@given(examples())
def test_as_written(example: Example) -> None:
    with quickly(), wend.config(verify=False):
        check(example, modes=("loose",))


@times(4)
@given(examples())
def test_strictly(example: Example) -> None:
    with quickly(), wend.config(verify=False):
        check(example)


@times(6)
@given(examples())
def test_optimized(example: Example) -> None:
    with wend.config(verify=False):
        check(example, modes=("loose",))


@times(2)
@given(examples())
def test_texts_are_read_back(example: Example) -> None:
    assert read(example.to_text()).to_text() == example.to_text()
