"""Parts of long functions compute the same to the last bit, and equal parts are one."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.helpers.shares import sized

import wend
import wend.numpy as wnp
from wend.backends.native.codegen import outlining
from wend.backends.native.module import write
from wend.passes.pipeline import OPTIMIZE, run_passes

VECTOR = np.linspace(0.1, 1.0, 50)
MATRIX = np.linspace(0.1, 1.0, 12).reshape(4, 3)
DEFINITION = re.compile(r"^define .*?^}$", re.M | re.S)


def chain(count: int) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        for k in wend.unroll(range(count)):
            x = wnp.sin(x) * 0.5 + 0.1 * k
        return wnp.sum(x)

    return program


def sums(count: int) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        for k in wend.unroll(range(count)):
            x = wnp.cumsum(x) * 0.04 + 0.1 * k
        return wnp.sum(x)

    return program


def loops(count: int) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        for k in wend.unroll(range(count)):
            while wnp.sum(x) > 1.0:
                x = x * 0.5
            x = x + 0.25 * (k % 5)
        return wnp.sum(x)

    return program


def steps(count: int) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        weights = wnp.outer(x, x) * 0.01
        state = x
        for k in wend.unroll(range(count)):
            state = wnp.tanh(weights @ state + weights[k % 7])
        return wnp.sum(state * state)

    return program


def branches_in_a_loop(x: Any) -> Any:
    total, found = 0.0, []
    for k in range(7):
        for j in wend.unroll(range(5)):
            if total > j:
                total = total * 0.5 + x[k]
            else:
                total = total + x[k + j]
                found.append(total)
    return np.sum(np.stack(found)) * total


def changed_in_place(x: Any) -> Any:
    out = np.zeros(6)
    for k in range(6):
        out[k] = x[k] * 2.0
        if out[k] > 0.5:
            out[k] -= 0.25
    for k in range(5):
        out[k + 1] += out[k]
    return np.sum(out * out)


def called_by_address(x: Any) -> Any:
    numbers = np.asarray(x * 10, dtype=np.int16)
    order = np.argsort(-x)
    return (
        np.sum(x[order][:3])
        + np.sum(numbers**3)
        + np.linalg.det(np.outer(x[:3], x[:3]) + np.eye(3))
    )


def of_each(arrays: Any) -> Any:
    return [a - 0.1 * np.tanh(a) for a in arrays]


def of_all(arrays: Any) -> Any:
    return sum(np.sum(a**2) for a in arrays)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "chain": chain(9),
    "sums": sums(9),
    "loops": loops(9),
    "steps": steps(9),
    "branches_in_a_loop": branches_in_a_loop,
    "changed_in_place": changed_in_place,
    "called_by_address": called_by_address,
}


def text_of(fun: Callable[..., Any], *args: Any) -> str:
    graph = wend.function(fun).get_concrete_function(*args).graph
    return write(run_passes(graph, OPTIMIZE)).text


@cache
def text_of_slope(make: Callable[[int], Callable[[Any], Any]], count: int) -> str:
    return text_of(wend.grad(make(count)), VECTOR[:24])


def functions(text: str) -> list[str]:
    return [part for part in DEFINITION.findall(text) if "@wend_" in part.split("\n")[0]]


def longest_part(text: str) -> int:
    return max(part.count("\n") for part in functions(text) if "@wend_run" not in part[:40])


@pytest.mark.sampled
@pytest.mark.parametrize("lines", [3, 12, 40])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_parts_compute_what_the_whole_does(
    program: Callable[[Any], Any], lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = wend.value_and_grad(program)
    with wend.config(backend="native", cache_dir=""):
        value, slope = run(VECTOR)
        monkeypatch.setattr(outlining, "MAX_WHOLE_LINES", lines)
        monkeypatch.setattr(outlining, "_MIN_LOOP_LINES", lines // 2)
        monkeypatch.setattr(outlining, "_MIN_CUT_LINES", lines)
        monkeypatch.setattr(outlining, "_MAX_CUT_LINES", 4 * lines)
        cut = wend.value_and_grad(program)
        assert len(functions(text_of(cut, VECTOR))) > 1
        value_of_parts, slope_of_parts = cut(VECTOR)
    np.testing.assert_array_equal(value_of_parts, value)
    np.testing.assert_array_equal(slope_of_parts, slope)


def test_errors_leave_parts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Any, k: Any) -> Any:
        y = np.cumsum(x) * 2.0
        z = np.cumsum(y[: k + 1]) + y[k]
        return np.sum(np.cumsum(z))

    monkeypatch.setattr(outlining, "MAX_WHOLE_LINES", 5)
    monkeypatch.setattr(outlining, "_MIN_CUT_LINES", 5)
    run = wend.function(program, backend="native")
    with wend.config(cache_dir=""):
        assert run(VECTOR, np.int64(3)) == program(VECTOR, 3)
        with pytest.raises(IndexError, match="50"):
            run(VECTOR, np.int64(50))


@pytest.mark.sampled
@pytest.mark.parametrize("make", [sums, loops, steps], ids=["sums", "loops", "steps"])
def test_no_part_is_long(make: Callable[[int], Callable[[Any], Any]]) -> None:
    assert longest_part(text_of_slope(make, sized(250, 400))) <= 1000


@pytest.mark.sampled
@pytest.mark.parametrize("make", [loops, steps], ids=["loops", "steps"])
def test_equal_parts_are_one(make: Callable[[int], Callable[[Any], Any]]) -> None:
    small, large = (text_of_slope(make, count) for count in (200, 400))
    assert len(functions(large)) <= len(functions(small)) + 8


@pytest.mark.parametrize("form", [of_each, wend.grad(of_all)], ids=["of_each", "gradient"])
def test_functions_of_many_arrays_have_equal_parts(form: Callable[..., Any]) -> None:
    """Arguments are loaded, and results stored, where they are computed: by equal parts."""
    small, large = (text_of(form, [MATRIX] * count) for count in (300, 600))
    assert len(functions(large)) <= len(functions(small)) + 4
    calls = functions(large)[-1].count("\n") - functions(small)[-1].count("\n")
    assert calls <= 4 * 300


def test_a_short_function_is_whole() -> None:
    assert len(functions(text_of(wend.grad(sums(3)), VECTOR))) == 1
