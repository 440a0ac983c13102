"""Programs of many kinds that wend was not tuned for: filters, dynamic programs, fields, bodies,
splines, samplers, networks and loops over integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.peers.python import LIBRARY
from bench.reference import differences
from bench.workload import GRADIENT, VALUE, Library, Program, Workload

PEERS = ("wend", "python", "numba", "jax")
Written = Callable[[Library], Program]


def workload(
    name: str,
    title: str,
    plain: Written,
    functional: Written | None,
    full: tuple[Any, ...],
    small: tuple[Any, ...],
    differentiable: tuple[int, ...] = (),
    **others: Any,
) -> Workload:
    """Return a workload; without arguments to differentiate by, of its value alone."""
    return Workload(
        name=name,
        title=title,
        arguments=full,
        small=small,
        measures=(VALUE, GRADIENT) if differentiable else (VALUE,),
        plain=plain,
        functional=functional,
        differentiable=differentiable,
        answer=differences(plain(LIBRARY), differentiable),
        peers=PEERS,
        **{"tolerance": 1e-6, **others},
    )


def normal(*shape: int, dtype: Any = np.float64, seed: int = 23) -> Any:
    """Return the same random numbers in every process; others for another seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def uniform(*shape: int, seed: int = 24) -> Any:
    return np.random.default_rng(seed).random(shape)


def integers(low: int, high: int, *shape: int, seed: int = 25) -> Any:
    return np.random.default_rng(seed).integers(low, high, shape)
