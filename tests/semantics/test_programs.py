"""Each program of `programs/` does under wend what it does in Python, or is refused as it says."""

from __future__ import annotations

import pytest

from tests.helpers.shares import is_chosen
from tests.semantics import corpus
from tests.semantics.world import WAYS, Program, compare

PROGRAMS = [
    pytest.param(program, words, id=f"{path.stem}-{program.name}")
    for path in sorted(corpus.ROOT.glob("*.txt"))
    for program, words in corpus.read(path)
]


# What a program means is decided where it is captured: most run on one backend alone.
BOTH_SHARE = 6


def test_names_are_unique() -> None:
    names = [str(parameters.id) for parameters in PROGRAMS]
    assert len(names) == len(set(names))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(("program", "words"), PROGRAMS)
def test_program(program: Program, words: str | None) -> None:
    ways = WAYS if is_chosen(program.name, BOTH_SHARE) else ["reference"]
    difference = compare(program, ways)
    if words is None:
        assert difference is None, f"{program}\n\n{difference}"
        return
    assert difference is not None, f"{program}\n\nis equal: leave out `: refused`"
    assert difference.kind == "refused", f"{program}\n\n{difference}"
    assert words in difference.found, f"{program}\n\n{difference}"
    assert "To fix it: " in difference.found, f"{program}\n\n{difference}"
