"""Kernels of NPBench, typed in `tests/programs/npbench/` as they are written for NumPy.

Some change their arguments, so every call is given copies of these, which NumPy makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from tests.programs.npbench.catalogue import KERNELS
from tests.programs.npbench.kernel import Kernel

from bench import digest
from bench.peer import Peer
from bench.workload import VALUE, Program, Workload

Arguments = Callable[[Any], tuple[Any, ...]]


def random(*shapes: Any) -> Arguments:
    """Return what makes arrays of these shapes, and leaves numbers alone."""

    def arguments(rng: Any) -> tuple[Any, ...]:
        return tuple(rng.random(shape) if isinstance(shape, tuple) else shape for shape in shapes)

    return arguments


def definite(size: int, *vectors: int) -> Arguments:
    """Return what makes a positive definite matrix, and vectors."""

    def arguments(rng: Any) -> tuple[Any, ...]:
        root = rng.standard_normal((size, size))
        return root @ root.T + size * np.eye(size), *map(rng.standard_normal, vectors)

    return arguments


def complex_(rng: Any, *shape: int) -> Any:
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def triangle(size: int) -> Arguments:
    def arguments(rng: Any) -> tuple[Any, ...]:
        lower = np.tril(rng.standard_normal((size, size))) / size + np.eye(size)
        return lower, np.zeros(size), rng.standard_normal(size)

    return arguments


def sparse(rows: int, each: int) -> Arguments:
    def arguments(rng: Any) -> tuple[Any, ...]:
        starts = np.arange(0, rows * each + 1, each, dtype=np.uint32)
        columns = rng.integers(0, rows, rows * each, dtype=np.uint32)
        return starts, columns, rng.random(rows * each), rng.random(rows)

    return arguments


def cavity(rng: Any) -> tuple[Any, ...]:
    u, v, p = 0.1 * rng.random((3, 61, 61))
    return 61, 61, 25, 5, u, v, 0.001, 2 / 60, 2 / 60, p, 1.0, 0.1


def channel(rng: Any) -> tuple[Any, ...]:
    u, v = np.zeros((2, 61, 61))
    return 5, u, v, 0.05, 2 / 60, 2 / 60, np.ones((61, 61)), 1.0, 0.1, 1.0


def bodies(rng: Any) -> tuple[Any, ...]:
    position, velocity = rng.standard_normal((2, 25, 3))
    return np.full((25, 1), 20 / 25), position, velocity, 25, 10, 0.05, 1.0, 0.1


def contour(rng: Any) -> tuple[Any, ...]:
    points = np.exp(2j * np.pi * (np.arange(32) + 0.5) / 32) * rng.uniform(0.7, 1.4, 32)
    return 50, 150, 2, complex_(rng, 3, 50, 50), points, complex_(rng, 50, 150)


def scattering(rng: Any) -> tuple[Any, ...]:
    kz, energies, qz, frequencies, axes, atoms, neighbours, size = 2, 4, 2, 2, 2, 6, 2, 3
    return (
        rng.integers(0, atoms, (atoms, neighbours)).astype(np.int32),
        complex_(rng, atoms, neighbours, axes, size, size),
        complex_(rng, kz, energies, atoms, size, size),
        complex_(rng, qz, frequencies, atoms, neighbours, axes, axes),
        np.zeros((kz, energies, atoms, size, size), np.complex128),
    )


def signal(rng: Any) -> tuple[Any, ...]:
    return 2**12, 2, 12, complex_(rng, 2**12), np.zeros(2**12, np.complex128)


def integers(high: int, dtype: Any, *shapes: Any) -> Arguments:
    """Return what makes arrays of integers, and leaves numbers alone."""

    def arguments(rng: Any) -> tuple[Any, ...]:
        return tuple(
            rng.integers(0, high, shape).astype(dtype) if isinstance(shape, tuple) else shape
            for shape in shapes
        )

    return arguments


# The arguments of each kernel as it is measured; the suite has small ones
MEASURED: dict[str, Arguments] = {
    # Products of matrices
    "gemm": random(1.5, 1.2, (200, 220), (200, 240), (240, 220)),
    "k2mm": random(1.5, 1.2, (200, 180), (180, 190), (190, 210), (200, 210)),
    "k3mm": random((180, 200), (200, 190), (190, 220), (220, 210)),
    "atax": random((400, 500), (500,)),
    "bicg": random((500, 400), (400,), (500,)),
    "mvt": random(*[(500,)] * 4, (500, 500)),
    "gemver": random(1.5, 1.2, (400, 400), *[(400,)] * 8),
    "gesummv": random(1.5, 1.2, (400, 400), (400, 400), (400,)),
    "symm": random(1.5, 1.2, (60, 70), (60, 60), (60, 70)),
    "syrk": random(1.5, 1.2, (70, 70), (70, 60)),
    "syr2k": random(1.5, 1.2, (60, 60), (60, 50), (60, 50)),
    "trmm": random(1.2, (70, 70), (70, 60)),
    "doitgen": random(40, 30, 50, (40, 30, 50), (50, 50)),
    # Solvers and decompositions
    "trisolv": triangle(500),
    "lu": definite(60),
    "ludcmp": definite(60, 60),
    "cholesky": definite(80),
    "cholesky2": definite(200),
    "durbin": lambda rng: (0.5 ** np.arange(1, 401),),
    "gramschmidt": random((70, 60)),
    # Data mining
    "correlation": random(80, 100.0, (100, 80)),
    "covariance": random(80, 100.0, (100, 80)),
    "covariance2": random(80, 100.0, (100, 80)),
    # Stencils
    "jacobi_1d": random(200, (2000,), (2000,)),
    "jacobi_2d": random(50, (150, 150), (150, 150)),
    "heat_3d": random(20, (25, 25, 25), (25, 25, 25)),
    "fdtd_2d": random(50, (100, 120), (100, 120), (100, 120), (50,)),
    "seidel_2d": random(8, 100, (100, 100)),
    "adi": random(5, 100, (100, 100)),
    "hdiff": random((68, 68, 30), (64, 64, 30), (64, 64, 30)),
    "vadv": random(*[(60, 60, 40)] * 2, (61, 60, 40), *[(60, 60, 40)] * 2, 0.15),
    # Medley
    "deriche": random(0.25, (400, 200)),
    "floyd_warshall": integers(1000, np.int32, (120, 120)),
    "nussinov": integers(4, np.int32, 60, (60,)),
    # Deep learning
    "softmax": random((16, 16, 64, 64)),
    "mlp": random(*((8, 100), (100, 500), (500,), (500, 200), (200,), (200, 10), (10,))),
    "conv2d_bias": random((4, 28, 28, 3), (5, 5, 3, 8), (8,)),
    "lenet": random(
        *((4, 28, 28, 1), (5, 5, 1, 6), (6,), (5, 5, 6, 16), (16,), (256, 120), (120,)),
        *((120, 84), (84,), (84, 10), (10,), 4, 256),
    ),
    "resnet": random((4, 14, 14, 32), (1, 1, 32, 8), (3, 3, 8, 8), (1, 1, 8, 32)),
    # Fluids
    "cavity_flow": cavity,
    "channel_flow": channel,
    # Physics
    "nbody": bodies,
    "contour_integral": contour,
    "scattering_self_energies": scattering,
    "azimint_naive": random((40_000,), (40_000,), 100),
    "azimint_hist": random((40_000,), (40_000,), 100),
    # Numerics
    "arc_distance": random(*[(100_000,)] * 4),
    "compute": integers(1000, np.int64, (400, 400), (400, 400), 4, 3, 9),
    "crc16": integers(256, np.uint8, (1600,)),
    "go_fast": random((700, 700)),
    "mandelbrot1": lambda rng: (-1.75, 0.25, -1.0, 1.0, 125, 125, 60, 2.0),
    "mandelbrot2": lambda rng: (-1.75, 0.25, -1.0, 1.0, 125, 125, 30, 2.0),
    "spmv": sparse(2000, 30),
    "stockham_fft": signal,
}


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


def workload(kernel: Kernel) -> Workload:
    dtype = kernel.dtypes[0]
    small = tuple(kernel.fresh("f8" if dtype == "f4" else dtype))
    places = changed(kernel.fun, small)
    return Workload(
        name=f"npbench-{kernel}",
        title="a kernel of NPBench",
        arguments=MEASURED[str(kernel)](np.random.default_rng(54)),
        small=small,
        measures=(VALUE,),
        own=dict.fromkeys(
            ("wend", "python", "numba"), partial(on, kernel=kernel.fun, places=places)
        ),
        answer=answer(kernel.fun, places),
        tolerance=1e-8,
    )


WORKLOADS = [workload(kernel) for kernel in KERNELS]
