"""Random programs do what Python does, or are refused."""

from __future__ import annotations

import pytest

import wend
from tests.fuzz.quick import quickly
from tests.semantics import world
from tests.semantics.generator import COMPOUND, STATEMENTS, WORLD, Generated, generate
from tests.semantics.shrink import shrink
from tests.semantics.tally import Tally
from tests.semantics.world import Program, compare

CHUNK, CHUNKS, ALL = 8, 2, 10_000
MOST_REFUSED = 0.25


def run(seeds: range) -> Tally:
    """Compare the programs of the seeds; fail at the first that differs without a refusal."""
    tally = Tally()
    with quickly(), wend.config(verify=False, cache_dir=""):
        for seed in seeds:
            program = generate(seed)
            difference = compare(program)
            tally.add(program, difference)
            if difference and difference.kind != "refused":
                small = shrink(program, difference)
                pytest.fail(f"seed {seed}\n{small}\n{compare(small, [difference.way])}")
    return tally


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_programs(chunk: int) -> None:
    tally = run(range(chunk * CHUNK, (chunk + 1) * CHUNK))
    assert tally.kinds["refused"] <= MOST_REFUSED * CHUNK, str(tally)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, ALL, ALL // 10))
def test_many_programs(first: int) -> None:
    tally = run(range(first, first + ALL // 10))
    assert tally.kinds["refused"] <= MOST_REFUSED * tally.count, str(tally)
    missing = {*STATEMENTS, *COMPOUND, *WORLD} - {*tally.features}
    assert not missing, f"no equal program has {missing}"


def test_a_seed_has_one_program() -> None:
    for seed in range(50):
        assert str(generate(seed)) == str(generate(seed))
    assert len({str(generate(seed)) for seed in range(50)}) == 50


def test_nearly_all_programs_are_valid() -> None:
    raised = 0
    for seed in range(200):
        raised += any(o[0][0] == "raised" for o in world.run(generate(seed), world.PLAIN))
    assert raised < 20


# What plants a difference in the function that is compiled
PLANTED = {
    "a value": "lambda *args, **options: 1.5",
    "a print": "lambda *args, **options: print('more') or fun(*args, **options)",
    "a change": "lambda *args, **options: globals().update(k=8) or fun(*args, **options)",
    "a warning": "lambda *args, **options: warnings.warn('more') or fun(*args, **options)",
    "an error": "lambda *args, **options: 1 / 0",
}


@pytest.mark.parametrize("what", PLANTED)
def test_differences_are_seen(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(fun: object) -> object:
        return eval(PLANTED[what], {**fun.__globals__, "fun": fun, "globals": lambda: vars_of(fun)})

    def vars_of(fun: object) -> dict[str, object]:
        return fun.__globals__

    monkeypatch.setattr(wend, "function", planted)
    program = Program("planted", "import warnings\nk = 2\ndef f(x):\n    return x * k", ["f(2)"])
    difference = compare(program)
    assert difference is not None
    assert difference.kind == ("raw" if what == "an error" else "different")


def test_differences_become_small(monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(fun: object) -> object:
        return lambda *args, **options: (fun(*args, **options), print("more"))[0]

    monkeypatch.setattr(wend, "function", planted)
    program = generate(7)
    difference = compare(program)
    assert difference is not None
    small = shrink(program, difference)
    assert len(small.steps) == 1
    assert len(small.source.splitlines()) <= 3


def test_refusals_are_told() -> None:
    program = Generated("refused", "def f(x):\n    return x if str(x) == '1' else 0", ["f(1.0)"])
    difference = compare(program)
    assert difference is not None
    tally = Tally()
    tally.add(program, difference)
    assert tally.kinds == {"refused": 1}
    assert "ConcreteValueError" in str(tally)
