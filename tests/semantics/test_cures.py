"""The cures of refusals help: a program that is refused does what Python does in its cured form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.semantics.world import PLAIN, Program, compare, run

FILE = Path(__file__).with_name("cures.txt")


def read() -> list[object]:
    """Return the programs of the file: one that is refused, the words, and its cured form."""
    params = []
    for part in FILE.read_text(encoding="utf-8").split("\n=== ")[1:]:
        heading, _, body = part.partition("\n")
        name, _, words = heading.partition(": ")
        refused, cured = (
            Program(name, source, [step for step in steps.splitlines() if step.strip()])
            for source, _, steps in (text.partition("---\n") for text in body.split("+++\n"))
        )
        params.append(pytest.param(refused, words, cured, id=name))
    return params


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("refused", "words", "cured"), read())
def test_cure(refused: Program, words: str, cured: Program) -> None:
    difference = compare(refused, ["reference"])
    assert difference is not None, f"{refused}\n\nis equal: leave it out"
    assert difference.kind == "refused", f"{refused}\n\n{difference}"
    assert words in difference.found, f"{refused}\n\n{difference}"
    assert "To fix it: " in difference.found, f"{refused}\n\n{difference}"
    if not cured.steps:  # it computes the same
        cured = Program(cured.name, cured.source, refused.steps)
        values = [[step[0] for step in run(p, PLAIN)] for p in (refused, cured)]
        assert str(values[0]) == str(values[1])
    difference = compare(cured)
    assert difference is None, f"{cured}\n\n{difference}"
