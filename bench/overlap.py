"""`python -m bench.overlap`: what runs at once, on two threads, beside one after the other.

A pipeline of two stages, independent products, a graph of tiny nodes which must gain and lose
nothing, and the dataflow executor. What NumPy's BLAS itself gains from two threads of Python, each
with one thread of BLAS, stands beside wend: no program that calls it can gain more. The programs of
a system take turns; a row is the median of several rounds, and the least.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from bench.environments import first_with, in_a_process

ROUNDS, MIN_SECONDS = 7, 4.0  # at least
SIZE, TRIPS = 400, 60  # of the pipeline
PRODUCT_SIZE, NODES, SCALAR_TRIPS, TOKEN_TRIPS = 600, 1_000, 100_000, 500
TINY_CALLS = 200
Call = Callable[[], Any]
# Two times a row: the median and the least
Times = dict[str, tuple[float, float]]


def matrices(size: int) -> tuple[Any, Any]:
    """Return two matrices that neither grow nor shrink what is multiplied by them."""
    import numpy as np

    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(size, size)) / size**0.5 for _ in range(2))
    return a, b


def pipeline(given: int | None, *, is_chained: bool = False) -> Callable[[Any, Any, Any, Any], Any]:
    """Return the pipeline with `parallel_iterations`.

    The products of a trip do not need each other, unless it is chained: the second takes what the
    first gives.
    """
    import numpy as np

    import wend

    def run(a: Any, b: Any, h: Any, g: Any) -> Any:
        def trip(carry: Any) -> Any:
            k, h, g = carry
            h = np.tanh(h @ a)
            g = np.tanh((g + h) @ b) if is_chained else np.tanh(g @ b + h)
            return k + 1, h, g

        start = (0, h, g)
        return wend.while_loop(lambda c: c[0] < TRIPS, trip, start, parallel_iterations=given)[2]

    return run


def gradient(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradient of a sum of what a pipeline gives, by both starts."""
    import wend

    return wend.grad(lambda a, b, h, g: run(a, b, h, g).sum(), argnums=(2, 3))


def of_wend(fun: Callable[..., Any], args: tuple[Any, ...], threads: int) -> Call:
    """Return a call that runs on so many threads."""
    import wend

    with wend.config(threads=threads):
        compiled = wend.function(fun, backend="native")
        compiled(*args)

    def call() -> Any:
        with wend.config(threads=threads):
            return compiled(*args)

    return call


def pipelines() -> dict[str, Call]:
    """Return the pipelines, forward and backward, with their settings."""
    a, b = matrices(SIZE)
    args = (a, b, a, b)
    calls: dict[str, Call] = {}
    for name, is_chained in (("pipeline", False), ("chained pipeline", True)):
        for way, made in (("forward", lambda x: x), ("backward", gradient)):
            row = f"{name}, {way}"
            calls[f"{row}, 1 thread"] = of_wend(made(pipeline(1, is_chained=is_chained)), args, 1)
            calls[f"{row}, k=1"] = of_wend(made(pipeline(1, is_chained=is_chained)), args, 2)
            calls[f"{row}, k=2"] = of_wend(made(pipeline(2, is_chained=is_chained)), args, 2)
    return calls


def products() -> dict[str, Call]:
    """Return two independent products, by wend and by NumPy alone."""
    import numpy as np

    a, b = matrices(PRODUCT_SIZE)
    outs = [np.empty_like(a) for _ in range(2)]
    pool = ThreadPoolExecutor(1)

    def one() -> None:
        np.matmul(a, b, outs[0])
        np.matmul(b, a, outs[1])

    def two() -> None:
        other = pool.submit(np.matmul, b, a, outs[1])
        np.matmul(a, b, outs[0])
        other.result()

    def both(a: Any, b: Any) -> Any:
        return a @ b, b @ a

    return {
        "products, 1 thread": of_wend(both, (a, b), 1),
        "products, 2 threads": of_wend(both, (a, b), 2),
        "products, NumPy": one,
        "products, NumPy in two threads": two,
    }


