"""Loops that repeat or store more than they must as they are written."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from bench.peers.python import LIBRARY
from bench.reference import differences
from bench.workload import GRADIENT, VALUE, Library, Program, Workload

ARRAYS = ("wend", "python", "jax", "torch", "tensorflow", "autograd")
ELEMENTS = ("wend", "python", "jax", "numba")
STEPS, UNITS, LENGTH = 500, 64, 100_000


def layer(lib: Library) -> Program:
    """One tanh of the weights for all trips, and one product of all rows of xs."""
    np = lib.np

    def program(w: Any, v: Any, xs: Any, h: Any) -> Any:
        total = 0.0
        for x in xs:
            h = np.tanh(h @ w + x @ np.tanh(v))
            total = total + np.sum(h * h)
        return total

    return program


def layer_scanned(lib: Library) -> Program:
    np = lib.np

    def program(w: Any, v: Any, xs: Any, h: Any) -> Any:
        def body(h: Any, x: Any) -> Any:
            h = np.tanh(h @ w + x @ np.tanh(v))
            return h, np.sum(h * h)

        return np.sum(lib.scan(body, h, xs)[1])

    return program


def outer_sum(lib: Library) -> Program:
    """One product, and no loop."""
    np = lib.np

    def program(a: Any, b: Any) -> Any:
        total = np.zeros_like(a[0][:, None] * b[0])
        for x, y in zip(a, b, strict=True):
            total = total + x[:, None] * y
        return np.sum(total * total)

    return program


def outer_sum_scanned(lib: Library) -> Program:
    np = lib.np

    def program(a: Any, b: Any) -> Any:
        def body(total: Any, rows: Any) -> Any:
            return total + rows[0][:, None] * rows[1], None

        total, _ = lib.scan(body, np.zeros_like(a[0][:, None] * b[0]), (a, b))
        return np.sum(total * total)

    return program


def last_rows(lib: Library) -> Program:
    """Six trips, of which the others are not read."""
    np = lib.np

    def program(xs: Any, w: Any) -> Any:
        rows = []
        for x in xs:
            rows.append(np.tanh(x @ w))  # noqa: PERF401
        return np.sum(np.stack(rows)[-6:])

    return program


def last_rows_scanned(lib: Library) -> Program:
    np = lib.np

    def program(xs: Any, w: Any) -> Any:
        _, rows = lib.scan(lambda carry, x: (carry, np.tanh(x @ w)), 0.0, xs)
        return np.sum(rows[-6:])

    return program


def fill(lib: Library) -> Program:
    """An array that grows in place, an element a trip."""
    np = lib.np

    def program(xs: Any) -> Any:
        out = np.zeros_like(xs)
        for k in range(1, len(xs)):
            out[k] = 0.5 * out[k - 1] + xs[k]
        return np.sum(out * out)

    return program


def fill_scanned(lib: Library) -> Program:
    np = lib.np

    def program(xs: Any) -> Any:
        def body(last: Any, x: Any) -> Any:
            last = 0.5 * last + x
            return last, last

        return np.sum(lib.scan(body, xs[0] * 0.0, xs[1:])[1] ** 2)

    return program


def arguments(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    rng = np.random.default_rng(24)
    return tuple(rng.standard_normal(shape) * shape[-1] ** -0.5 for shape in shapes)


def workload(
    name: str,
    title: str,
    written: tuple[Callable[[Library], Program], Callable[[Library], Program]],
    shapes: Callable[[int, int], tuple[tuple[int, ...], ...]],
    peers: Collection[str] = ARRAYS,
    steps: int = STEPS,
) -> Workload:
    plain, functional = written
    differentiable = tuple(range(len(shapes(1, 1))))
    return Workload(
        name=name,
        title=title,
        arguments=arguments(*shapes(steps, UNITS)),
        small=arguments(*shapes(8, 3)),
        measures=(VALUE, GRADIENT),
        plain=plain,
        functional=functional,
        differentiable=differentiable,
        answer=differences(plain(LIBRARY), differentiable),
        peers=peers,
        tolerance=1e-6,
    )


WORKLOADS = [
    workload(
        "tanh_layer",
        f"h = tanh(h @ w + x @ tanh(v)) over {STEPS} rows x, {UNITS} units",
        (layer, layer_scanned),
        lambda steps, units: ((units, units), (units, units), (steps, units), (units,)),
    ),
    workload(
        "outer_sum",
        f"the sum of {STEPS} outer products of {UNITS} numbers",
        (outer_sum, outer_sum_scanned),
        lambda steps, units: ((steps, units), (steps, units)),
    ),
    workload(
        "last_rows",
        f"tanh(x @ w) for {STEPS} rows x, of which the last six are read",
        (last_rows, last_rows_scanned),
        lambda steps, units: ((steps, units), (units, units)),
    ),
    workload(
        "fill",
        f"an array of {LENGTH:,} numbers filled in place, one a trip",
        (fill, fill_scanned),
        lambda steps, units: ((steps,),),
        ELEMENTS,
        LENGTH,
    ),
]
