"""`python -m bench.bridges`: what a call of a wend function costs in a JAX or torch program.

The function is Newton's method for a square root, a loop of a few trips, so a call is mostly the
way in and out. It stands beside wend's own call, what the other system takes for a product of two
numbers with the same transformation, and what PyTorch takes for functions of a user's that do
nothing: a `torch.autograd.Function`, and an operation of `torch.library`. Each system runs in a
process of its own, where this Python or an environment of `--peers` has it. Times are the minimum
of several rounds, which the programs of a system take in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench.environments import first_with, in_a_process

ROUNDS, MIN_SECONDS = 25, 0.02  # of a program in a round
TRIPS = 10_000  # of the loop of JAX that calls
SIZE, STEPS = 1_000, 200  # elements, and trips of the loop over them


def root(a: Any) -> Any:
    """Return the square root of a number."""
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def relax(u: Any) -> Any:
    """Return an array after explicit steps of a nonlinear equation."""
    import numpy as np

    v = u
    for _ in range(STEPS):
        v = v + 0.1 * (np.sin(v) - u)
    return v


def jax_calls() -> dict[str, Callable[[], Any]]:
    """Return programs of JAX, with and without a call of wend, and calls of wend."""
    import jax
    import numpy as np

    import wend
    from wend.interop.jax import as_jax

    jax.config.update("jax_enable_x64", True)
    start = np.linspace(1.0, 2.0, SIZE)
    number, array = jax.numpy.asarray(4.0), jax.numpy.asarray(start)

    def repeated(fun: Callable[[Any], Any]) -> Callable[[], Any]:
        loop = jax.jit(lambda a: jax.lax.fori_loop(0, TRIPS, lambda i, x: fun(x) + 3.0, a))
        return lambda: loop(number).block_until_ready()

    steps, as_many = wend.function(relax), wend.function(_many)
    inside = jax.jit(as_jax(relax))
    return {
        "trips of jit(fori_loop)": repeated(lambda x: x * x * 1e-3),
        "as_jax in jit(fori_loop)": repeated(as_jax(root)),
        "wend in its own loop": lambda: as_many(4.0),
        "wend, 1,000 elements": lambda: steps(start),
        "as_jax, 1,000 elements": lambda: inside(array).block_until_ready(),
    }


def _many(a: Any) -> Any:
    for _ in range(TRIPS):
        a = root(a) + 3.0
    return a


def torch_calls() -> dict[str, Callable[[], Any]]:
    """Return calls by torch, of products and of wend functions, and calls of wend."""
    import numpy as np
    import torch

    import wend
    from bench.empty_torch import EmptyFunction, EmptyTransformed, empty_operation
    from wend.interop.torch import as_torch

    torch.set_num_threads(1)
    start = np.linspace(1.0, 2.0, SIZE)
    number, array = torch.tensor(4.0).double(), torch.from_numpy(start)
    leaf = number.clone().requires_grad_()

    def product(x: Any) -> Any:
        return x * x

    def backward(fun: Callable[[Any], Any]) -> Any:
        return torch.autograd.grad(fun(leaf), leaf)

    solve, steps, grad = as_torch(root), as_torch(relax), torch.func.grad
    own, own_steps = wend.function(root), wend.function(relax)
    own_slope = wend.value_and_grad(root)
    return {
        "wend": lambda: own(4.0),
        "wend, value and gradient": lambda: own_slope(4.0),
        "product": partial(product, number),
        "as_torch": partial(solve, number),
        "product, grad needed": partial(product, leaf),
        "Function, grad needed": partial(EmptyFunction.apply, leaf),
        "as_torch, grad needed": partial(solve, leaf),
        "product, backward": partial(backward, product),
        "Function, backward": partial(backward, EmptyFunction.apply),
        "as_torch, backward": partial(backward, solve),
        "product, torch.func.grad": partial(grad(product), number),
        "Function, torch.func.grad": partial(grad(EmptyTransformed.apply), number),
        "operation, torch.func.grad": partial(grad(empty_operation), number),
        "as_torch, torch.func.grad": partial(grad(solve), number),
        "wend, 1,000 elements": lambda: own_steps(start),
        "as_torch, 1,000 elements": partial(steps, array),
    }


CALLS = {"jax": jax_calls, "torch": torch_calls}


def measure(system: str) -> dict[str, float]:
    """Return the microseconds of each call, in this process."""
    calls = CALLS[system]()
    counts, least = {}, dict.fromkeys(calls, float("inf"))
    for name, call in calls.items():
        for _ in range(3):
            call()
        counts[name] = max(1, int(MIN_SECONDS / seconds(call, 3)))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            least[name] = min(least[name], seconds(call, counts[name]))
    return {name: 1e6 * x for name, x in least.items()}


def seconds(call: Callable[[], Any], count: int) -> float:
    """Return the time of a call, over a number of them."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def lines(system: str, times: Mapping[str, float]) -> list[str]:
    """Return the rows of a system."""
    return [system, *(f"  {name:<28}{x:>12,.2f} µs" for name, x in times.items())]


def main(given: list[str] | None = None) -> int:
    """Print the rows of each system that is installed; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.bridges", description=__doc__)
    parser.add_argument("--peers", type=Path, metavar="DIR", help="a folder with environments")
    parser.add_argument("--one", choices=CALLS, help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.one:
        print(json.dumps(measure(options.one)))
        return 0
    pythons = first_with({name: (name, "optree", "llvmlite") for name in CALLS}, options.peers)
    for system in CALLS:
        python = pythons.get(system)
        times = None if python is None else in_a_process(python, "bench.bridges", "--one", system)
        print("\n".join(lines(system, times)) if times else f"{system}: not run", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