def tiny() -> dict[str, Call]:
    """Return calls of a graph of a thousand small products."""

    def nodes(a: Any) -> Any:
        x, y = a, a * 0.5
        for _ in range(NODES // 4):
            x, y = x @ a, y @ a
            x, y = x + y, y - a
        return x + y

    import numpy as np

    a = np.eye(4) * 0.5

    def repeated(call: Call) -> None:
        for _ in range(TINY_CALLS):
            call()

    names = {"tiny nodes, 1 thread": 1, "tiny nodes, 2 threads": 2}
    return {name: partial(repeated, of_wend(nodes, (a,), k)) for name, k in names.items()}


def tokens() -> dict[str, Call]:
    """Return a loop over a number by the dataflow backend: compiled, and each node a token."""
    import numpy as np

    import wend
    from wend.backends.dataflow.backend import DataflowBackend

    def count(x: Any, n: Any) -> Any:
        while x < n:
            x = x + 1.0
        return x

    cluster = wend.function(count, backend="dataflow")
    concrete = wend.function(count).get_concrete_function(0.0, 1.0)
    backend = DataflowBackend(collapse=False)
    execute, args = backend.compile(concrete.graph), [np.asarray(0.0), np.asarray(TOKEN_TRIPS)]
    args[1] = args[1].astype(float)
    return {
        "dataflow, a compiled loop": lambda: cluster(0.0, float(SCALAR_TRIPS)),
        "dataflow, tokens": lambda: concrete.traced.run(execute, args, backend.boundary),
    }


def of_tensorflow() -> dict[str, Call]:
    """Return the pipeline by TensorFlow, on two threads that run one operation each."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    a, b = (tf.constant(x) for x in matrices(SIZE))

    def run(k: int, h: Any, g: Any) -> Any:
        def trip(i: Any, h: Any, g: Any) -> Any:
            h = tf.tanh(h @ a)
            return i + 1, h, tf.tanh(g @ b + h)

        start = (tf.constant(0), h, g)
        return tf.while_loop(lambda i, h, g: i < TRIPS, trip, start, parallel_iterations=k)[2]

    def backward(k: int, h: Any, g: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([h, g])
            total = tf.reduce_sum(run(k, h, g))
        return tape.gradient(total, [h, g])

    calls: dict[str, Call] = {}
    for way, fun in (("forward", run), ("backward", backward)):
        for k in (1, 2, 10):
            compiled = tf.function(partial(fun, k))
            calls[f"pipeline, {way}, k={k}"] = partial(compiled, a, b)
    return calls


# The rows of a process, by the number of threads of BLAS
PROCESSES: dict[str, tuple[int, Callable[[], dict[str, Call]]]] = {
    "pipelines": (1, pipelines),
    "pipelines, BLAS on two threads": (2, pipelines),
    "products": (1, products),
    "tiny nodes": (1, tiny),
    "dataflow": (1, tokens),
    "TensorFlow": (1, of_tensorflow),
}


def measure(name: str) -> Times:
    """Return the milliseconds of each row, in this process, whose libraries are not loaded yet."""
    blas_threads, make = PROCESSES[name]
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), str(blas_threads)))
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    calls = make()
    taken: dict[str, list[float]] = {row: [] for row in calls}
    begun = time.perf_counter()
    rounds = 0
    while rounds < ROUNDS or time.perf_counter() < begun + MIN_SECONDS:
        rounds += 1
        for row, call in calls.items():
            start = time.perf_counter()
            call()
            taken[row].append(1e3 * (time.perf_counter() - start))
    return {row: (statistics.median(times), min(times)) for row, times in taken.items()}


def lines(name: str, times: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the rows of a process."""
    rows = (f"  {row:<40}{both[0]:>12,.3f}{both[1]:>12,.3f} ms" for row, both in times.items())
    return [f"{name:<42}{'median':>12}{'least':>12}", *rows]


def main(given: list[str] | None = None) -> int:
    """Print the rows of each process; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.overlap", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {[*PROCESSES]}")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="a folder with environments")
    parser.add_argument("--one", choices=PROCESSES, help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.one:
        print(json.dumps(measure(options.one)))
        return 0
    needs = dict.fromkeys(PROCESSES, ("numpy", "optree", "llvmlite"))
    pythons = first_with({**needs, "TensorFlow": ("tensorflow",)}, options.peers)
    for name in options.names or PROCESSES:
        python = pythons.get(name)
        times = None if python is None else in_a_process(python, "bench.overlap", "--one", name)
        shown = lines(name, times) if times else [f"{name}: not run"]  # type: ignore[arg-type]
        print("\n".join(shown), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
