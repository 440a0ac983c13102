"""Derivatives of random programs are the difference quotients of plain Python, or are refused."""

from __future__ import annotations

import pytest

import wend
from tests.fuzz.quick import quickly
from tests.semantics import slopes
from tests.semantics.generator import generate
from tests.semantics.world import Program

EACH, ALL = 3, 2_000
MOST_REFUSED = 0.3
NAMES = [*slopes.TRANSFORMS]


def run(transform: str, seeds: range) -> None:
    refused = 0
    with quickly(), wend.config(verify=False, cache_dir=""):
        for seed in seeds:
            program = generate(seed)
            difference = slopes.compare(program, transform)
            if difference and difference.kind != "refused":
                pytest.fail(f"seed {seed}, {transform}\n{program}\n{difference}")
            refused += difference is not None
    assert refused <= max(2, MOST_REFUSED * len(seeds))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("transform", NAMES)
def test_programs(transform: str) -> None:
    first = NAMES.index(transform) * EACH
    run(transform, range(first, first + EACH))


@pytest.mark.slow
@pytest.mark.parametrize("transform", NAMES)
def test_many_programs(transform: str) -> None:
    run(transform, range(NAMES.index(transform), ALL, len(NAMES)))


SOURCE = "k = 2.0\ndef f(x):\n    print(x)\n    return x * x * k"
STEPS = ["f(1.5)", "k = 3.0", "f(1.5)"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("transform", NAMES)
def test_wrong_slopes_are_seen(transform: str) -> None:
    program = Program("stopped", SOURCE, STEPS)
    assert slopes.compare(program, transform) is None
    stopped = SOURCE.replace("x * k", "(wend.stop_gradient(x) if wend else x) * k")
    program = Program("stopped", "import wend\n" + stopped, STEPS)
    difference = slopes.compare(program, transform)
    assert difference is not None
    assert "the slope is" in difference.found


@pytest.mark.parametrize("transform", ["grad", "value_and_grad"])
def test_stale_slopes_are_seen(transform: str) -> None:
    with wend.config(guards=False):
        difference = slopes.compare(Program("stale", SOURCE, STEPS), transform)
    assert difference is not None
    assert difference.kind == "different"
