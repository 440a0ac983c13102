"""Many solves of `dopri` from starts and until times of their own, by `vmap`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.peer import Peer
from bench.peers.python import LIBRARY
from bench.reference import differences
from bench.workload import GRADIENT, VALUE, Library, Program, Workload
from bench.workloads import dopri
from bench.workloads.ensembles import mapped

ALPHA, BETA, GAMMA, DELTA, PREY, HUNTERS = dopri.RATES_AND_START


def element_of(solve: Program) -> Program:
    """Return the solve of an element."""

    def element(scale: Any, time: Any) -> Any:
        return solve(ALPHA, BETA, GAMMA, DELTA, PREY * scale, HUNTERS, time)

    return element


def plain(lib: Library) -> Program:
    element = lib.helper(element_of(lib.helper(dopri.plain(lib))))

    def program(scales: Any, times: Any) -> Any:
        total = 0.0
        for k in range(scales.shape[0]):
            total = total + element(scales[k], times[k])
        return total

    return program


def functional(lib: Library) -> Program:
    element = element_of(dopri.functional(lib))

    def program(scales: Any, times: Any) -> Any:
        return lib.sum(lib.vmap(element)(scales, times))

    return program


def masked(lib: Library, arrays: Any, loop: Program) -> Library:
    """Return a library for all elements at once: they run until the last of them is done, and what
    the others compute meanwhile is not taken.
    """

    def while_loop(cond: Program, body: Program, carry: Any, limit: int) -> Any:
        def step(*carry: Any) -> tuple[Any, ...]:
            goes_on = cond(*carry)
            pairs = zip(body(*carry), carry, strict=True)
            return tuple(arrays.where(goes_on, new, old) for new, old in pairs)

        start = tuple(arrays.broadcast_arrays(*carry))
        return loop(lambda *carry: arrays.any(cond(*carry)), step, start, limit)

    return SimpleNamespace(
        **vars(lib) | {"vmap": lambda element: element, "while_loop": while_loop}
    )


def by_numpy() -> Program:
    names = ("sqrt", "maximum", "minimum", "where")

    def loop(cond: Program, body: Program, carry: Any, limit: int) -> Any:
        while cond(*carry):
            carry = body(*carry)
        return carry

    lib = SimpleNamespace(**vars(LIBRARY) | {name: getattr(np, name) for name in names})
    return functional(masked(lib, np, loop))


def in_jax(peer: Peer, measure: str) -> Program | None:
    """A tape for each element is copied in each trip of `vmap`, so it is one for all of them."""
    import jax
    import jax.numpy as jnp

    if measure == VALUE:
        return None
    program = functional(masked(peer.library, jnp, peer.library.while_loop))
    made: Program = jax.jit(jax.value_and_grad(program))
    return made


def in_diffrax(peer: Peer, measure: str) -> Program:
    import jax

    def program(scales: Any, times: Any) -> Any:
        return jax.vmap(element_of(dopri.by_diffrax()))(scales, times).sum()

    made: Program = jax.jit(program if measure == VALUE else jax.value_and_grad(program))
    return made


def scales(count: int) -> Any:
    return np.random.default_rng(4).uniform(0.8, 1.2, size=count)


def times(count: int) -> Any:
    return 4.0 * np.random.default_rng(5).exponential(size=count)


def workload(name: str, title: str, full: Any, small: Any) -> Workload:
    return Workload(
        name=name,
        title=title,
        arguments=(scales(full.size), full),
        small=(scales(small.size), small),
        measures=(VALUE, GRADIENT),
        plain=plain,
        functional=functional,
        differentiable=(0,),
        own={
            **mapped(lambda lib: element_of(lib.helper(dopri.plain(lib)))),
            "jax-tape": in_jax,
            "diffrax": in_diffrax,
        },
        answer=differences(by_numpy(), (0,)),
        tolerance=1e-5,
        peers=(
            *("wend", "wend-loop", "c", "c-fast", "numba"),
            *("jax", "jax-tape", "equinox-checkpointed", "diffrax"),
        ),
    )


WORKLOADS = [
    workload(
        "solves",
        "10,000 adaptive ODE solves (Dormand–Prince) from different starts",
        np.full(10_000, 20.0),
        np.full(40, 20.0),
    ),
    workload(
        "solves_geometric",
        "the same until times of their own, the longest ten times the mean",
        times(10_000),
        times(40),
    ),
]
