"""`config(strict=True)`: native code gives the interpreter's bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tests.fuzz.quick import quickly
from tests.helpers.arrays import POWERS_ARE_ROOTS
from tests.helpers.cases import (
    Case,
    graph_of,
    like,
    pull_back_graph,
    random_like,
    type_of,
    value_of,
    with_symbols,
)
from tests.helpers.programs import PROGRAMS, Program
from tests.ops.cases import CASES, DERIVED, NAMED

import wend
import wend.numpy as wnp
from wend.backends.build import executable
from wend.backends.strict import is_underspecified, same_bits, strict
from wend.base.errors import WendError
from wend.ir.graph import Graph
from wend.ir.op import Op
from wend.ir.types import tensor
from wend.ops import elementwise
from wend.ops.build import Build
from wend.passes.pipeline import LazyOptimized
from wend.runtime.sequence import Sequence as Items


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    with wend.config(strict=True):
        yield


def assert_bits(found: Any, expected: Any, role: str) -> None:
    if isinstance(expected, (Items, list, tuple)):
        found, expected = (x.items() if isinstance(x, Items) else x for x in (found, expected))
        assert len(found) == len(expected), role
        for a, b in zip(found, expected, strict=True):
            assert_bits(a, b, role)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert same_bits(found, expected), f"{role}: {found!r} is not {expected!r}"


def check(graph: Graph, args: Sequence[Any]) -> None:
    """Both give the same, or neither gives anything."""
    with quickly():  # `test_programs` have all of LLVM
        found, expected = (outcome(backend, graph, args) for backend in ("native", "numpy"))
    if isinstance(expected, Exception):
        assert type(found) is type(expected)
    else:
        assert_bits(found, expected, f"{graph}\non {args}")


def outcome(backend: str, graph: Graph, args: Sequence[Any]) -> Any:
    try:
        return executable(backend, LazyOptimized(graph, ()))(args)
    except Exception as error:
        return error


@pytest.mark.sampled(30)
@pytest.mark.parametrize(argvalues=CASES, **NAMED)
def test_every_operation(case: Case) -> None:
    for operands in (*case.samples, *case.smooth):
        args = [value_of(x) for x in operands]
        check(graph_of(case, operands), args)
        if case.symbolic:
            try:
                graph = graph_of(case, operands, [with_symbols(type_of(x)) for x in operands])
            except WendError:
                continue  # its shape rule wants to know sizes
            check(graph, args)


@pytest.mark.slow  # they are made of the operations above
@pytest.mark.parametrize(argvalues=DERIVED, **NAMED)
def test_every_derivative(case: Case) -> None:
    rng = np.random.default_rng(1)
    for operands in case.smooth[:1]:
        graph, args = graph_of(case, operands), [value_of(x) for x in operands]
        back, wrt = pull_back_graph(graph, case.wrt)
        if wrt:
            results = executable("numpy", LazyOptimized(graph, ()))(args)
            cts = (like(result, random_like(rng)) for result in results)
            check(back, [*args, *(ct for ct in cts if ct is not None)])


_NUMBERS = [np.dtype(name) for name in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u1", "?")]
_SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, 7.0)


def special(dtype: np.dtype, count: int) -> np.ndarray:
    """Numbers at the edges of a dtype."""
    rng = np.random.default_rng(count)
    if dtype.kind == "b":
        return rng.random(count) < 0.5
    if dtype.kind == "f":
        info = np.finfo(dtype)
        edges = [info.tiny, info.smallest_subnormal, -info.smallest_subnormal, info.max, -info.max]
        powers = [s * 2.0**k + d for s in (1, -1) for k in (7, 8, 31, 32, 52, 63) for d in (0, 1)]
        return rng.choice(np.array([*_SPECIAL, *edges, *powers], dtype), count)
    info = np.iinfo(dtype)
    return rng.choice(
        np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7], dtype), count
    )


def exact_graphs() -> Iterator[Graph]:
    """Each elementwise operation that rounding leaves nothing of, on each dtype that it takes."""
    elementwise_ops = {op for op in vars(elementwise).values() if isinstance(op, Op)}
    for op in sorted(elementwise_ops, key=lambda op: op.name):
        if op is not elementwise.cast and not isinstance(op.kernel, np.ufunc):
            continue
        arity = 1 if op is elementwise.cast else op.kernel.nin
        for dtype in _NUMBERS:
            for attrs in [{"dtype": to} for to in _NUMBERS] if op is elementwise.cast else [{}]:
                b = Build(f"{op.name}_{dtype}_{attrs.get('dtype', '')}")
                params = [b.param(tensor(dtype, 257)) for _ in range(arity)]
                try:
                    node = b.emit_node(op, params, **attrs)
                except (WendError, TypeError):
                    continue  # it does not take that
                if not is_underspecified(node):
                    yield b.finish(node.results)


@pytest.mark.sampled
@pytest.mark.parametrize("graph", [*exact_graphs()], ids=lambda graph: graph.name)
def test_exact_operations_of_special_numbers(graph: Graph) -> None:
    args = [special(p.tensor.dtype, 257 + k) for k, p in enumerate(graph.params)]
    args = [x[:257] for x in args]
    check(graph, args)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("start", [[-0.0, -0.0], [0.0, -0.0], [-0.0, 1.0], [1.0, -1.0]])
def test_zeros_of_running_sums(start: list[float], size: int, reverse: bool) -> None:
    b = Build("cumsum")
    graph = b.finish([b.cumsum(b.param(tensor("f8", size)), axis=0, reverse=reverse)])
    check(graph, [np.array([*start, *[-0.0] * (size - 2)])])


def on_both(fun: Callable[..., Any], args: Sequence[Any]) -> None:
    found = []
    for backend in ("native", "numpy"):
        with wend.config(backend=backend):
            found.append(fun(*args))
    assert_bits(*found, role=f"{fun}")


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_programs(program: Program) -> None:
    every = tuple(range(len(program.args)))
    gradient = wend.value_and_grad(program.fun, every)
    on_both(gradient, program.args)
    slope = wend.grad(lambda *args: sum(wnp.sum(wnp.sin(g)) for g in gradient(*args)[1]), every)
    on_both(slope, program.args)


def test_how_arrays_lie_does_not_matter() -> None:
    """NumPy's own loops round, and add, in other ways where elements lie elsewhere."""

    def fun(x: Any) -> Any:
        turned, back = x.T, x[::-1, ::-2]
        powers = wnp.power(wnp.abs(x) + 1.0, wnp.broadcast_to(0.5 * x[0, 0], x.shape))
        return (
            *(turned.sum(axis=1), turned.sum(axis=0), turned @ x, wnp.tanh(back)),
            *(wnp.prod(turned, axis=1), turned.max(axis=1), powers, wnp.cosh(x[:, ::-3])),
        )

    x = np.random.default_rng(0).normal(size=(37, 41))
    on_both(wend.function(fun), [x])
    for k, found in enumerate(wend.function(fun)(x)):
        np.testing.assert_allclose(found, fun(x)[k], rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not POWERS_ARE_ROOTS, reason="this NumPy takes roots in the operator alone")
