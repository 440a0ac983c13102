"""Loops with the passes that move work out of them, against the same loops without these."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest

import wend
from wend.backends.build import executable
from wend.ir import Graph, to_text
from wend.passes import push_out_sums
from wend.passes.pipeline import OPTIMIZE, LazyOptimized, run_passes
from wend.passes.push_out import push_out
from wend.passes.simplify_loops import simplify_loops
from wend.passes.trim_loops import trim_loops

ROWS, WIDTH = 7, 5
WITHOUT = tuple(p for p in OPTIMIZE if p not in (push_out, simplify_loops, trim_loops))

HEADERS = (
    "for t in range({T}):",
    "for t in range({A}, {A} + {T}):",
    "for t in range({A} + {T} - 1, {A} - 1, -1):",
    "for t in range(0, {T}, 2):",
    "for t, x in enumerate(xs[:{T}]):",
    "t = 0\nwhile t < {T}:",
    "t = 5\nwhile t >= 6 - {T}:",
    "t = 0\nwhile t < {T} and h[0] < 9.0:",  # which runs backwards for as many trips as it took
    "t = 0\nwhile t < 6 and np.sum(h) + t < {T}:",
)
STEPS = (
    "h = np.tanh(h @ W + xs[t] @ V)",
    "h = np.sin(h + xs[t] @ V + xs[6 - t] @ W)",
    "h = h * 0.5 + np.cos(xs[t] * ys[t]) @ V",
    "h = h * (1.0 + 0.1 * np.sum(xs[t]) * t)",
    "s = s + np.outer(xs[t], ys[t])",
    "s = s + xs[t][:, None] * h",
    "s = s - np.outer(h, ys[t]) * W",
    "s = s + (np.outer(ys[t], xs[t]) * 2.0).T",
    "c = c + xs[t] @ ys[t]",
    "c = c + h @ np.sin(xs[t])",
    "c = c + np.sum(s) * 0.01",
    "if h[0] > 0.3: h = h - xs[t]",
    "if c > 2.0: break",
    "for k in range({K}): s = s + np.outer(xs[k], h)",
    "out.append(h @ V)",
    "a = a + h @ W; b = b + h @ W",
    "s = s * 0.9",
    "s = s + np.outer(h, xs[t]) + np.cos(s)",
    "h = np.tanh(np.sin(h @ W) @ W + xs[t])",
)
ROWS_ADDED = ("rows.append(np.cos(h) * t)", "rows.append(xs[t] * ys[6 - t])")
RESULTS = (
    "np.sum(s * W) + c + np.sum(h) + np.sum(a * b) + np.sum(np.array(out) ** 2)",
    "np.sum(rows[-1] ** 2) + np.sum(rows[0])",
    "np.sum(np.array(rows)[-2:] * W[:1])",
    "np.sum(np.array(rows)[1:3]) + c",
    "np.sum(np.array(rows)[::2] ** 2)",
    "np.sum(rows[len(rows) // 2] * xs[0])",
)


def program(seed: int) -> tuple[str, Callable[..., Any]]:
    """Return a function of five arrays with a loop, and its text."""
    r = random.Random(seed)
    numbers = {"T": r.choice((0, 1, 2, 3, 6)), "A": r.choice((0, 1)), "K": r.choice((0, 1, 4))}
    result = r.choice(RESULTS)
    chosen = r.sample(STEPS, r.randint(1, 5))
    if "rows" in result:
        numbers["T"] = 6  # two rows at least
        chosen = [step for step in chosen if "break" not in step] + [r.choice(ROWS_ADDED)]
    header = r.choice(HEADERS).format(**numbers)
    steps = [step.format(**numbers) for step in chosen]
    if header.startswith("t ="):
        steps.append("t = t + 1" if "<" in header else "t = t - 1")
    head = header.replace("\n", "\n    ")
    lines = [
        "def f(W, V, xs, ys, h):",
        "    s = np.zeros((5, 5)); c = 0.1; a = b = h; out = [h]; rows = []",
        f"    {head}",
        *(f"        {step}" for step in steps),
        f"    return {result}",
    ]
    text = "\n".join(lines)
    file, space = f"<loop {seed}>", dict[str, Any](np=np)
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), space)
    return text, cast(Callable[..., Any], space["f"])


def arguments(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    shapes = (WIDTH, WIDTH), (WIDTH, WIDTH), (ROWS, WIDTH), (ROWS, WIDTH), (WIDTH,)
    return [rng.normal(size=shape) * 0.6 for shape in shapes]


def run(graph: Graph, passes: Sequence[Any], args: Sequence[Any], backend: str) -> list[Any]:
    return [*executable(backend, LazyOptimized(graph, passes))(args)]


def orders(f: Callable[..., Any], args: Sequence[Any]) -> list[Callable[..., Any]]:
    """Return the function, its gradient, and the gradient of a directional derivative."""
    first = wend.value_and_grad(f, (0, 1, 2, 3, 4))

    def slope(*args: Any) -> Any:
        return sum(np.sum(g * 0.3) for g in first(*args)[1])

    return [f, first, wend.grad(slope, (0, 1, 2, 3, 4))]


def compare(seed: int, count: int = 3, backend: str = "numpy") -> None:
    text, f = program(seed)
    args = arguments(seed)
    for order, function in enumerate(orders(f, args)[:count]):
        concrete = wend.function(function).get_concrete_function(*args)
        inputs = [*args, *concrete.captured_inputs]
        runs = [run(concrete.graph, passes, inputs, backend) for passes in (OPTIMIZE, WITHOUT)]
        for found, expected in zip(*runs, strict=True):
            scale = 1e-11 * max(1.0, float(np.max(np.abs(expected), initial=0.0)))
            np.testing.assert_allclose(
                found,
                expected,
                rtol=1e-9,
                atol=scale,
                err_msg=f"seed {seed}, order {order}\n{text}",
            )


@pytest.mark.parametrize("seed", range(20))
def test_random_loops_are_equal_with_and_without_the_passes(seed: int) -> None:
    compare(seed)


@pytest.mark.parametrize("trips", [1, 2, 4])
@pytest.mark.parametrize("seed", range(20, 30))
def test_sums_in_blocks_of_trips_are_equal(
    seed: int, trips: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wend.passes.push_out.sums_of_products", lambda w, max_bytes: ())
    monkeypatch.setattr(push_out_sums, "_MIN_BLOCKED_ELEMENTS", 1)
    monkeypatch.setattr(push_out_sums, "_MIN_BLOCK_TRIPS", 1)
    monkeypatch.setattr(push_out_sums, "_MAX_BLOCK_TRIPS", trips)
    compare(seed)


@pytest.mark.parametrize("trips", [0, 1, 255, 256, 257, 600])
def test_a_loop_of_unknown_trip_count_sums_in_blocks(trips: int) -> None:
    def last(w: Any, h: Any, trips: Any) -> Any:
        k = 0
        while k < trips and np.sum(h) < 1e9:
            h = np.tanh(h @ w)
            k = k + 1
        return np.sum(h)

    rng = np.random.default_rng(0)
    w, h = rng.normal(size=(32, 32)) * 0.1, rng.normal(size=32)
    gradient = wend.function(wend.grad(last))
    graph = gradient.get_concrete_function(w, h, trips).graph
    text = to_text(run_passes(graph, OPTIMIZE))
    assert "contract=((0,), (0,))" in text.partition("list_stack")[2]
    with wend.config(strict=True):
        expected = gradient(w, h, trips)
    np.testing.assert_allclose(gradient(w, h, trips), expected, rtol=1e-10, atol=1e-14)
