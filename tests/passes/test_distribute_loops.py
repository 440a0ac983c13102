"""Loops whose trips run at once do what they do one after the other, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from tests.capture.programs import compiled
from wend.ir import Graph
from wend.ops.control import while_
from wend.passes import batch_lanes, distribute_loops, lane_maps
from wend.passes.pipeline import OPTIMIZE, run_passes

ROWS = 6
HEADERS = (
    "for i in range(6):",
    "for i in range(1, 6):",
    "for i in range(5, -1, -1):",
    "for i in range(0, 6, 2):",
    "for i, v in enumerate(x):",
    "for i in range(y.shape[0]):",
)
INNER = (
    "for j in range(4):",
    "for j in range(1, 6, 2):",
    "for j in range(3, -1, -1):",
    "for j in range(i + 1):",
    "for j in range(i, 6):",
    "k = 0\nwhile k < 3 and u < 9.0:\n    k = k + 1",
    "k = 0\nwhile u < 4.0 and w > -9.0 and k < 20:\n    u, k = u + 0.7, k + 1",
)
STEPS = (
    "u = 0.5 * u + x[i]",
    "u, w = w - y[i], 0.3 * u",
    "w = w + np.sin(u) * (i + 1)",
    "u = u + w if w < x[i] else u - 0.1",
    "w = w * a[2] + a[i]",
    "u = max(u, w)",
    "u = 0.5 * u + x[{j}]",
)
WRITES = (
    "out[i] = u * w",
    "out[5 - i] = u + i",
    "out[i] = out[i - 1] + u",
    "s = s + w",
    "s = max(s, u) + 0.1 * s",
    "n = n + (1 if u < w else 2)",
    "rows[i] = a * w",
    "if u < 0.3: out[i] = w",
    "if w > {big}: raise ValueError('large')",
    "c = c * 0.5 + x[i]; out[i] = c + u",
    "out[i] = x[i + {off}] + u",
)


def program(seed: int) -> tuple[str, Callable[..., Any]]:
    """Return a function that changes its arrays, and its text."""
    r = random.Random(seed)
    numbers = {"big": r.choice((0.5, 2.0, 1e9)), "off": r.choice((0, 0, -1, 1))}
    lines = ["import numpy as np", "def f(x, y, a, out, rows):", "    s, n, c = 0.5, 0, 1.0"]
    lines += [f"    {r.choice(HEADERS)}", f"        u, w = {r.choice(('x[i]', '0.5'))}, 0.2"]
    for _ in range(r.randint(1, 2)):
        lines += [f"        {line}" for line in r.choice(INNER).split("\n")]
        position = "j" if lines[-1].lstrip().startswith("for") else "i"
        steps = r.sample(STEPS, r.randint(1, 3))
        lines += [f"            {step.format(j=position)}" for step in steps]
    for step in r.sample(WRITES, r.randint(1, 3)):
        lines.append(f"        {step.format(**numbers)}")
    text = "\n".join([*lines, "    return s, n, c"])
    return text, compiled(text)


def arguments(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = (ROWS,), (ROWS,), (ROWS,), (ROWS,), (ROWS, ROWS)
    return [rng.normal(size=shape) for shape in shapes]


def outcome(f: Callable[..., Any], seed: int) -> list[Any]:
    """Return what a call gives or raises, and what its arguments have afterwards."""
    args = arguments(seed)
    try:
        results = [float(x) for x in f(*args)]
    except (ValueError, IndexError) as error:
        results = [type(error).__name__, str(error)]
    return [*results, *args]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few trips are distributed, and run in lanes."""
    monkeypatch.setattr(distribute_loops, "MIN_ELEMENTS", 1)
    monkeypatch.setattr(distribute_loops, "MIN_IN_LANES", 1)
    monkeypatch.setattr(batch_lanes, "MIN_ELEMENTS", 1)
    monkeypatch.setattr(batch_lanes, "LANES", 4)
    monkeypatch.setattr(distribute_loops, "MIN_IN_REGISTERS", 1)
    monkeypatch.setattr(lane_maps, "MIN_ELEMENTS", 1)
    monkeypatch.setattr(lane_maps, "NARROW", 4)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("seed", range(20))
