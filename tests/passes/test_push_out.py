"""Loops with the passes that move work out of them, against the same loops without these."""

from __future__ import annotations

import contextlib
import io
import linecache
import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest
from bench.peers.python import LIBRARY
from bench.workloads import lstm

import wend
from wend.backends.build import executable, passes_of
from wend.ir import Graph, Node, to_text
from wend.ir.types import TOKEN, ListType
from wend.ops import contracting, elementwise, reducing
from wend.ops.control import while_
from wend.passes import push_out_blocks, push_out_sums
from wend.passes.algebra import algebra
from wend.passes.inline import inline_calls
from wend.passes.lower_linear_blocks import lower_linear_blocks
from wend.passes.lower_parallel_maps import lower_parallel_maps
from wend.passes.pipeline import OPTIMIZE, LazyOptimized, run_passes

ROWS, WIDTH = 7, 5
# What a backend cannot do without
REQUIRED = (lower_linear_blocks, inline_calls, lower_parallel_maps)

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
# Loops whose trip count only the run knows, some of which go past the end of an array
COUNTS_AT_ENTRY = (
    "for t in range(n):",
    "for t in range(n - 1, -1, -1):",
    "for t in range(n, 0, -1):",
    "for t in range({A}, n):",
    "for t in range(-2, n):",
    "for t, x in enumerate(xs[:n]):",
    "for t in range(0, n, 2):",
    "t = 0\nwhile t <= n - 1:",
    "t = n\nwhile t > {A}:",
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
    "z[t % 6] = np.cos(h) + xs[t]",
    "z[t % 6] += z[(t + 1) % 6] * 0.3 + ys[t]",
    "c = c + np.sum(z[t % 6]) * 0.1",
    "h = h + np.where(ys[t] > 9.0, np.sqrt(-xs[t] ** 2 - 1.0), xs[t])",
    "if c > 90.0: h = h / (c - c)",
    "if c < 3.0: h = h + np.tanh(W @ ys[0]) * c",
    "assert np.sum(h) < 2.0, 'a large sum'",
    "h = h + xs[int(c * 4.0)]",
    "print(t)",
    "if t > 2: print('late', t)",
    "for k in range({K}):\n            if h[k] > 0.5: break\n            h = h + 0.1 * xs[k]",
)
ROWS_ADDED = (
    "rows.append(np.cos(h) * t); more.append(h + xs[t])",
    "rows.append(xs[t] * ys[6 - t]); more.append(np.sin(ys[t]))",
)
RESULTS = (
    "np.sum(s * W) + c + np.sum(h) + np.sum(a * b) + np.sum(np.array(out) ** 2)",
    "np.sum(rows[-1] ** 2) + np.sum(rows[0])",
    "np.sum(np.array(rows)[-2:] * W[:1])",
    "np.sum(np.array(rows)[1:3]) + c",
    "np.sum(np.array(rows)[::2] ** 2)",
    "np.sum(rows[len(rows) // 2] * xs[0])",
    "np.sum(np.array(rows)[-3:-1] ** 2) + np.sum(np.sin(more[-1]))",
    "np.sum(np.array(rows)[-1:] ** 2) + np.sum(np.array(more)[-2:-1]) * c",
    "np.sum(z[-2:] * W[:2]) + c",
    "np.sum(z[1] ** 2)",
)