def test_roots_of_minus_infinity_are_numpys() -> None:
    """NumPy takes a root where it sees one exponent, and a power where it sees several."""
    x = np.array([-np.inf, -0.0, 4.0])
    root = wend.function(lambda x, y: x ** wnp.broadcast_to(y, x.shape))
    power = wend.function(lambda x, y: x**y)
    with np.errstate(invalid="ignore"):
        expected = x**0.5, np.power(x, np.array([0.5, 0.5, 2.0]))
    for backend in ("native", "numpy"):
        with wend.config(backend=backend):
            assert same_bits(root(x, 0.5), expected[0])
            assert same_bits(power(x, np.array([0.5, 0.5, 2.0])), expected[1])


def test_chaos_is_the_same() -> None:
    def orbit(x: Any) -> Any:
        for _ in range(200):
            x = 3.9 * wnp.sin(x) * (1.0 - 0.3 * x)
        return x

    on_both(wend.function(orbit), [0.3])
    on_both(wend.grad(orbit), [0.3])


def test_what_is_exact_stays_native() -> None:
    b = Build("fun")
    x, n = b.param(tensor("f8", 3)), b.param(tensor("i8", 3))
    b.reduce_sum(n, axes=(0,))
    b.add(x, b.sqrt(x))
    assert not any(map(is_underspecified, b.nodes))
    graph = b.finish([n])
    assert strict(graph) is graph


def test_the_setting_is_part_of_what_is_kept() -> None:
    fun = wend.function(lambda x: wnp.sin(x).sum(), backend="native")
    x = np.linspace(0.0, 1.0, 1000)
    first = fun(x)
    assert "runs in Python: reduce_sum" in str(fun.explain())
    with wend.config(strict=False):
        np.testing.assert_allclose(fun(x), first, rtol=1e-14)
    assert same_bits(fun(x), np.sin(x).sum())


@pytest.mark.parametrize(
    ("x", "y", "are_same"),
    [
        (0.0, -0.0, False),
        (np.nan, -np.nan, True),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (1.0, 1.0 + 2.0**-52, False),
        (1.0, np.float32(1.0), False),
        (np.ones(2), np.ones((2, 1)), False),
        (1.0 + 0.0j, complex(1.0, -0.0), False),
        (np.array([1, 2]), np.array([1, 2]), True),
        (True, False, False),
    ],
)
def test_same_bits(x: Any, y: Any, are_same: bool) -> None:
    assert same_bits(x, y) == are_same
