"""What `explain` tells of what was done to be fast: recomputed, hoisted, fused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.backends.native import backend as native


def told(function: Any, verb: str) -> list[str]:
    """The lines that begin with a verb; places in this file as lines counted from its first one."""
    text = function.explain()
    first = min(map(int, re.findall(r"test_remarks.py:(\d+)", text)))
    lines = [line.strip() for line in text.split("\n")]
    found = [line for line in lines if line.startswith((verb, "and "))]

    def counted(match: re.Match[str]) -> str:
        return "at +" + re.sub(r"\d+", lambda n: str(int(n[0]) - first), match[1])

    return [re.sub(r"at test_remarks.py:([\d, -]+\d)", counted, line) for line in found]


def softmax(x: Any) -> Any:
    e = wnp.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_a_nest_tells_what_it_never_stores() -> None:
    function = wend.function(softmax, backend="native")
    function(np.ones((1000, 50)))
    # the greatest and the sum of each row; the difference and its exponential
    saved = 8 * (2 * 1000 + 2 * 1000 * 50)
    assert told(function, "fuses") == [
        f"fuses 5 operations at +0, 1 into one loop over memory, which saves {saved:,} bytes"
    ]


def test_where_sizes_are_unknown_it_tells_how_many_arrays() -> None:
    spec = wend.TensorSpec([None], float)
    function = wend.function(
        lambda x: wnp.exp(x) * wnp.sin(x) + x, backend="native", input_signature=[spec]
    )
    function(np.ones(20))
    assert told(function, "fuses") == [
        "fuses 4 operations at +0 into one loop over memory, which saves 3 arrays"
    ]


def test_a_backend_without_nests_says_nothing_of_them() -> None:
    function = wend.function(softmax, backend="numpy")
    function(np.ones((1000, 50)))
    assert told(function, "fuses") == []


def test_one_operation_is_not_fused() -> None:
    function = wend.function(wnp.exp, backend="native")
    function(np.ones(1000))
    assert "fuses" not in function.explain()


def decayed(x: Any, rate: Any) -> Any:
    while x > 1.0:
        x = x * np.exp(-rate * rate)
    return x


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_was_moved_out_of_a_loop(backend: str) -> None:
    function = wend.function(decayed, backend=backend)
    function(10.0, 0.5)
    assert told(function, "hoists") == [
        "hoists neg, mul, exp at +1 out of the loop at +0: 24 bytes"
    ]
    graph = function.concrete_functions()[0].graph
    assert graph.count() - len(graph.nodes) > 2  # it was in the loop as it was recorded


def test_what_stays_in_a_loop_is_not_told() -> None:
    @wend.function
    def halved(x: Any) -> Any:
        while x > 1.0:
            x = x * 0.5
        return x

    halved(10.0)
    assert "hoists" not in halved.explain()


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_a_backward_loop_computes_again(backend: str) -> None:
    def root(a: Any) -> Any:
        x = a
        while np.abs(x * x - a) > 1e-12 * a:
            x = 0.5 * (x + a / x)
        return x

    with wend.config(backend=backend):
        slope = wend.grad(root)
        slope(2.0)
        wend.grad(slope)(2.0)
    assert told(slope, "recomputes") == [
        "recomputes div at +1 rather than keep 8 bytes a trip of the loop at +0"
    ]


def test_a_checkpoint_computes_its_inside_again() -> None:
    def wave(x: Any) -> Any:
        return wnp.sin(wnp.sin(x))

    with wend.config(backend="native"):
        slope = wend.value_and_grad(lambda x: wnp.sum(wend.checkpoint(wave)(x)))
        slope(np.ones(100))
    (line,) = told(slope, "recomputes")
    assert re.fullmatch(r"recomputes sin at \+0 rather than keep 800 bytes", line)


def test_what_the_forward_pass_needs_no_more_is_not_computed_again() -> None:
    def fun(x: Any, y: Any) -> Any:
        return wnp.sum(wend.function(softmax)(x) * y)

    slope = wend.grad(fun)
    slope(np.ones((3, 50)), np.ones((3, 50)))
    assert "recomputes" not in slope.explain()


def test_an_update_that_keeps_the_old_version() -> None:
    @wend.function
    def changed_and_kept(x: Any) -> Any:
        y, total = x * 1.0, 0.0
        for i in range(x.shape[0]):
            changed = y.at[i].set(total)
            total = total + changed[i - 1]
            y = y.at[0].add(changed[-1])
        return total

    changed_and_kept(np.ones(100))
    assert told(changed_and_kept, "copies") == [
        "copies 800 bytes a trip of the loop at +0: scatter_set at +1 keeps the old version"
    ]


def test_an_update_in_place_is_not_told() -> None:
    def recurrence(x: Any) -> Any:
        y = x * 1.0
        for i in range(1, x.shape[0]):
            y[i] = y[i - 1] * x[i]
        return y.sum()

    gradient = wend.function(wend.grad(recurrence))
    gradient(np.ones(100))
    assert "copies" not in gradient.explain()


def test_the_largest_are_told_and_how_many_more_there_are() -> None:
    @wend.function(backend="native")
    def sums(x: Any) -> Any:
        found = 0.0
        for n in wend.unroll(range(100, 600, 100)):
            y = wnp.sort(x[:n])
            found = found + wnp.sum(wnp.exp(y) * y)
        return found

    sums(np.ones(600))
    found = told(sums, "fuses")
    assert len(found) == 4
    sizes = [int(size.replace(",", "")) for size in re.findall(r"([\d,]+) bytes", "".join(found))]
    assert sizes == sorted(sizes, reverse=True)
    assert found[-1] == "and 2 more"


def test_to_explain_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    function = wend.function(softmax, backend="native")
    function(np.ones((1000, 50)))

    def compile(*args: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(native, "_compile", compile)
    assert function.explain()


def test_sums_that_are_computed_again_are_told() -> None:
    def fun(x: Any) -> Any:
        for _ in range(5):
            x = wnp.tanh(1.0 / (1.0 + wnp.exp(x)))
        return wnp.sum(x)

    slope = wend.grad(fun)
    slope(np.ones(100))
    (line,) = told(slope, "recomputes")
    assert line.startswith("recomputes add, div at +1 rather than keep ")


def test_what_several_backends_and_choices_of_cotangents_run_is_told_once() -> None:
    def both(x: Any) -> Any:
        while x < 10.0:
            x = x + np.exp(np.sin(x))
        return x, 2.0 * x

    function = wend.function(both)
    for backend in ("numpy", "native"):
        with wend.config(backend=backend):
            _, pull = wend.vjp(function, 1.0)
            pull((1.0, 0.0))
            wend.grad(lambda x: function(x)[0])(1.0)
    run = function.get_concrete_function(1.0)
    for cotangents in ((1.0, None), (None, 1.0)):
        _, taken = run.forward(1.0)
        run.backward(taken, cotangents)
    found = [line for line in run.explain().split("\n") if line.startswith("recomputes")]
    assert len(found) == 1
    assert "rather than keep 8 bytes a trip" in found[0]