def program(
    seed: int, headers: Sequence[str] = HEADERS, trips: Sequence[int] = (0, 1, 2, 3, 6)
) -> tuple[str, Callable[..., Any]]:
    """Return a function of five arrays with a loop, and its text."""
    r = random.Random(seed)
    numbers = {"T": r.choice(trips), "A": r.choice((0, 1)), "K": r.choice((0, 1, 4))}
    result = r.choice(RESULTS)
    chosen = r.sample(STEPS, r.randint(1, 5))
    if "rows" in result:
        numbers["T"] = 6  # two rows at least
        chosen = [step for step in chosen if "break" not in step] + [r.choice(ROWS_ADDED)]
    header = r.choice(headers).format(**numbers)
    steps = [step.format(**numbers) for step in chosen]
    if header.startswith("t ="):
        steps.append("t = t + 1" if "<" in header else "t = t - 1")
    head = header.replace("\n", "\n    ")
    lines = [
        "def f(W, V, xs, ys, h):",
        "    s = np.zeros((5, 5)); c = 0.1; a = b = h; out = [h]",
        "    rows = []; more = []; z = np.zeros((6, 5))",
        f"    n = int(W[0, 0] * 0.0) + {numbers['T']}",
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


def run(
    graph: Graph, passes: Sequence[Any], args: Sequence[Any], backend: str
) -> tuple[list[Any], str, str]:
    """Return the results, the text that is printed, and the error that ends the run."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            results = [*executable(backend, LazyOptimized(graph, passes))(args)]
        except (AssertionError, IndexError) as error:
            return [], printed.getvalue(), f"{type(error).__name__}: {error}"
    return [x for x in results if x is not None], printed.getvalue(), ""


def orders(f: Callable[..., Any], args: Sequence[Any]) -> list[Callable[..., Any]]:
    """Return the function, its gradient, and the gradient of a directional derivative."""
    first = wend.value_and_grad(f, (0, 1, 2, 3, 4))

    def slope(*args: Any) -> Any:
        return sum(np.sum(g * 0.3) for g in first(*args)[1])

    return [f, first, wend.grad(slope, (0, 1, 2, 3, 4))]


def compare(
    seed: int, count: int = 3, backend: str = "numpy", *, strict: bool = False, **options: Any
) -> None:
    """Compare a program after all passes of a backend with the interpreter after none.

    In strict mode all bits are compared, and products of transposes are read as other products on
    both sides: so NumPy computes them.
    """
    with wend.config(strict=strict):
        _compare(seed, count, backend, 0.0 if strict else 1.0, **options)


def _compare(seed: int, count: int, backend: str, bound: float, **options: Any) -> None:
    text, f = program(seed, **options)
    args = arguments(seed)
    compared = REQUIRED if bound else (*REQUIRED, algebra)
    for order, function in enumerate(orders(f, args)[:count]):
        concrete = wend.function(function).get_concrete_function(*args)
        arrays = iter([*args, *concrete.captured_inputs])
        inputs = [None if x.type == TOKEN else next(arrays) for x in concrete.graph.params]
        with np.errstate(all="ignore"):
            results, *effects = run(concrete.graph, passes_of(backend), inputs, backend)
            expected, *expected_effects = run(concrete.graph, compared, inputs, "numpy")
        message = f"seed {seed}, order {order}\n{text}"
        assert effects == expected_effects, message
        for result, other in zip(results, expected, strict=True):
            scale = bound * 1e-11 * max(1.0, float(np.max(np.abs(other), initial=0.0)))
            np.testing.assert_allclose(
                result, other, rtol=bound * 1e-9, atol=scale, err_msg=message
            )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(40_000, 40_012))
def test_random_loops_have_equal_bits_in_strict_mode(seed: int) -> None:
    compare(seed, strict=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(20))
def test_random_loops_are_equal_with_and_without_the_passes(seed: int) -> None:
    compare(seed)


@pytest.mark.parametrize(
    ("seeds", "count"),
    [
        (range(100, 104), 2),
        *(
            pytest.param(range(k, k + 50), 3, marks=(pytest.mark.slow, pytest.mark.timeout(1800)))
            for k in range(10_000, 11_000, 50)
        ),
    ],
)
def test_random_loops_are_equal_in_machine_code(seeds: range, count: int) -> None:
    for seed in seeds:
        compare(seed, count, "native")


@pytest.mark.sampled(12)
@pytest.mark.parametrize("trips", [2, 3, 256])
@pytest.mark.parametrize("seed", range(30, 45))
def test_loops_counted_at_entry_are_equal_in_blocks(
    seed: int, trips: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_out_blocks, "_MAX_TRIPS", trips)
    compare(seed, headers=COUNTS_AT_ENTRY, trips=(0, 1, 2, 3, 6, 9))


@pytest.mark.sampled(8)
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


def test_the_limit_of_memory_holds_for_what_a_product_is_computed_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sines of a trip take 1,200 bytes, their product with v takes 24."""

    def layer(u: Any, v: Any, xs: Any, h: Any) -> Any:
        for x in xs:
            h = np.tanh(h + np.sin(np.outer(x, u)) @ v)
        return h

    args = np.ones(50), np.ones(50), np.ones((10, 3)), np.zeros(3)
    graph = wend.function(layer).get_concrete_function(*args).graph
    for limit, is_pushed in (24_000, True), (11_999, False):
        monkeypatch.setattr("wend.passes.push_out.MAX_BYTES", limit)
        before_loop = to_text(run_passes(graph, OPTIMIZE)).partition("while(")[0]
        assert ("dot_general" in before_loop) is is_pushed


def counted(w: Any, xs: Any, h: Any, n: Any) -> Any:
    for t in range(n):
        h = np.tanh(h + xs[t] @ w)
    return h


def backwards(w: Any, xs: Any, h: Any, n: Any) -> Any:
    for t in range(n - 1, -1, -1):
        h = np.tanh(h + xs[t] @ w)
    return h


def from_the_last(w: Any, xs: Any, h: Any, n: Any) -> Any:
    for t in range(-2, n):
        h = np.tanh(h + xs[t] @ w)
    return h


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("f", [counted, backwards, from_the_last], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 255, 256, 257, 600, 601])
def test_products_where_the_count_is_known_at_entry(f: Any, n: int, backend: str) -> None:
    rng = np.random.default_rng(n)
    args = rng.normal(size=(5, 5)) * 0.3, rng.normal(size=(600, 5)), rng.normal(size=5), n
    compiled = wend.function(f, backend=backend)
    if n > 600:
        with pytest.raises(IndexError, match="index 600 is out of bounds for axis 0 with size 600"):
            compiled(*args)
        return
    np.testing.assert_allclose(compiled(*args), f(*args), rtol=1e-9)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("f", [counted, backwards], ids=lambda f: f.__name__)
