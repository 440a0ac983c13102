"""One loop for many elements, each as long as it needs: what `wend.vmap` is for.

Python and Numba run a loop over the elements, as one would write it there.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.peer import Peer
from bench.peers.python import LIBRARY
from bench.reference import differences
from bench.workload import GRADIENT, VALUE, Library, Program, Workload
from bench.workloads.dopri import RATES_AND_START
from bench.workloads.dopri import plain as dopri

Written = Callable[[Library], Program]
# NumPy's functions raise nothing, unlike those of `math`
ARRAYS = SimpleNamespace(
    **{
        **vars(LIBRARY),
        "sin": np.sin,
        "exp": np.exp,
        "sqrt": np.sqrt,
        "maximum": np.maximum,
        "minimum": np.minimum,
    }
)


def root(lib: Library) -> Program:
    def program(a: Any) -> Any:
        x = a
        while abs(x * x - a) > 1e-12 * a:
            x = 0.5 * (x + a / x)
        return x

    return program


def growth(lib: Library) -> Program:
    def program(limit: Any) -> Any:
        x = 0.1 + 0.0 * limit
        while x < limit:
            x = 1.01 * x + 1e-3 / x
        return x

    return program


def solve(lib: Library) -> Program:
    program = lib.helper(dopri(lib))
    alpha, beta, gamma, delta, prey, hunters = RATES_AND_START

    def from_prey(scale: Any) -> Any:
        return program(alpha, beta, gamma, delta, prey * scale, hunters, 20.0)

    return from_prey


def total(element: Written) -> Written:
    """Return the program that adds up what an element gives, one after the other."""

    def plain(lib: Library) -> Program:
        one = lib.helper(element(lib))

        def program(xs: Any) -> Any:
            sum = 0.0
            for k in range(xs.shape[0]):
                sum = sum + one(xs[k])
            return sum

        return program

    return plain


def mapped(element: Written) -> Callable[[Peer, str], Program]:
    """Return what makes the program by `wend.vmap`."""

    def make(peer: Peer, measure: str) -> Program:
        import wend

        wend.config(cache_dir="")
        vmapped = wend.vmap(element(ARRAYS))

        def program(xs: Any) -> Any:
            return np.sum(vmapped(xs))

        return wend.function(program) if measure == VALUE else wend.value_and_grad(program)

    return make


def ensemble(name: str, title: str, element: Written, full: Any, small: Any) -> Workload:
    plain = total(element)
    return Workload(
        name=name,
        title=title,
        arguments=(full,),
        small=(small,),
        measures=(VALUE, GRADIENT),
        plain=plain,
        differentiable=(0,),
        answer=differences(plain(LIBRARY), (0,)),
        own={"wend": mapped(element)},
        peers=("wend", "python", "numba"),
        tolerance=1e-5,
    )


def lengths(count: int) -> Any:
    """Return limits with geometric numbers of trips, the longest some ten times the mean."""
    trips = np.random.default_rng(3).exponential(size=count)
    return 0.2 * np.exp(trips)


def scales(count: int) -> Any:
    return np.random.default_rng(4).uniform(0.8, 1.2, size=count)


WORKLOADS = [
    ensemble(
        "roots",
        "100,000 square roots by Newton's method",
        root,
        np.exp(3 * np.random.default_rng(2).standard_normal(100_000)),
        np.exp(np.random.default_rng(2).standard_normal(40)),
    ),
    ensemble(
        "lengths",
        "10,000 loops of geometric numbers of trips",
        growth,
        lengths(10_000),
        lengths(40),
    ),
    ensemble(
        "solves",
        "2,000 adaptive ODE solves (Dormand–Prince) from different starts",
        solve,
        scales(2_000),
        scales(40),
    ),
]
