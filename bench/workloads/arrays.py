"""Programs without loops over large arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.peers.python import LIBRARY
from bench.reference import differences
from bench.workload import VALUE, Library, Program, Workload

PEERS = ("wend", "python", "jax", "torch", "tensorflow", "tensorflow-xla", "numba")
ROWS, COLUMNS = 100_000, 16


def chain(lib: Library) -> Program:
    np = lib.np

    def program(x: Any) -> Any:
        return np.sqrt(np.abs(np.tanh(np.exp(-(x * x)) * 0.5 + x) * x - 0.25))

    return program


def softmax(lib: Library) -> Program:
    np = lib.np

    def program(x: Any) -> Any:
        y = np.exp(x - np.max(x, axis=1, keepdims=True))
        return y / np.sum(y, axis=1, keepdims=True)

    return program


def layer_norm(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, scale: Any, offset: Any) -> Any:
        off = x - np.mean(x, axis=1, keepdims=True)
        spread = np.mean(off * off, axis=1, keepdims=True)
        return off / np.sqrt(spread + 1e-5) * scale + offset

    return program


def kmeans(lib: Library) -> Program:
    np, numbers = lib.np, lib.numbers

    def program(points: Any, centres: Any) -> Any:
        away = points[:, None, :] - centres
        nearest = np.argmin(np.sum(away * away, axis=2), axis=1)
        chosen = numbers(nearest[:, None] == np.arange(10))
        return chosen.T @ points / np.sum(chosen, axis=0)[:, None]

    return program


def reductions(lib: Library) -> Program:
    np = lib.np

    def program(x: Any) -> Any:
        return (
            np.sum(x, axis=0),
            np.sum(x, axis=1),
            np.max(x, axis=0),
            np.max(x, axis=1),
            np.mean(x, axis=0),
            np.mean(x * x, axis=1),
        )

    return program


def normal(*shape: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(16).standard_normal(shape).astype(dtype)


def workload(
    name: str, title: str, plain: Callable[[Library], Program], full: Any, small: Any
) -> Workload:
    return Workload(
        name=name,
        title=title,
        arguments=full,
        small=small,
        measures=(VALUE,),
        plain=plain,
        functional=plain,
        answer=differences(plain(LIBRARY), ()),
        peers=PEERS,
        tolerance=1e-4 if name.endswith("f32") else 1e-9,
    )


def around(rows: int) -> tuple[Any, ...]:
    """Points, and ten centres among them."""
    points = normal(rows, COLUMNS)
    return points, points[: 10 * 2 : 2].copy()


WORKLOADS = [
    workload(
        f"chain_{name}",
        f"ten elementwise operations on a million numbers of {name}",
        chain,
        (normal(1_000_000, dtype=dtype),),
        (normal(50, dtype=dtype),),
    )
    for name, dtype in (("f64", np.float64), ("f32", np.float32))
] + [
    workload(
        "softmax",
        "softmax of 100,000 rows of 16",
        softmax,
        (normal(ROWS, COLUMNS),),
        (normal(7, COLUMNS),),
    ),
    workload(
        "layer_norm",
        "layer normalisation of 100,000 rows of 16",
        layer_norm,
        (normal(ROWS, COLUMNS), normal(COLUMNS), normal(COLUMNS)),
        (normal(7, COLUMNS), normal(COLUMNS), normal(COLUMNS)),
    ),
    workload(
        "kmeans",
        "a step of k-means: 100,000 points of 16 numbers, 10 centres",
        kmeans,
        around(ROWS),
        around(40),
    ),
    workload(
        "reductions",
        "sums, maxima and means of 1000 × 1000 numbers by each axis",
        reductions,
        (normal(1000, 1000),),
        (normal(6, 5),),
    ),
]
