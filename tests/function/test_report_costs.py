"""What `explain` tells of runs: records of loops, calls of Python, memory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp


def costs(function: Any) -> list[str]:
    """The lines of the only trace, without its memory, lines of the file as `here`."""
    found = [line.strip() for line in function.explain().split("\n")[3:] if "holds for" not in line]
    return [re.sub(r"test_report_costs.py:\d+", "here", line) for line in found]


def grown(x: Any, rate: Any) -> Any:
    while x < 10.0:
        x = x + wnp.exp(wnp.sin(x)) * rate
    return x


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_scalar_loop_keeps_its_carry(backend: str) -> None:
    with wend.config(backend=backend):
        slope = wend.grad(grown)
        slope(1.0, 0.5)
    assert costs(slope) == [
        "keeps `x` f64[], 8 bytes a trip of the loop at here",
        "runs the loop at here until its test fails",
        "recomputes sin, exp at here rather than keep 8 bytes a trip of the loop at here",
    ]


def test_the_value_alone_keeps_nothing() -> None:
    function = wend.function(grown, backend="native")
    function(1.0, 0.5)
    assert costs(function) == ["runs the loop at here until its test fails"]


def test_arrays_count_with_their_elements() -> None:
    def fun(x: Any) -> Any:
        for _ in range(5):
            x = wnp.tanh(x) * x
        return wnp.sum(x)

    with wend.config(backend="native"):
        slope = wend.grad(fun)
        slope(np.ones(10))
        unknown = wend.function(slope, input_signature=[wend.TensorSpec([None], float)])
        unknown(np.ones(10))
    found = [line for line in costs(slope) if line.startswith("keeps")]
    assert found
    assert all("f64[10], 88 bytes a trip" in line for line in found)
    found = [line for line in costs(unknown) if line.startswith("keeps")]
    assert found
    assert all("8 bytes and its elements a trip" in line for line in found)


def test_lists_of_the_program_and_of_inner_loops() -> None:
    @wend.function(backend="native")
    def collected(x: Any) -> Any:
        found = []
        while x < 10.0:
            found.append(x * 0.5)
            x = x + 1.0
        return sum(found)

    collected(1.0)
    assert costs(collected)[0] == "keeps mul at here f64[], 8 bytes a trip of the loop at here"

    def nested(x: Any) -> Any:
        for _ in range(3):
            y = x
            while y < 10.0:
                y = y + wnp.exp(wnp.sin(y))
            x = wnp.cos(x) * y
        return x

    with wend.config(backend="native"):
        slope = wend.grad(nested)
        slope(1.0)
    assert any("bytes and its records a trip" in line for line in costs(slope))


def test_loops_tell_how_often_they_run_and_what_leaves_them() -> None:
    def layers(w: Any, v: Any, xs: Any) -> Any:
        h = xs[0] @ v
        for x in xs:
            h = np.tanh(h @ w + x @ v)
        return np.sum(h)

    xs = np.ones((10, 3))
    slope = wend.function(wend.grad(layers, (0, 1)))
    slope(np.eye(8), np.ones((3, 8)), xs)
    lines = costs(slope)
    assert "runs the loop at here 10 times" in lines
    assert any(re.match("pushes dot_general .* for many trips at once", x) for x in lines)

    def of_rows(xs: Any, count: int) -> Any:
        rows = []
        for x in xs:
            rows.append(np.sin(x))
        return np.array(rows)[:count]

    unknown = wend.TensorSpec([None, 3], float), wend.TensorSpec([], "int64")
    for specs, text in ((), "10 times"), (unknown, "once for each row of an array"):
        function = wend.function(of_rows, input_signature=specs or None)
        function(xs, np.int64(2))
        assert f"runs the loop at here {text}" in costs(function)
    rows = wend.function(lambda xs: of_rows(xs, 4))
    rows(xs)
    text = "4 times of 10: 144 bytes of rows are not read"
    assert costs(rows)[-1] == f"runs the loop at here {text}"


def test_loops_tell_the_bytes_of_rows_that_are_not_kept() -> None:
    def last(xs: Any, v: Any) -> Any:
        c, rows = v, []
        for x in xs:
            c = c * 0.5 + x * np.exp(v)
            rows.append(c)
        return np.array(rows)[-6:]

    function = wend.function(last)
    function(np.ones(20), np.ones(3))
    lines = costs(function)
    text = "14 + 6 times of 20: 336 bytes of rows are not read"
    assert f"runs the loop at here {text}" in lines
    assert "hoists exp at here out of the loop at here: 24 bytes" in lines


def test_each_list_keeps_its_own_rows() -> None:
    def three(xs: Any) -> Any:
        a, b, c, s = [], [], [], xs[0]
        for x in xs:
            s = s * 0.5 + x
            a.append(np.sin(s))
            b.append(np.cos(s))
            c.append(np.exp(s))
        return np.array(a)[-7], np.array(b)[-3:-1], np.array(c)[-6:]

    function = wend.function(three, backend="native")
    xs = np.linspace(0.1, 2.0, 20)
    for found, expected in zip(function(xs), three(xs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    text = "13 + 3 + 3 times of 20: 352 bytes of rows are not read"
    assert f"runs the loop at here {text}" in costs(function)


def test_a_concrete_function_tells_of_itself() -> None:
    function = wend.function(lambda x: wnp.special.polygamma(1, x), backend="native")
    run = function.get_concrete_function(np.eye(2))
    assert run.explain() == ""
    run(np.eye(2))
    assert (
        re.sub(r"test_report_costs.py:\d+", "here", run.explain()).splitlines()[0]
        == "runs in Python: polygamma at here"
    )


def test_memory_of_lists_is_what_a_run_needed() -> None:
    with wend.config(backend="native"):
        slope = wend.grad(grown)
        slope(1.0, 1e-4)
    run = slope.concrete_functions()[0]
    (line,) = [line for line in run.explain().split("\n") if "holds for" in line]
    (size,) = map(int, re.findall(r"(\d+) bytes of lists", line.replace(",", "")))
    trips = 0
    x = 1.0
    while x < 10.0:
        x += float(np.exp(np.sin(x))) * 1e-4
        trips += 1
    assert 8 * trips <= size <= 8 * 2 * trips + 512


def smoothed(w: Any, h: Any) -> Any:
    for _ in range(5):
        h = np.tanh(h @ w)
    return h


def halved(w: Any, h: Any) -> Any:
    while np.sum(h) > 1.0:
        h = h * 0.5 + np.sin(h) * 0.1
    return h


def delayed(w: Any, h: Any) -> Any:
    a = b = c = h
    while np.sum(a) > 1.0:
        a, b, c = w @ a + c * 0.1, a, b
    return a


def delayed_product(w: Any, h: Any) -> Any:
    a = b = c = h
    while np.sum(a) > 1.0:
        a, b, c = w @ c + 0.1 * np.tanh(a), a, b
    return a


def filled(w: Any, h: Any) -> Any:
    out = np.zeros(200)
    for k in range(1, 200):
        out[k] = out[k - 1] + h[k]
    return out


def summed(w: Any, h: Any) -> Any:
    s = np.zeros(200)
    for _ in range(5):
        h = np.tanh(h @ w)
        s = s + h
    return s


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (smoothed, "`h` f64[200] in 2 buffers in the loop at here: 3,200 bytes"),
        (halved, "`h` f64[200] in 1 buffer in the loop at here: 1,600 bytes"),
        (delayed, "`a`, `b`, `c` f64[200] in a ring of 3 in the loop at here: 4,800 bytes"),
        (delayed_product, "`a`, `b`, `c` f64[200] in a ring of 4 in the loop at here: 6,400 bytes"),
        (filled, "f64[200] in 1 buffer in the loop at here: 1,600 bytes"),
        (
            summed,
            "`h` f64[200] in 2 buffers, `s` f64[200] in 1 buffer in the loop at here: 4,800 bytes",
        ),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_loops_tell_the_buffers_of_their_carry(f: Any, text: str) -> None:
    function = wend.function(f)
    function(np.full((200, 200), 1e-3), np.ones(200))
    assert f"carries {text}" in costs(function)


def test_loops_tell_of_no_small_carries_and_of_none_that_they_record() -> None:
    function = wend.function(smoothed)
    function(np.eye(5), np.ones(5))
    assert not any(line.startswith("carries") for line in costs(function))
    slope = wend.function(wend.grad(lambda w, h: np.sum(smoothed(w, h))))
    slope(np.full((200, 200), 1e-3), np.ones(200))
    lines = [line for line in costs(slope) if line.startswith("carries")]
    assert not any("`h`" in line for line in lines)
