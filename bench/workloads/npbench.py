"""Kernels of NPBench, typed in `tests/programs/npbench/` as they are written for NumPy.

Some change their arguments, so every call is given copies of these, which NumPy makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from tests.programs.npbench import medley, networks, numerics, physics, products, solvers, stencils

from bench import digest
from bench.peer import Peer
from bench.workload import VALUE, Program, Workload

Shapes = Sequence[Any]


def random(*shapes: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Return what makes arrays of these shapes, and leaves numbers alone."""

    def made(rng: Any) -> tuple[Any, ...]:
        return tuple(rng.random(shape) if isinstance(shape, tuple) else shape for shape in shapes)

    return made


def definite(size: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return what makes a positive definite matrix."""

    def made(rng: Any) -> tuple[Any, ...]:
        root = rng.standard_normal((size, size))
        return (root @ root.T + size * np.eye(size),)

    return made


def triangle(size: int) -> Callable[[Any], tuple[Any, ...]]:
    def made(rng: Any) -> tuple[Any, ...]:
        lower = np.tril(rng.standard_normal((size, size))) / size + np.eye(size)
        return lower, np.zeros(size), rng.standard_normal(size)

    return made


def sparse(rows: int, each: int) -> Callable[[Any], tuple[Any, ...]]:
    def made(rng: Any) -> tuple[Any, ...]:
        starts = np.arange(0, rows * each + 1, each)
        columns = rng.integers(0, rows, rows * each)
        return starts, columns, rng.random(rows * each), rng.random(rows)

    return made


# A kernel, its arguments as they are measured, and others as small as in the tests
KERNELS: tuple[tuple[Any, Any, Any], ...] = (
    (
        products.gemm,
        random(1.5, 1.2, (200, 220), (200, 240), (240, 220)),
        random(1.5, 1.2, (4, 5), (4, 6), (6, 5)),
    ),
    (products.atax, random((400, 500), (500,)), random((5, 4), (4,))),
    (products.bicg, random((500, 400), (400,), (500,)), random((5, 4), (4,), (5,))),
    (
        products.gesummv,
        random(1.5, 1.2, (400, 400), (400, 400), (400,)),
        random(1.5, 1.2, (5, 5), (5, 5), (5,)),
    ),
    (
        products.syrk,
        random(1.5, 1.2, (70, 70), (70, 60)),
        random(1.5, 1.2, (5, 5), (5, 4)),
    ),
    (solvers.trisolv, triangle(500), triangle(6)),
    (solvers.lu, definite(60), definite(6)),
    (solvers.cholesky, definite(80), definite(6)),
    (solvers.durbin, lambda rng: (0.5 ** np.arange(1, 401),), lambda rng: (np.full(7, 0.1),)),
    (solvers.gramschmidt, random((70, 60)), random((6, 4))),
    (stencils.jacobi_1d, random(200, (2000,), (2000,)), random(6, (10,), (10,))),
    (stencils.jacobi_2d, random(50, (150, 150), (150, 150)), random(6, (6, 7), (6, 7))),
    (
        stencils.fdtd_2d,
        random(50, (100, 120), (100, 120), (100, 120), (50,)),
        random(5, (5, 6), (5, 6), (5, 6), (5,)),
    ),
    (stencils.seidel_2d, random(8, 100, (100, 100)), random(4, 6, (6, 6))),
    (stencils.adi, random(5, 100, (100, 100)), random(4, 6, (6, 6))),
    (
        stencils.hdiff,
        random((68, 68, 30), (64, 64, 30), (64, 64, 30)),
        random((8, 9, 3), (4, 5, 3), (4, 5, 3)),
    ),
    (
        stencils.vadv,
        random(*[(60, 60, 40)] * 2, (61, 60, 40), *[(60, 60, 40)] * 2, 0.15),
        random(*[(3, 4, 6)] * 2, (4, 4, 6), *[(3, 4, 6)] * 2, 0.15),
    ),
    (medley.deriche, random(0.25, (400, 200)), random(0.25, (6, 7))),
    (medley.floyd_warshall, random((120, 120)), random((7, 7))),
    (networks.softmax, random((16, 16, 64, 64)), random((2, 2, 4, 4))),
    (
        numerics.arc_distance,
        random(*[(100_000,)] * 4),
        random(*[(5,)] * 4),
    ),
    (numerics.go_fast, random((700, 700)), random((5, 5))),
    (numerics.spmv, sparse(2000, 30), sparse(5, 2)),
    (physics.azimint_naive, random((40_000,), (40_000,), 100), random((20,), (20,), 4)),
)


def changed(kernel: Program, arguments: Sequence[Any]) -> tuple[int, ...]:
    """Return which arguments a kernel changes."""
    arrays = {k: value for k, value in enumerate(arguments) if isinstance(value, np.ndarray)}
    given = [arrays[k].copy() if k in arrays else value for k, value in enumerate(arguments)]
    kernel(*given)
    return tuple(k for k, array in arrays.items() if not np.array_equal(array, given[k]))


def run(kernel: Program, places: Sequence[int], *arguments: Any) -> tuple[Any, ...]:
    """Return what a kernel returns, and the arguments at some places as it leaves them."""
    given = list(arguments)
    for k in places:
        given[k] = given[k].copy()
    found = kernel(*given)
    results = found if isinstance(found, tuple) else (found,)
    return (*(result for result in results if result is not None), *(given[k] for k in places))


def on(peer: Peer, measure: str, kernel: Program, places: Sequence[int]) -> Program:
    """Return the kernel as a peer runs it."""
    return partial(run, peer.compiled(kernel), places)  # type: ignore[attr-defined]


def answer(kernel: Program, places: Sequence[int]) -> Callable[..., list[float]]:
    return lambda *arguments: digest.numbers(run(kernel, places, *arguments))


def workload(kernel: Program, full: Any, small: Any) -> Workload:
    given = small(np.random.default_rng(54))
    places = changed(kernel, given)
    return Workload(
        name=f"npbench-{kernel.__name__}",
        title="a kernel of NPBench",
        arguments=full(np.random.default_rng(54)),
        small=given,
        measures=(VALUE,),
        own=dict.fromkeys(("wend", "python", "numba"), partial(on, kernel=kernel, places=places)),
        answer=answer(kernel, places),
        tolerance=1e-8,
    )


WORKLOADS = [workload(*kernel) for kernel in KERNELS]