def test_products_that_exceed_the_limit_of_memory_leave_in_blocks(
    f: Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trip takes 40 bytes, so a block has three trips."""
    monkeypatch.setattr("wend.passes.push_out.MAX_BYTES", 130)
    rng = np.random.default_rng(0)
    args = rng.normal(size=(5, 5)) * 0.3, rng.normal(size=(10, 5)), rng.normal(size=5)
    graph = wend.function(lambda w, xs, h: f(w, xs, h, 10)).get_concrete_function(*args).graph
    text = to_text(run_passes(graph, OPTIMIZE))
    assert "value=i64[]<3>" in text
    assert "narrow" in text
    (result,) = executable(backend, LazyOptimized(graph, passes_of(backend)))(args)
    np.testing.assert_allclose(result, f(*args, 10), rtol=1e-12)


def test_products_of_an_unknown_number_of_rows_are_pushed_out_in_blocks() -> None:
    def last(w: Any, xs: Any, h: Any) -> Any:
        for x in xs:
            h = np.tanh(h + x @ w)
        return np.sum(h)

    signature = [wend.TensorSpec([5, 5]), wend.TensorSpec([None, 5]), wend.TensorSpec([5])]
    slope = wend.function(wend.grad(last, (0, 1, 2)), input_signature=signature)
    rng = np.random.default_rng(0)
    w, h = rng.normal(size=(5, 5)) * 0.3, rng.normal(size=5)
    for n in (0, 1, 3, 256, 300):
        xs = rng.normal(size=(n, 5))
        expected = wend.grad(last, (0, 1, 2))(w, xs, h)
        for x, y in zip(slope(w, xs, h), expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
    assert "pushes dot_general" in slope.explain()
    with wend.config(strict=True):
        strict = wend.function(last, input_signature=signature)
        strict(w, xs, h)
        assert "pushes" not in strict.explain()


@pytest.mark.parametrize("trips", [2, 7])
@pytest.mark.parametrize(
    "product",
    [
        lambda x, y: x[:, None] * y,
        lambda x, y: np.outer(y, x).T * 2.0,
        lambda x, y: x[:, None] * y + np.outer(x, y),
        lambda x, y: np.exp(x)[:, None] * y,
    ],
    ids=["spread", "outer", "both", "of_rows"],
)
def test_gradients_of_sums_of_outer_products_are_products(product: Any, trips: int) -> None:
    def total(a: Any, b: Any) -> Any:
        s = np.zeros((3, 4))
        for x, y in zip(a, b, strict=True):
            s = s + product(x, y)
        return np.sum(np.sin(s))

    rng = np.random.default_rng(0)
    args = rng.normal(size=(trips, 3)), rng.normal(size=(trips, 4))
    slope = wend.grad(total, (0, 1))
    graph = wend.function(slope).get_concrete_function(*args).graph
    loops = [node for node in run_passes(graph, OPTIMIZE).walk() if node.op is while_]
    assert not any(
        node.op is reducing.reduce_sum for loop in loops for node in loop.regions[1].walk()
    )
    with wend.config(strict=True):
        expected = wend.grad(total, (0, 1))(*args)
    for x, y in zip(slope(*args), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)


def test_a_factor_that_two_sums_share_counts_once_in_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each trip records a, b and d, of 40 bytes each."""

    def sums(h: Any, w: Any) -> Any:
        s = t = np.zeros((5, 5))
        for _ in range(10):
            h = np.tanh(h @ w)
            s = s + np.outer(np.sin(h), h)
            t = t + np.outer(np.cos(h), h)
        return s, t

    graph = wend.function(sums).get_concrete_function(np.ones(5), np.eye(5)).graph
    for limit, is_pushed in (1_200, True), (1_199, False):
        monkeypatch.setattr("wend.passes.push_out.MAX_BYTES", limit)
        text = to_text(run_passes(graph, OPTIMIZE))
        assert ("f64[5,5] = dot_general" in text) is is_pushed


def products_of(loop: Node) -> int:
    """Return how many products a trip of a loop has."""
    operations = [node.op for region in loop.regions for node in region.walk()]
    return operations.count(contracting.dot_general)


@pytest.mark.parametrize("batch", [1, 8, 15])
def test_an_lstm_records_gates_and_states_and_runs_backwards_with_one_product(batch: int) -> None:
    steps, width = 20, 8
    args = lstm.arguments(steps, batch, width)
    gradient = wend.value_and_grad(lstm.plain(LIBRARY), (0, 1, 2))
    graph = wend.function(gradient).get_concrete_function(*args).graph
    optimized = run_passes(graph, OPTIMIZE)
    loops = [node for node in optimized.nodes if node.op is while_]
    recorded = [x for x in loops[0].results if isinstance(x.type, ListType)]
    assert [x.type.element.nbytes for x in recorded] == [4 * batch * width] * 6
    for loop in loops:
        assert products_of(loop) == 1
    assert [node.op for node in optimized.nodes].count(contracting.dot_general) == 3


def test_a_layer_records_one_state_and_has_both_gradients_of_weights_after_the_loop() -> None:
    def layer(w: Any, v: Any, xs: Any, h: Any) -> Any:
        for x in xs:
            h = np.tanh(h @ w + x @ np.tanh(v))
        return np.sum(h)

    args = np.eye(6), np.ones((3, 6)), np.ones((10, 3)), np.zeros(6)
    graph = wend.function(wend.grad(layer, (0, 1))).get_concrete_function(*args).graph
    optimized = run_passes(graph, OPTIMIZE)
    forwards, backwards = (node for node in optimized.nodes if node.op is while_)
    recorded = [x.type for x in forwards.results if isinstance(x.type, ListType)]
    assert [type.element.nbytes for type in recorded] == [48]
    for loop in forwards, backwards:
        assert products_of(loop) == 1
    operations = [node.op for node in optimized.nodes]
    assert operations.count(contracting.dot_general) == 3  # of xs, and of both weights
    assert [node.op for node in optimized.walk()].count(elementwise.tanh) == 2  # of v, and of h
