"""Each line of the list of docs/python.md is true: a program differs from Python as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.semantics import corpus
from tests.semantics.world import Program, compare

PROGRAMS = [
    pytest.param(program, id=program.name)
    for program, _ in corpus.read(Path(__file__).with_name("listed.txt"))
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_listed_difference_is_there(program: Program) -> None:
    difference = compare(program, ["reference"])
    assert difference is not None, f"{program}\n\nis equal: take it off the list"
    assert difference.kind in ("different", "raw"), f"{program}\n\n{difference}"
