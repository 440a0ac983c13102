"""Reads and writes through views in loops are those of the array: values, errors and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wend
from tests.helpers.differences import central_differences
from tests.helpers.graphs import traced
from tests.helpers.shares import sized
from tests.passes.test_trim_loops import function
from wend.autodiff.vjp import joint
from wend.base.errors import AliasError, ShapeError, StagedRaiseError
from wend.ir.types import TensorType
from wend.ops.control import while_
from wend.passes.pipeline import OPTIMIZE, run_passes

BACKENDS = "numpy", "native"
REFUSALS = AliasError, ShapeError, StagedRaiseError
SHAPES = [(6,), (4, 3), (3, 4), (2, 3, 2), (1, 5), (5, 1)]

# Views of an array of any of these shapes; None: it has none such
VIEWS: dict[str, Any] = {
    "tail": lambda x: x[1:] if x.shape[0] > 1 else x,
    "reverse": lambda x: x[::-1],
    "step": lambda x: x[::2],
    "transpose": lambda x: x.T,
    "flat": lambda x: x.reshape(-1),
    "column": lambda x: x[..., 0] if x.ndim > 1 else x,
    "last": lambda x: x[:, -1] if x.ndim > 1 else x,
    "first_row": lambda x: x[0] if x.ndim > 1 else x,
    "new_axis": lambda x: x[:, None],
    "in_front": lambda x: x[None],
    "rows": lambda x: x.reshape(x.shape[0], -1),
    "part": lambda x: x[:, 1:] if x.ndim > 1 and x.shape[1] > 1 else x,
}
CHAINS = st.lists(st.sampled_from(sorted(VIEWS)), min_size=1, max_size=3)


def view_of(x: Any, names: list[str]) -> Any:
    for name in names:
        x = VIEWS[name](x)
    return x


def position(axis: int, rank: int, i: Any) -> Any:
    """Return the position along an axis: the trip along the first or the last, else 0."""
    return i if axis == (rank - 1 if rank % 2 else 0) else 0


def read_program(names: list[str], sign: int, trips: int) -> Any:
    def f(x: Any, weights: Any) -> Any:
        total = 0.0
        for k in range(trips):
            v = view_of(x, names)
            i = k if sign > 0 else -1 - k
            key = tuple(position(axis, v.ndim, i) for axis in range(v.ndim))
            total = total + weights[k] * v[key]
        return total

    return f


def write_program(names: list[str], sign: int, trips: int) -> Any:
    def f(x: Any, weights: Any) -> Any:
        y = x * 2.0
        for k in range(trips):
            v = view_of(y, names)
            i = k if sign > 0 else -1 - k
            key = tuple(position(axis, v.ndim, i) for axis in range(v.ndim))
            v[key] = weights[k] * weights[k]
        return (y * np.arange(1.0, y.size + 1.0).reshape(y.shape)).sum()

    return f


# What a trip does to a view that is made before the loop
def set_cut(v: Any, k: Any, value: Any) -> None:
    v[k : k + 2] = value


def add_to_cut(v: Any, k: Any, value: Any) -> None:
    v[k - 1 : k + 2] += value * v[k : k + 1].sum()


def set_last_axis(v: Any, k: Any, value: Any) -> None:
    v[..., k] = value


def cut_last_axis(v: Any, k: Any, value: Any) -> None:
    v[..., -k - 2 : -1] = value * v[..., k : k + 1]


def add_to_row(v: Any, k: Any, value: Any) -> None:
    v[k] += value


def write_to_row(v: Any, k: Any, value: Any) -> None:
    row = v[k : k + 1]
    row[0] = value
    v[k] = row[0] * 3.0


def swap(v: Any, k: Any, value: Any) -> None:
    v[[k, 0]] = v[[0, k]] * value


def set_every_other(v: Any, k: Any, value: Any) -> None:
    v[k, ..., ::2] = value * v[k, ..., ::2]


def add_to_rest(v: Any, k: Any, value: Any) -> None:
    v[..., k:][..., ::-1] += value


WRITES = [
    *(set_cut, add_to_cut, set_last_axis, cut_last_axis, add_to_row, write_to_row, swap),
    *(set_every_other, add_to_rest),
]


# Where a trip writes
def always(write: Any, v: Any, k: Any, value: Any) -> None:
    write(v, k, value)


def in_a_branch(write: Any, v: Any, k: Any, value: Any) -> None:
    if value > 0.9:
        write(v, k, value)


def in_a_handler(write: Any, v: Any, k: Any, value: Any) -> None:
    try:
        write(v, k, value)
    except IndexError:
        v[0] = value


def in_a_function(write: Any, v: Any, k: Any, value: Any) -> None:
    wend.function(write)(v, k, value)


WAYS = [always, in_a_branch, in_a_handler, in_a_function]


def write_to_view_program(names: list[str], write: Any, way: Any, trips: int) -> Any:
    def f(x: Any, weights: Any) -> Any:
        y = x * 2.0
        v = view_of(y, names)
        for k in range(trips):
            way(write, v, k, weights[k])
        return (y * np.arange(1.0, y.size + 1.0).reshape(y.shape)).sum()

    return f


def outcome(fun: Any, *args: Any) -> Any:
    try:
        return fun(*args)
    except (IndexError, ValueError) as error:
        if isinstance(error, REFUSALS):
            raise
        return f"{type(error).__name__}: {error}"


def check(program: Any, shape: tuple[int, ...], trips: int, *, is_known: bool = True) -> None:
    x = np.sin(np.arange(1.0, np.prod(shape) + 1.0)).reshape(shape)
    weights = np.linspace(0.5, 1.5, max(trips, 1))
    expected = outcome(program, x.copy(), weights)
    dims = x.shape if is_known else (None,) * x.ndim
    signature = [wend.TensorSpec(dims, float), wend.TensorSpec((len(weights),), float)]
    for backend in BACKENDS:
        with wend.config(backend=backend):
            try:
                f = wend.function(program, input_signature=signature)
                found = outcome(f, x, weights)
            except REFUSALS:
                return  # NumPy may have to copy, a shape must be known, a branch would fail always
            if isinstance(expected, str):
                assert found == expected
                continue
            assert found == pytest.approx(expected, rel=1e-14)
            gradient = wend.function(wend.grad(program, (0, 1)), input_signature=signature)
            for k, grad in enumerate(gradient(x, weights)):
                # The programs are of degree two
                slope = central_differences(program, k, x, weights, step=1e-3)
                np.testing.assert_allclose(grad, slope, atol=1e-7)


@given(
    names=CHAINS,
    shape=st.sampled_from(SHAPES),
    sign=st.sampled_from([1, -1]),
    trips=st.integers(0, 7),
    is_read=st.booleans(),
)
@settings(max_examples=sized(5, 15), deadline=None)
def test_as_numpy(
    names: list[str], shape: tuple[int, ...], sign: int, trips: int, is_read: bool
) -> None:
    x = np.zeros(shape)
    if not is_read and not np.shares_memory(view_of(x, names), x):
        return
    check((read_program if is_read else write_program)(names, sign, trips), shape, trips)


@given(
    names=CHAINS,
    shape=st.sampled_from(SHAPES),
    write=st.sampled_from(WRITES),
    way=st.sampled_from(WAYS),
    trips=st.integers(0, 5),
    is_known=st.booleans(),
)
@settings(max_examples=sized(5, 15), deadline=None)
def test_writes_to_views_made_before(
    names: list[str], shape: tuple[int, ...], write: Any, way: Any, trips: int, is_known: bool
) -> None:
    x = np.zeros(shape)
    if np.shares_memory(view_of(x, names), x):
        check(write_to_view_program(names, write, way, trips), shape, trips, is_known=is_known)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize("name", VIEWS)
def test_each_view(name: str, is_read: bool) -> None:
    for shape in [(4, 3), (2, 3, 2)]:
        for sign in (1, -1):
            for trips in (2, 6):
                make = read_program if is_read else write_program
                check(make([name], sign, trips), shape, trips)


def sizes_in_loops(fun: Any, *args: Any) -> set[int]:
    """Return the sizes of the arrays that the loops of a gradient make."""
    graph = traced(fun, *args)
    graph = run_passes(joint(graph, range(len(graph.params)), 0)[0], OPTIMIZE)
    loops = [x for x in graph.walk() if x.op is while_]
    nodes = [x for loop in loops for region in loop.regions for x in region.walk()]
    made = [x.results[0].type for x in nodes if not x.regions and x.op.updates is None]
    arrays = [type for type in made if isinstance(type, TensorType) and type.dtype.kind == "f"]
    return {int(np.prod(type.dims)) for type in arrays}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [x for x in VIEWS if x != "first_row"])
def test_no_trip_makes_a_view(name: str) -> None:
    may_copy = name == "flat"  # so that NumPy may not write to the array
    for make in (read_program,) if may_copy else (read_program, write_program):
        assert sizes_in_loops(make([name], 1, 3), np.ones((5, 4)), np.ones(3)) <= {1}


# Loops whose trip 3 fails; the first check that fails is the program's
def both_out_of_range(x: Any, y: Any) -> Any:
    total = 0.0
    for k in range(5):
        total = total + x[:, 1:][k, k]
    return total


def row_out_of_range_first(x: Any, y: Any) -> Any:
    for k in range(5):
        x[k][k + 7 * (k // 3)] = 1.0
    return x


def write_between(x: Any, y: Any) -> Any:
    for k in range(5):
        row = x[k]
        y[k] = 2.0 * k + 1.0
        row[0] = y[k] + 1.0
    return y.sum()


def print_between(x: Any, y: Any) -> Any:
    total = 0.0
    for k in range(5):
        row = x[k]
        print("trip", k)
        total = total + row[1] * y[k]
    return total


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "fun", [both_out_of_range, row_out_of_range_first, write_between, print_between]
)
def test_checks_stay_where_the_program_has_them(fun: Any, backend: str, capsys: Any) -> None:
    outcomes = []
    for f in (fun, wend.function(fun, backend=backend)):
        x, y = np.arange(6.0).reshape(3, 2), np.zeros(6)
        error = outcome(f, x, y)
        outcomes.append((error, x.tolist(), y.tolist(), capsys.readouterr().out))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0].startswith("IndexError")


def test_long_bodies_are_folded() -> None:
    lines = "".join("        v = v * 0.999 + 0.5\n" for _ in range(600))
    f = function(
        "def f(x):\n    t = x[0] * 0.0\n    for k in range(x.shape[0]):\n        v = x[k]\n"
        f"{lines}        t = t + v\n    return t.sum()\n"
    )
    x = np.ones((3, 2))
    with wend.config(backend="numpy"):
        assert wend.function(f)(x) == pytest.approx(f(x))
        np.testing.assert_allclose(wend.function(wend.grad(f))(x), 0.999**600)
