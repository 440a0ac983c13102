"""A scalar loop that runs until a bound, beside the same loop in C: value and gradient.

    x = x + a sin(x) 1e-3 + 1e-3   while x < bound

The C program is built by the system's compiler with -O3 -ffast-math. Runs of all programs take
turns, so that a change of the machine's speed meets them alike.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wend
import wend.numpy as wnp
from bench.clock import interleaved, print_table

SOURCE = Path(__file__).parent / "c" / "scalar_while.c"
START, SCALE, BOUND = 0.1, 0.3, 200.0


def loop(x: Any, a: Any, bound: Any) -> Any:
    return wend.while_loop(lambda x: x < bound, lambda x: x + a * wnp.sin(x) * 1e-3 + 1e-3, x)


def trips(x: Any, a: Any, bound: Any) -> Any:
    def step(c: Any) -> Any:
        return c[0] + a * wnp.sin(c[0]) * 1e-3 + 1e-3, c[1] + 1

    return wend.while_loop(lambda c: c[0] < bound, step, (x, 0))[1]


def in_c(folder: Path) -> dict[str, Callable[[], Any]]:
    """The C programs; none where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        print("no C compiler: only wend is measured")
        return {}
    library = folder / "scalar_while.so"
    options = ["-O3", "-ffast-math", "-shared", "-fPIC"]
    subprocess.run([compiler, *options, str(SOURCE), "-o", str(library), "-lm"], check=True)
    c = ctypes.CDLL(str(library))
    number = ctypes.c_double
    c.value.restype = c.gradient.restype = number
    by_x, by_a = number(), number()
    arguments = [number(value) for value in (START, SCALE, BOUND)]
    return {
        "value, C": lambda: c.value(*arguments),
        "gradient, C": lambda: c.gradient(*arguments, ctypes.byref(by_x), ctypes.byref(by_a)),
    }


def in_wend() -> dict[str, Callable[[], Any]]:
    native = wend.function(loop, backend="native")
    gradient = wend.value_and_grad(native, argnums=(0, 1))
    mixed = wend.grad(wend.grad(native, argnums=0), argnums=1)
    arguments = (START, SCALE, BOUND)
    return {
        "value, wend": lambda: native(*arguments),
        "gradient, wend": lambda: gradient(*arguments),
        "gradient of gradient, wend": lambda: mixed(*arguments),
    }


def main(runs: int) -> None:
    """Print nanoseconds a trip, and wend's ratio to C."""
    count = int(wend.function(trips, backend="native")(START, SCALE, BOUND))
    print(f"scalar while, {count} trips, medians of {runs} runs")
    with tempfile.TemporaryDirectory() as folder:
        medians = interleaved({**in_c(Path(folder)), **in_wend()}, runs)
    ratios = {
        f"{what}, wend": f"{what}, C" for what in ("value", "gradient") if f"{what}, C" in medians
    }
    print_table({name: 1e9 * seconds / count for name, seconds in medians.items()}, ratios)