def test_random_loops_are_equal(
    seed: int, backend: str, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, f = program(seed)
    with wend.config(backend=backend):
        at_once = outcome(wend.function(f), seed)
        monkeypatch.setattr(distribute_loops, "_distributed", lambda b, loop, in_registers: loop)
        one_by_one = outcome(wend.function(f), seed)
    for a, b, plain in zip(at_once, one_by_one, outcome(f, seed), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=text)
        if isinstance(plain, str):
            assert a == plain
        else:
            np.testing.assert_allclose(a, plain, rtol=1e-12, err_msg=text)


def triangle(x: Any, out: Any, rows: Any) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(i + 1):
            s = s + x[j]
        out[i] = s


def two_sizes(x: Any, out: Any, rows: Any) -> None:
    for i in range(x.shape[0]):
        u, w = x[i], 0.2
        for _ in range(5):
            u, w = 0.5 * u + w, 0.3 * w + u
        v = np.zeros(rows.shape[1]) + w
        for _ in range(6):
            v = v * 0.5 + w
        out[i] = u
        rows[i] = v


def invariant(x: Any, out: Any, rows: Any) -> None:
    for i in range(x.shape[0]):
        u = x[0]
        for _ in range(5):
            u = 0.5 * u + x[1]
        out[i] = u * u


@pytest.mark.parametrize("f", [triangle, two_sizes, invariant])
@pytest.mark.parametrize("count", [64, batch_lanes.MIN_IN_LANES + 6])
def test_what_many_trips_share_or_do_not(f: Callable[..., None], count: int) -> None:
    for backend in ("numpy", "native") if count < 100 else ("native",):
        x = np.linspace(0.0, 1.0, count)
        results = []
        for function in (f, wend.function(f)):
            out, rows = np.zeros(count), np.zeros((count, 8))
            with wend.config(backend=backend):
                function(x, out, rows)
            results.append((out, rows))
        for a, b in zip(*results, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("side", [63, 64, 100])
def test_rows_of_pixels_run_in_lanes(side: int) -> None:
    """A row is long enough for lanes in registers, though not for lanes in arrays."""

    def escapes(blank: Any) -> Any:
        out = blank.copy()
        for i in range(side):
            for j in range(side):
                c, d = 3.0 * j / side - 2.0, 3.0 * i / side - 1.5
                x, y, k = 0.0, 0.0, 0
                while k < 30 and x * x + y * y < 4.0:
                    x, y, k = x * x - y * y + c, 2.0 * x * y + d, k + 1
                out[i, j] = k
        return out

    function, blank = wend.function(escapes, backend="native"), np.zeros((side, side), int)
    np.testing.assert_array_equal(function(blank), escapes(blank))
    assert ("in 16 lanes" in function.explain()) == (side >= distribute_loops.MIN_IN_REGISTERS)


def is_distributed(graph: Graph) -> bool:
    loops = (node for node in run_passes(graph, OPTIMIZE).walk() if node.op is while_)
    return any(node.remark is not None and node.remark.is_distributed for node in loops)


def test_many_of_the_random_loops_are_distributed(few: None) -> None:
    graphs = [
        wend.function(program(seed)[1]).get_concrete_function(*arguments(seed)).graph
        for seed in range(20)
    ]
    assert sum(map(is_distributed, graphs)) > 5


def bisect(goals: Any) -> Any:
    out = np.zeros_like(goals)
    for k in range(goals.shape[0]):
        low, high = 0.0, 4.0
        for _ in range(20):
            middle = 0.5 * (low + high)
            if middle * np.exp(middle) < goals[k]:
                low = middle
            else:
                high = middle
        out[k] = 0.5 * (low + high)
    return out


def test_trips_are_counted_once_for_all_elements() -> None:
    """The loop inside is no loop in a loop: its trips do not grow with the elements."""
    graph = wend.function(bisect).get_concrete_function(np.ones(64)).graph
    optimized = run_passes(graph, OPTIMIZE)
    loops = [node for node in optimized.walk() if node.op is while_]
    assert not any(x.op is while_ for loop in loops for r in loop.regions for x in r.walk())
    with wend.config(strict=True):
        expected = wend.function(bisect)(np.linspace(1, 50, 64))
    np.testing.assert_array_equal(wend.function(bisect)(np.linspace(1, 50, 64)), expected)


def test_a_loop_that_never_ends_does_not_run_before_an_error(few: None) -> None:
    def f(x: Any) -> Any:
        s = 0.0
        for i in range(8):
            if x[i] < 0.0:
                raise ValueError(f"trip {i}")
            y = x[i]
            while y < 5.0:
                y = y * 1.5
            s = s + y
        return s

    x = np.array([1.0, 2.0, -1.0, 0.0, 1.0, 1.0, 1.0, 1.0])  # without end for 0
    for backend in ("numpy", "native"):
        with wend.config(backend=backend), pytest.raises(ValueError, match="trip 2"):
            wend.function(f)(x)


def test_explain_says_so() -> None:
    f = wend.function(bisect)
    f(np.ones(64))
    assert "64 times, the loops in it for all of these at once" in str(f.explain())
